#!/bin/sh
# The whole protocol through plugbay: hosts and servers of both eras made of the official SDKs, every feature in
# every pairing, as one table.
#
# Usage: tests-e2e/matrix.sh [--over stdio|http] [--host ts1|py1|rs1|ts2|py2|rs2] [--plugbay PATH]
#
# The programs are those of setup.sh, in $PLUGBAY_E2E_DIR, else target/e2e; those of the Rust SDK are built with plugbay.
# Exit code 1: a cell fails. 2: it could not be found out.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
folder=${PLUGBAY_E2E_DIR:-$here/../target/e2e}
"$here/setup.sh" "$folder"
PLUGBAY_E2E_DIR=$(CDPATH='' cd -- "$folder" && pwd)
export PLUGBAY_E2E_DIR
exec node "$here/matrix/run.mjs" "$@"
