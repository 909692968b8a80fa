#!/bin/sh
# Lints the Dockerfile, and checks that its build finds what it needs: the files that .dockerignore lets through are a whole
# workspace, and the toolchain is ours.
#
# Usage: packaging/checks/docker.sh [--build]
#
# With --build, and where a Docker daemon runs, the image is built and started. Exit code 3: there is no daemon.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
tools=${PLUGBAY_E2E_DIR:-$top/target/e2e}/packaging-py/bin
cd "$top"

main() {
    # Alpine drops a version of a package when a newer one comes: a pinned one would break the build.
    "$tools/hadolint" --ignore DL3018 Dockerfile
    say "hadolint finds nothing"
    check_toolchain
    check_context
    [ "${1:-}" != --build ] || build
}

say() {
    echo "docker: $1"
}

stop() {
    say "$1"
    exit 1
}

check_toolchain() {
    channel=$(sed -n 's/^channel = "\([0-9]*\.[0-9]*\).*/\1/p' rust-toolchain.toml)
    grep -q "^FROM rust:$channel-alpine " Dockerfile || stop "the Dockerfile does not build with Rust $channel"
}

check_context() {
    context=$(mktemp -d)
    trap 'rm -rf "$context"' EXIT
    # A pattern that .dockerignore exempts is a path of ours.
    sed -n 's/^!//p' .dockerignore | xargs git ls-files -z -- >"$context/files"
    mkdir "$context/src"
    tar --null -T "$context/files" -cf - | tar -xf - -C "$context/src"
    (cd "$context/src" && cargo metadata --locked --offline --format-version 1 >/dev/null) || stop "the build context is not whole"
    [ -s "$context/src/crates/plugbay/assets/tools-64d-int8.bin" ] || stop "the build context lacks the embeddings"
    say "the build context is a whole workspace of $(du -sk "$context/src" | cut -f 1) KiB"
}

build() {
    if ! docker info >/dev/null 2>&1; then
        say "not built, there is no Docker daemon"
        exit 3
    fi
    docker build --tag plugbay-check .
    docker run --rm plugbay-check --version
    request='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"check","version":"1"}}}'
    echo "$request" | docker run -i --rm plugbay-check | grep -q '"serverInfo"' || stop "the container does not speak MCP"
    [ "$(docker run --rm --entrypoint id plugbay-check -u)" = 10001 ] || stop "the container runs as root"
    say "built; it speaks MCP as a user without rights: $(docker image inspect --format '{{.Size}}' plugbay-check) bytes"
}

main "$@"
