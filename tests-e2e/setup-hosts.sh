#!/bin/sh
# Moves ten real servers of four real hosts to plugbay with one `plugbay setup --yes`, and back with `--undo`.
#
# In a throw-away home: Claude Code, Codex, Gemini CLI and opencode with ten servers spread over them. After setup each
# host's own listing must show plugbay connected, and a scripted model on loopback must reach a tool of a moved server
# through each host. After undo the hosts' files must be as they were.
#
# Usage: tests-e2e/setup-hosts.sh [--host NAME]... [--plugbay PATH] [--keep]
#
# With --host, only these hosts are started; the files of all four are there, and setup moves the servers of all.
#
# Exit code 1: something is not as it must be. 3: a host or a server is not installed.
. "$(dirname -- "$0")/common.sh"
hosts=
previous=
for word; do
    [ "$previous" != --host ] || hosts="$hosts $word"
    previous=$word
done
# shellcheck disable=SC2086 # a list of words
need packages py1 py2 ${hosts:-claude-code codex gemini-cli opencode}
exec node "$here/hosts/setup.mjs" "$@"
