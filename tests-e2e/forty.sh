#!/bin/sh
# Lists forty real servers from npm and PyPI through plugbay, started cold, and compares with starting them by hand.
#
# Every server that lists its tools directly must list them through plugbay, and each definition must be equal byte for
# byte but for its name. A server may write its definitions differently in each protocol era; then all of them must be
# equal to those of one era, and the table says so. The time to the full list must be at most 1.3 times that of starting
# the servers by hand, eight at a time.
#
# Usage: tests-e2e/forty.sh [--plugbay PATH] [--rounds N] [--at-once N] [--only NAME]... [--ratio N]
#                           [--patience SECONDS] [--keep]
#
# The servers are those of forty.json; setup.sh installs them once (1.2 GB). Keys in their environment are made up:
# listing needs none. A round starts all servers by hand, then through plugbay with an empty cache; the first start of
# all, which fills the file cache, is not counted. With --ratio 0 the time is only printed. A list that is not full
# after --patience (300) is given up. --keep leaves plugbay's log.
#
# Exit code 1: a server or a definition is missing or differs, or the list took too long. 3: the servers are not installed.
. "$(dirname -- "$0")/common.sh"
need forty forty-py
exec node "$here/real/forty.mjs" "$@"
