#!/bin/sh
# Drives real MCP hosts through plugbay, with a scripted model on loopback in place of theirs: no account, no network.
#
# Usage: tests-e2e/hosts.sh [--host NAME]... [--scenario NAME]... [--times N] [--plugbay PATH] [--keep FOLDER]
#
# Hosts: claude-code, codex, codex-search, codex-plain, gemini-cli, opencode, each installed on demand into
# $PLUGBAY_E2E_DIR/hosts, else target/e2e/hosts; one that cannot be installed is skipped. Scenarios: hosts/scenarios.mjs;
# `all` and `search` unless told. `--keep` writes down everything that was asked of the model, for the last run of each.
# Exit code 1: a host did not do what the script expects. 2: there is no such host or scenario. 3: no host could be
# installed.
#
# One that CI can afford: tests-e2e/hosts.sh --host claude-code --scenario search
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
folder=${PLUGBAY_E2E_DIR:-$here/../target/e2e}
"$here/setup.sh" "$folder"
PLUGBAY_E2E_DIR=$(CDPATH='' cd -- "$folder" && pwd)
export PLUGBAY_E2E_DIR
exec node "$here/hosts/run.mjs" "$@"
