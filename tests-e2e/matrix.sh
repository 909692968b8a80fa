#!/bin/sh
# The whole protocol through plugbay: hosts and servers of both eras made of the official SDKs, every feature in
# every pairing, as one table.
#
# Usage: tests-e2e/matrix.sh [--over stdio|http] [--host ts1|py1|rs1|ts2|py2|rs2] [--plugbay PATH]
#
# The programs of the Rust SDK are built with plugbay; setup.sh installs the others.
# Exit code 1: a cell fails. 2: the table could not be made. 3: see setup.sh.
. "$(dirname -- "$0")/common.sh"
need packages py1 py2
exec node "$here/matrix/run.mjs" "$@"
