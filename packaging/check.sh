#!/bin/sh
# Makes and checks every package of plugbay.
#
# Usage: packaging/check.sh [--all] [PART]...
#
# Parts: scripts, crates, npm, mcpb, server-json, plugins, installer, release, workflow, docker, sbom.
# Without a PART: all of them, each as far as a minute goes. With --all, plugbay is also built and installed from its packed
# crates, and the container is built where a Docker daemon runs.
#
# PLUGBAY_BINARY names the program to pack; without it, a debug build is made. PLUGBAY_SCHEMAS names a folder with the
# published JSON Schemas, see checks/schemas.mjs. Exit code 1: a part failed. 3: the tools of a part are not installed.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
top=$here/..
work=$top/target/packaging

main() {
    all=
    [ "${1:-}" != --all ] || { all=--all && shift; }
    [ $# -gt 0 ] || set -- scripts crates npm mcpb server-json plugins installer release workflow docker sbom
    "$top/tests-e2e/setup.sh" packaging packaging-py
    PLUGBAY_E2E_DIR=$(CDPATH='' cd -- "${PLUGBAY_E2E_DIR:-$top/target/e2e}" && pwd)
    export PLUGBAY_E2E_DIR
    prepare_binary
    failed=
    skipped=
    for part in "$@"; do
        code=0
        check "$part" || code=$?
        case $code in
        0) ;;
        3) skipped="$skipped $part" ;;
        *) failed="$failed $part" ;;
        esac
    done
    [ -z "$skipped" ] || echo "check.sh: skipped, wholly or in part:$skipped"
    [ -z "$failed" ] || stop "failed:$failed"
    echo "check.sh: ok"
}

stop() {
    echo "check.sh: $1" >&2
    exit 1
}

# Without its debug information, which would be packed again and again.
prepare_binary() {
    given=${PLUGBAY_BINARY:-${PLUGBAY_BIN:-}}
    if [ -z "$given" ]; then
        (cd "$top" && cargo build --quiet --locked -p plugbay)
        given=$top/target/debug/plugbay
    fi
    mkdir -p "$work"
    binary=$(mktemp -d "$work/binary.XXXXXX")/plugbay
    trap 'rm -rf "${binary%/plugbay}"' EXIT
    trap 'exit 130' INT TERM
    if ! { strip -o "$binary" "$given" && "$binary" --version; } >/dev/null 2>&1; then
        cp "$given" "$binary"
    fi
}

check() {
    case $1 in
    scripts) check_scripts ;;
    crates) "$here/crates.sh" ${all:+--install "$work/installed"} ;;
    npm | mcpb | plugins) node "$here/checks/$1.mjs" --binary "$binary" ;;
    server-json | installer | release | workflow) node "$here/checks/$1.mjs" ;;
    docker) "$here/checks/docker.sh" ${all:+--build} ;;
    # A tool that takes minutes to build: its absence is only mentioned.
    sbom) "$here/sbom.sh" "$work/plugbay.cdx.json" || { [ $? -eq 3 ] && [ -z "$all" ]; } ;;
    *) stop "there is no part $1" ;;
    esac
}

check_scripts() {
    (cd "$top" && "$PLUGBAY_E2E_DIR/packaging-py/bin/shellcheck" --external-sources --source-path=SCRIPTDIR \
        install.sh packaging/*.sh packaging/checks/*.sh tests-e2e/*.sh) || return 1
    echo "scripts: shellcheck finds nothing"
}

main "$@"
