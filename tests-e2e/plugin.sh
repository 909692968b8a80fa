#!/bin/sh
# Shows the plugin that `plugbay plugin` writes to a real Claude Code: it must be valid, by the checks of the plugin
# directory too, and its skill must allow the tools by the names that Claude Code has for them.
#
# Usage: tests-e2e/plugin.sh [--plugbay PATH]
#
# Exit code 1: Claude Code sees it otherwise. 3: it cannot be installed.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
folder=${PLUGBAY_E2E_DIR:-$here/../target/e2e}
"$here/setup.sh" "$folder"
PLUGBAY_E2E_DIR=$(CDPATH='' cd -- "$folder" && pwd)
export PLUGBAY_E2E_DIR
exec node "$here/hosts/plugin.mjs" "$@"
