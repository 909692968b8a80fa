#!/bin/sh
# Opens five windows on ten real servers: with five plain gateways, then with the daemon. Counts processes and memory.
#
# The windows have different modes and filters. Each calls a tool of every server that it may use, so that all run. Every
# window must list the same tools on both ways. With the daemon, each server must run once, all processes together
# must take at most a quarter of the memory (proportional share), and a bridge at most 3 MB of its own.
#
# Usage: tests-e2e/windows.sh [--plugbay PATH] [--scopes shared|default] [--keep]
#
# By default the ten servers are configured with the scope `shared`. With `--scopes default` plugbay chooses, and the
# copies of each server are only printed. The tables are Markdown, as in docs/figures.md. Linux only.
#
# Exit code 1: a check failed. 3: the servers are not installed, or this plugbay has no daemon.
. "$(dirname -- "$0")/common.sh"
need forty forty-py
exec node "$here/real/windows.mjs" "$@"
