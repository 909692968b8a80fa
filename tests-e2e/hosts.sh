#!/bin/sh
# Drives real MCP hosts through plugbay, with a scripted model on loopback in place of theirs: no account, no network.
#
# Usage: tests-e2e/hosts.sh [--host NAME]... [--scenario NAME]... [--times N] [--plugbay PATH] [--keep FOLDER]
#
# Hosts: claude-code, codex, codex-search, codex-plain, gemini-cli, opencode. setup.sh installs each when it is first
# driven; one that cannot be installed is skipped. Scenarios: hosts/scenarios.mjs; `all` and `search` by default.
# `--keep` writes down every request to the model, for the last run of each.
# Exit code 1: a host did not do what the script expects. 2: there is no such host or scenario. 3: no host is installed.
#
# One that CI can afford: tests-e2e/hosts.sh --host claude-code --scenario search
. "$(dirname -- "$0")/common.sh"
need packages
exec node "$here/hosts/run.mjs" "$@"
