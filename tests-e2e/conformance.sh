#!/bin/sh
# Runs the official conformance suite against a server, directly and through plugbay, and compares; or, with
# `--client`, against plugbay as a client of the suite's own servers.
#
# Usage: tests-e2e/conformance.sh [--direct] [--behind http|stdio] [--version 2026-07-28] [--plugbay PATH]
#        tests-e2e/conformance.sh --client [--scenario auth/dpop] [--version 2026-07-28] [--plugbay PATH]
#
# `--direct` needs no plugbay.
# Exit code 1: a scenario passes directly and fails through plugbay, or plugbay fails as a client.
# 2: the suite could not run. 3: see setup.sh.
. "$(dirname -- "$0")/common.sh"
need packages node

# The suite needs a newer node than most machines have; setup.sh has installed one where ours is older.
node=$PLUGBAY_E2E_DIR/node/node_modules/.bin/node
[ -x "$node" ] || node=node
exec "$node" "$here/conformance/run.mjs" "$@"
