#!/bin/sh
# Prints what outlines and handles save, and where they cost more: the table of docs/results.md, with a real server.
#
# Usage: tests-e2e/results.sh [--plugbay PATH]
. "$(dirname -- "$0")/common.sh"
need packages measure
exec node "$here/results/run.mjs" "$@"
