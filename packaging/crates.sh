#!/bin/sh
# Packs the crates as a registry would get them, and checks what is inside.
#
# Usage: packaging/crates.sh [--install ROOT]
#
# With --install, the program is then built from the packed crates alone and installed into ROOT/bin: without this
# repository, without a network, and with the lock file that is in the package. That is a whole build.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=$top/target/packaging/crates
# The largest package that the public registry accepts.
limit=$((10 * 1024 * 1024))

main() {
    root=
    case ${1:-} in
    '') ;;
    --install) root=${2:?--install needs a folder} ;;
    *) stop "unknown option $1" ;;
    esac
    cd "$top"
    rm -rf "$work"
    mkdir -p "$work/crates"
    pack
    for crate in "$work"/crates/*.crate; do check_crate "$crate"; done
    check_program
    [ -z "$root" ] || install_into "$root"
}

say() {
    echo "crates.sh: $1"
}

stop() {
    echo "crates.sh: $1" >&2
    exit 1
}

# Each crate that may be published, and no other.
pack() {
    private=$(cargo metadata --locked --no-deps --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] == []:
        print("--exclude", package["name"])
')
    # A build has usually left all that is needed of the registry's index on this machine.
    # shellcheck disable=SC2086 # a list of words
    package --offline $private || package $private || {
        cat "$work/log" >&2
        stop "cargo package failed"
    }
    mv "$work"/target/package/*.crate "$work/crates/"
}

package() {
    cargo package --workspace "$@" --locked --no-verify --allow-dirty --target-dir "$work/target" 2>"$work/log"
}

# Its size, its licenses, and a description.
check_crate() {
    name=$(basename "$1" .crate)
    size=$(wc -c <"$1" | tr -d ' ')
    [ "$size" -le "$limit" ] || stop "$name has $size bytes, more than $limit"
    tar -xzf "$1" -C "$work/crates"
    for file in LICENSE-MIT LICENSE-APACHE Cargo.toml src/lib.rs; do
        [ -s "$work/crates/$name/$file" ] || stop "$name lacks $file"
    done
    grep -q '^description = ' "$work/crates/$name/Cargo.toml" || stop "$name has no description"
    say "$name: $((size / 1024)) KiB packed"
}

# The program's own package: its data, its lock file, and no dependency on anything that is never published.
check_program() {
    program=$(echo "$work"/crates/plugbay-[0-9]*[0-9]/)
    for file in Cargo.lock README.md assets/tools-64d-int8.bin assets/SKILL.md; do
        [ -s "$program/$file" ] || stop "plugbay lacks $file"
    done
    ! grep -q testkit "$program/Cargo.toml" || stop "plugbay depends on the crate for tests"
}

# A directory source stands in for the registry: the vendored dependencies, and our own packed crates beside them.
install_into() {
    say "builds plugbay from its packed crates"
    cargo vendor --locked --quiet "$work/vendor" >/dev/null
    cat >"$work/config.toml" <<EOF
[source.crates-io]
replace-with = "packed"
[source.packed]
directory = "$work/vendor"
EOF
    for crate in "$work"/crates/*.crate; do
        name=$(basename "$crate" .crate)
        sum=$(sha256 "$crate")
        printf '{"files":{},"package":"%s"}\n' "$sum" >"$work/crates/$name/.cargo-checksum.json"
        [ "$work/crates/$name/" = "$program" ] || mv "$work/crates/$name" "$work/vendor/"
    done
    # From another folder: neither this workspace nor its configuration may help.
    elsewhere=$(mktemp -d)
    trap 'rm -rf "$elsewhere"' EXIT
    mv "$program" "$elsewhere/plugbay"
    CARGO_TARGET_DIR=$work/build cargo --config "$work/config.toml" install --path "$elsewhere/plugbay" --root "$root" \
        --locked --offline --quiet --no-track --force
    say "installed $("$root/bin/plugbay" --version) into $root/bin"
}

sha256() {
    if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

main "$@"
