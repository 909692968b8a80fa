#!/bin/sh
# Drives real MCP hosts through plugbay, with a scripted model on loopback in place of theirs: no account, no network.
#
# Usage: tests-e2e/hosts.sh [--host NAME]... [--scenario NAME]... [--times N] [--plugbay PATH] [--keep FOLDER]
#        tests-e2e/hosts.sh --measure [--host NAME]... [--part NAME]... [--pinned]
#                             [--json FILE] [--from FILE] [--plugbay PATH]
#
# Hosts: hosts/all.mjs. setup.sh installs each when it is first driven; one that cannot be installed is skipped.
# Scenarios: hosts/scenarios.mjs; `all` and `search` by default.
# `run-code` runs a script of the model that calls two servers, `run-calls` makes the same calls one by one, and both print tokens.
# `--keep` writes down every request to the model, for the last run of each.
# Exit code 1: a host did not do what the script expects. 2: there is no such host or scenario. 3: no host is installed.
#
# `--measure` measures what hosts do, directly and through plugbay, and compares it with plugbay's profiles of them. It takes
# the versions that npm has today, or with `--pinned` those of hosts/pins.txt. Parts: hosts/measure/parts.mjs. `--json` also
# writes what was measured to a file, while it is measured; `--from` begins with what such a file has, and measures no more than
# the parts that are named. Exit code 4: a profile says something else than what was measured.
#
# One that CI can afford: tests-e2e/hosts.sh --host claude-code --scenario search
. "$(dirname -- "$0")/common.sh"
need packages measure
program=run.mjs
for word; do
    [ "$word" != --measure ] || program=measure/run.mjs
done
[ $program = run.mjs ] || need py2
exec node "$here/hosts/$program" "$@"
