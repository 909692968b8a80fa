#!/bin/sh
# Logins at MCP servers with OAuth, against real parts: oidc-provider as the authorization server, an MCP server of the
# official SDK that requires its tokens, and Chromium as the browser of the user. Prints a row per scenario.
#
# Usage: tests-e2e/oauth.sh [--plugbay PATH] [--scenario WORDS]... [--quick] [--keep]
#
# --scenario: only those whose name contains these words. --quick: not those that are nearly like another.
# --keep: leaves all that was written, as a failure does.
# Screenshots of plugbay's pages go to $PLUGBAY_E2E_DIR/oauth. On a machine without Chromium (or with an empty $CHROMIUM)
# the user goes through the same pages with plain HTTP.
#
# Exit code 1: a scenario fails. 3: see setup.sh.
. "$(dirname -- "$0")/common.sh"
need packages node chromium
CHROMIUM=$(find_chromium || true)
export CHROMIUM

# oidc-provider needs a newer node than most machines have; setup.sh has installed one where ours is older.
node=$PLUGBAY_E2E_DIR/node/node_modules/.bin/node
[ -x "$node" ] || node=node
exec "$node" "$here/oauth/run.mjs" "$@"
