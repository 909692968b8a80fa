#!/bin/sh
# Plays tasks over six real servers, each once with calls and once with code, and prints the table of docs/code.md: calls, turns
# and tokens of both, also where code costs more.
#
# Usage: tests-e2e/code.sh [--task PART_OF_A_NAME]... [--era modern|legacy] [--over stdio|http|daemon] [--plugbay PATH]
#
# By default all tasks, in the 2026-07-28 protocol over stdio.
# Exit code 1: an answer is wrong, or the work was not done. 2: there is no such task, era or way.
. "$(dirname -- "$0")/common.sh"
need packages py1 py2 measure
exec node "$here/code/run.mjs" "$@"
