#!/bin/sh
# Shows the plugin that `plugbay plugin` writes to a real Claude Code: it must be valid, by the checks of the plugin
# directory too, and its skill must allow the tools by the names that Claude Code has for them.
#
# Usage: tests-e2e/plugin.sh [--plugbay PATH]
#
# Exit code 1: Claude Code sees it otherwise. 3: Claude Code is not installed.
. "$(dirname -- "$0")/common.sh"
need claude-code
exec node "$here/hosts/plugin.mjs" "$@"
