#!/bin/sh
# MCP Apps through plugbay, with the official packages on both sides: two servers of @modelcontextprotocol/ext-apps that have
# the same page and the same tools, and a host in Chromium that shows their pages with its AppBridge. Prints a row per way.
#
# Usage: tests-e2e/apps.sh [--plugbay PATH] [--way WORDS]...
#
# Each panel must show its own server's page and data, and the calls of a page must reach its own server. Screenshots go to
# $PLUGBAY_E2E_DIR/apps.
#
# Exit code 1: a panel shows something else. 3: there is no Chromium, or see setup.sh.
. "$(dirname -- "$0")/common.sh"
need packages node
CHROMIUM=$(find_chromium) || {
    echo "skipped: no Chromium" >&2
    exit 3
}
export CHROMIUM

node=$PLUGBAY_E2E_DIR/node/node_modules/.bin/node
[ -x "$node" ] || node=node
exec "$node" "$here/apps/run.mjs" "$@"
