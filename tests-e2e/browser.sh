#!/bin/sh
# Two hosts browse 48 pages at the same time with one real browser server behind plugbay, and count leaked pages.
#
# Each page carries a word that only its own host may see. A page is leaked if a snapshot shows a word of the other host,
# and lost if a snapshot does not show its own word; the web server also notes a cookie that came from the wrong host.
# Three ways: a server per host without plugbay, where nothing may leak; plugbay with the scope `shared`, which shows why
# one browser for all is wrong; plugbay with the scope `session`, where nothing may leak.
#
# Usage: tests-e2e/browser.sh [--plugbay PATH] [--over daemon|http] [--way direct|shared|session]... [--pages N]
#
# The server is @playwright/mcp of forty.json, the browser Debian's Chromium (or the one in $CHROMIUM), headless and with
# a profile in memory. The hosts reach plugbay through its daemon if it has one, else over HTTP.
#
# Exit code 1: a page was leaked or lost where none may be. 3: there is no Chromium, or the server is not installed.
. "$(dirname -- "$0")/common.sh"
CHROMIUM=$(find_chromium) || {
    echo "skipped: no Chromium" >&2
    exit 3
}
export CHROMIUM
need forty
exec node "$here/real/browser.mjs" "$@"
