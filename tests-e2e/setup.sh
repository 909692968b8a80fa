#!/bin/sh
# Installs the pinned servers, clients and hosts of the end-to-end tests. Nothing else installs anything.
#
# Usage: tests-e2e/setup.sh [PART]...
#
# Parts: packages (npm), node (a newer one, where ours is too old for the inspector), py1, py2, api (PyPI), packaging and
# packaging-py (what packaging/check.sh needs of both), forty and forty-py (the servers of forty.json), measure (what
# hosts.sh --measure needs), each host of hosts/pins.txt, HOST@latest for its newest version, and chromium. Without a PART: all that `cargo test` needs. The parts go into $PLUGBAY_E2E_DIR, else
# target/e2e; only Chromium goes into the system, with apt-get and as root. Where that cannot be, tests do without it.
#
# A part is there if its stamp is, which is written last. One setup works at a time and others wait for it; the lock ends
# with the process that holds it.
#
# With PLUGBAY_E2E_INSTALL=never nothing is installed: the script only checks that the parts are there.
# Exit code 3: a part is not there, or cannot be installed on this machine. stderr says which and why.
. "$(dirname -- "$0")/common.sh"
folder=${PLUGBAY_E2E_DIR:-$here/../target/e2e}

# Installs an environment for each Python server of forty.json in a fraction of pip's time.
uv=0.13.7

# The oldest node that the inspector runs on, and the one to install where ours is older.
inspector_node=22.19.0
newer_node=24.20.0

main() {
    [ $# -gt 0 ] || set -- packages node py1 py2 api packaging packaging-py claude-code measure chromium
    require_programs
    absent=
    for part in "$@"; do
        is_part "$part" || stop 2 "there is no part $part"
        is_installed "$part" || absent="$absent $part"
    done
    [ -n "$absent" ] || exit 0
    if [ "${PLUGBAY_E2E_INSTALL:-}" = never ]; then
        stop 3 "not installed:$absent; tests-e2e/setup.sh installs what is missing"
    fi
    mkdir -p "$folder"
    folder=$(CDPATH='' cd -- "$folder" && pwd)
    lock
    # Only the holder of the lock stages: these are left from a setup that was killed.
    rm -rf "$folder"/staging.*
    # shellcheck disable=SC2086 # a list of words
    install_all $absent
}

require_programs() {
    for program in node npm python3; do
        command -v "$program" >/dev/null 2>&1 || missing "$program"
    done
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing "python3's venv module"
}

missing() {
    stop 3 "$1 is missing; the end-to-end tests need node (20 or newer) with npm, and python3 (3.10 or newer) with venv"
}

say() {
    echo "setup.sh: $1" >&2
}

stop() {
    say "$2"
    exit "$1"
}

# The lock belongs to the open file, which the kernel closes however this process ends.
lock() {
    exec 9>>"$folder/lock"
    python3 -c '
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("setup.sh: waits for another setup", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
'
}

install_all() {
    unavailable=
    trap 'rm -rf "$folder"/staging.*' EXIT
    trap 'exit 130' INT TERM
    for part in "$@"; do
        # Another setup may have installed it while we waited.
        is_installed "$part" && continue
        say "installs $part into $folder"
        install "$part" && continue
        # Most tests can do without a newer node or a host.
        case $part in
        packages | py1 | py2) stop 1 "cannot install $part" ;;
        *) unavailable="$unavailable $part" ;;
        esac
    done
    [ -z "$unavailable" ] || stop 3 "cannot install:$unavailable; the tests that need it will be skipped"
}

# A process that outlives this one must not keep the lock.
install() {
    final=$folder/$(place "$1")
    if [ "$1" = chromium ]; then
        install_chromium 9>&-
    elif [ "$1" = forty-py ]; then
        install_each "$1" 9>&-
    elif is_python "$1"; then
        install_python "$1" 9>&-
    else
        install_packages "$1" 9>&-
    fi
}

# Another package manager may be at work.
install_chromium() {
    {
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
            apt-get install -qq --yes --no-install-recommends -o DPkg::Lock::Timeout=600 chromium
    } >&2 && find_chromium >/dev/null
}

