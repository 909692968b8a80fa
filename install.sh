#!/bin/sh
# Installs plugbay for the current user from a release. Needs no root, and changes nothing but one file.
#
# `install.sh --help` lists the options.
set -eu

# A release writes its own address here.
release_url=

# The oldest glibc that the builds for it run with.
glibc_major=2
glibc_minor=35

# All of it is read before any of it runs: a download that breaks off does nothing.
main() {
    url=${PLUGBAY_BASE_URL:-$release_url}
    folder=${PLUGBAY_INSTALL_DIR:-}
    target=
    dry_run=false
    while [ $# -gt 0 ]; do
        case $1 in
        --base-url)
            url=$(value "$@")
            shift
            ;;
        --to)
            folder=$(value "$@")
            shift
            ;;
        --target)
            target=$(value "$@")
            shift
            ;;
        --dry-run) dry_run=true ;;
        --help) usage && exit 0 ;;
        *) stop "unknown option $1; try --help" ;;
        esac
        shift
    done
    check_url
    [ -n "$folder" ] || folder=${HOME:?is not set; give --to FOLDER}/.local/bin
    [ -n "$target" ] || target=$(detect)
    archive=plugbay-$target.tar.gz
    downloader=$(first curl wget) || stop "needs curl or wget"
    hasher=$(first sha256sum shasum) || stop "needs sha256sum or shasum"
    if $dry_run; then
        say "would download $url/$archive with $downloader, check it with $hasher, and write $folder/plugbay"
        exit 0
    fi
    install
}

usage() {
    cat <<'EOF'
Installs plugbay for the current user from a release.

Usage: install.sh [OPTION]...

  --base-url URL   where the release's files are (or set PLUGBAY_BASE_URL)
  --to FOLDER      where to put the program (or set PLUGBAY_INSTALL_DIR); default ~/.local/bin
  --target TARGET  which build to take, such as x86_64-unknown-linux-musl; default: the one for this machine
  --dry-run        only say what would be done
  --help           show this help

It downloads plugbay-TARGET.tar.gz and SHA256SUMS, and installs the program only if the checksum is right.
EOF
}

say() {
    echo "install.sh: $1"
}

stop() {
    echo "install.sh: $1" >&2
    exit 1
}

value() {
    [ $# -gt 1 ] || stop "$1 needs a value"
    echo "$2"
}

# Over plain HTTP anybody on the way could send both another program and its checksum.
check_url() {
    url=${url%/}
    case $url in
    https://* | http://127.0.0.1:* | http://localhost:*) ;;
    '') stop "which release? Give --base-url URL or set PLUGBAY_BASE_URL" ;;
    *) stop "$url is not an https:// address" ;;
    esac
}

# The name of the build for this machine.
detect() {
    system=$(uname -s)
    machine=$(uname -m)
    case $machine in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) unsupported "$system on $machine" ;;
    esac
    case $system in
    Linux) echo "$machine-unknown-linux-$(libc)" ;;
    Darwin)
        # A translated shell on an Apple processor says x86_64.
        [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" != 1 ] || machine=aarch64
        echo "$machine-apple-darwin"
        ;;
    *) unsupported "$system on $machine" ;;
    esac
}

unsupported() {
    stop "there is no build for $1, only for Linux and macOS on x86_64 and aarch64"
}

# The build for musl is static: it also runs where glibc is too old.
libc() {
    version=$(getconf GNU_LIBC_VERSION 2>/dev/null) || version=
    case $version in
    'glibc '[0-9]*.[0-9]*) ;;
    *) echo musl && return ;;
    esac
    version=${version#glibc }
    major=${version%%.*}
    minor=${version#*.}
    minor=${minor%%.*}
    if [ "$major" -gt $glibc_major ] || { [ "$major" -eq $glibc_major ] && [ "$minor" -ge $glibc_minor ]; }; then
        echo gnu
    else
        echo musl
    fi
}

first() {
    for program in "$@"; do
        if command -v "$program" >/dev/null 2>&1; then
            echo "$program"
            return
        fi
    done
    return 1
}

install() {
    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
    trap 'exit 130' INT TERM
    say "downloads $url/$archive"
    download "$archive"
    download SHA256SUMS
    verify
    tar -xzf "$temporary/$archive" -C "$temporary" plugbay || stop "$archive has no program plugbay"
    mkdir -p "$folder"
    # Beside its place and then renamed: a plugbay that is running goes on, and there is never half a program.
    mv "$temporary/plugbay" "$folder/.plugbay.new"
    chmod 755 "$folder/.plugbay.new"
    installed=$("$folder/.plugbay.new" --version) || { rm -f "$folder/.plugbay.new" && stop "the program does not run here"; }
    mv "$folder/.plugbay.new" "$folder/plugbay"
    say "installed $installed as $folder/plugbay"
    case :$PATH: in
    *:"$folder":*) say "try: plugbay demo" ;;
    *) say "$folder is not on your PATH; add it, or start $folder/plugbay" ;;
    esac
    say "to uninstall: rm '$folder/plugbay'"
}

download() {
    case $downloader in
    curl) curl --fail --silent --show-error --location --output "$temporary/$1" "$url/$1" ;;
    wget) wget -q -O "$temporary/$1" "$url/$1" ;;
    esac || stop "cannot download $url/$1"
}

verify() {
    expected=$(awk -v name="$archive" '$2 == name || $2 == "*" name { print $1; exit }' "$temporary/SHA256SUMS")
    [ -n "$expected" ] || stop "SHA256SUMS does not name $archive"
    case $hasher in
    sha256sum) actual=$(sha256sum "$temporary/$archive") ;;
    shasum) actual=$(shasum -a 256 "$temporary/$archive") ;;
    esac
    [ "${actual%% *}" = "$expected" ] || stop "the checksum of $archive is wrong; nothing was installed"
}

main "$@"
