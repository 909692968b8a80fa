#!/bin/sh
# Runs the official conformance suite against a server, directly and through plugbay, and compares; or, with
# `--client`, against plugbay as a client of the suite's own servers.
#
# Usage: tests-e2e/conformance.sh [--client] [--direct] [--behind http|stdio] [--version 2026-07-28] [--plugbay PATH]
#
# The programs are those of setup.sh, in $PLUGBAY_E2E_DIR, else target/e2e. `--direct` needs no plugbay.
# Exit code 1: something passes directly and fails through plugbay, or plugbay fails as a client.
# 2: it could not be found out.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
folder=${PLUGBAY_E2E_DIR:-$here/../target/e2e}
"$here/setup.sh" "$folder"
PLUGBAY_E2E_DIR=$(CDPATH='' cd -- "$folder" && pwd)
export PLUGBAY_E2E_DIR

# The suite needs a newer node than most machines have; setup.sh has brought one where ours is older.
node=node
for brought in "$PLUGBAY_E2E_DIR"/node_modules/node-*/bin/node; do
    [ -x "$brought" ] && node=$brought
done
exec "$node" "$here/conformance/run.mjs" "$@"