# Not if $CHROMIUM says where it is, or that there is to be none.
can_install_chromium() {
    [ -z "${CHROMIUM+set}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

# In place: the scripts of an environment name their own path.
install_python() {
    rm -rf "$final" && python3 -m venv "$final" &&
        "$final/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$(requirements "$1")" &&
        wanted "$1" >"$final/installed"
}

# An environment per server, as users have them: their needs contradict each other. Compiled now, so that the first start
# of a server is like the next.
install_each() {
    UV_CACHE_DIR=$final/cache UV_PYTHON_DOWNLOADS=never
    export UV_CACHE_DIR UV_PYTHON_DOWNLOADS
    rm -rf "$final" && python3 -m venv "$final/uv" &&
        "$final/uv/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$uv" || return 1
    forty pypi >"$final/servers" || return 1
    while read -r package version more; do
        "$final/uv/bin/uv" venv --quiet --python "$(command -v python3)" "$final/$package" || return 1
        # shellcheck disable=SC2086 # a list of words
        "$final/uv/bin/uv" pip install --quiet --compile-bytecode --python "$final/$package/bin/python" \
            "$package==$version" $more </dev/null || return 1
    done <"$final/servers"
    rm -rf "$final/cache" && wanted "$1" >"$final/installed"
}

# Package, version and further packages of each server of forty.json in this registry, one per line.
forty() {
    node -e 'const [, file, registry] = process.argv;
             for (const each of JSON.parse(require("fs").readFileSync(file, "utf8")))
                 if (each.registry === registry) console.log(each.package, each.version, ...(each.with ?? []));' \
        "$here/forty.json" "$1"
}

# Filled in a staging folder, and renamed together with its stamp.
install_packages() {
    staging=$(mktemp -d "$folder/staging.XXXXXX") && staged=$staging/$(basename "$final") || return 1
    fill "$1" || return 1
    wanted "$1" >"$staged/installed" && mkdir -p "$(dirname "$final")" || return 1
    [ ! -e "$final" ] || mv "$final" "$staging/replaced" || return 1
    mv "$staged" "$final" && rm -rf "$staging"
}

fill() {
    cp "$here/.npmrc" "$staging/" || return 1
    # The forty servers are of different makers, whose peer dependencies need not agree.
    # shellcheck disable=SC2046 # a list of words
    case $1 in
    packages | packaging | measure) cp "$(manifest "$1")" "$staging/package.json" && npm_install ;;
    forty) echo '{"private":true}' >"$staging/package.json" && npm_install --legacy-peer-deps $(forty npm | tr ' ' '@') ;;
    *) echo '{"private":true}' >"$staging/package.json" && npm_install "$(pin "$1")" ;;
    esac
}

# Install scripts are not run: hosts bring native programs, which are started themselves.
npm_install() {
    (cd "$staging" && npm install --no-package-lock --ignore-scripts --loglevel=error "$@" >&2)
}

is_part() {
    case $1 in
    packages | py1 | py2 | api | packaging | packaging-py | forty | forty-py | measure | chromium) ;;
    *) package "${1%@latest}" >/dev/null ;;
    esac
}

is_python() {
    case $1 in
    py1 | py2 | api | packaging-py | forty-py) ;;
    *) return 1 ;;
    esac
}

is_installed() {
    [ "$1" = node ] && node_is_new_enough && return
    if [ "$1" = chromium ]; then
        find_chromium >/dev/null || ! can_install_chromium
        return
    fi
    [ "$(cat "$folder/$(place "$1")/installed" 2>/dev/null)" = "$(wanted "$1")" ]
}

# Where a part is, below $folder.
place() {
    case $1 in
    packages) echo node_modules ;;
    packaging) echo packaging/node_modules ;;
    measure) echo measure/node_modules ;;
    py1 | py2 | api | packaging-py | forty-py) echo "$1" ;;
    forty) echo forty/node_modules ;;
    node) echo node/node_modules ;;
    *) echo "hosts/$1/node_modules" ;;
    esac
}

# What the stamp of a part says if it is up to date.
wanted() {
    cksum <"$here/setup.sh"
    case $1 in
    packages | packaging | measure) cat "$(manifest "$1")" "$here/.npmrc" | cksum && node --version ;;
    forty | forty-py) forty npm && forty pypi && node --version && python3 --version ;;
    py1 | py2 | api | packaging-py) cksum <"$(requirements "$1")" && python3 --version ;;
    *) pin "$1" ;;
    esac
}

manifest() {
    case $1 in
    packaging) echo "$here/../packaging/package.json" ;;
    measure) echo "$here/hosts/measure/package.json" ;;
    *) echo "$here/package.json" ;;
    esac
}

requirements() {
    case $1 in
    packaging-py) echo "$here/../packaging/requirements.txt" ;;
    api) echo "$here/requirements-api.txt" ;;
    *) echo "$here/requirements-v${1#py}.txt" ;;
    esac
}

# The npm package of a part that is just one, with the version to install. Offline, the newest one is the one that is there.
pin() {
    case $1 in
    *@latest)
        name=$(package "${1%@latest}") && name=${name%@*} || return 1
        if version=$(npm view "$name" version 2>/dev/null) && [ -n "$version" ]; then
            echo "$name@$version"
        else
            tail -n 1 "$folder/$(place "$1")/installed" 2>/dev/null
        fi
        ;;
    *) package "$1" ;;
    esac
}

# The same with the version that is pinned.
package() {
    # shellcheck disable=SC2016 # JavaScript
    platform=$(node -p '`${process.platform}-${process.arch}`')
    if [ "$1" = node ]; then
        echo "node-$platform@$newer_node"
    else
        awk -v part="$1" -v platform="$platform" '
            $1 == part { sub("PLATFORM", platform, $2); print $2; found = 1 } END { exit !found }' "$here/hosts/pins.txt"
    fi
}

node_is_new_enough() {
    node -e 'const number = (version) => version.split(".").reduce((sum, part) => sum * 1000 + Number(part), 0);
             process.exit(number(process.versions.node) < number(process.argv[1]) ? 1 : 0);' "$inspector_node"
}

main "$@"
