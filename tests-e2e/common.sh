# What the scripts beside this file share. Each sources it and names what it needs.
# shellcheck shell=sh
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

# Has setup.sh install these parts, and exports where they are.
need() {
    "$here/setup.sh" "$@"
    PLUGBAY_E2E_DIR=$(CDPATH='' cd -- "${PLUGBAY_E2E_DIR:-$here/../target/e2e}" && pwd)
    export PLUGBAY_E2E_DIR
}

# Prints where Chromium is: as $CHROMIUM says, which may be empty, or else on this machine.
find_chromium() {
    if [ -n "${CHROMIUM+set}" ]; then
        [ -n "$CHROMIUM" ] && echo "$CHROMIUM"
    else
        command -v chromium || command -v chromium-browser || command -v google-chrome
    fi
}
