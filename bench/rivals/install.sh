#!/bin/sh
# Installs pinned versions of the gateways that `plugbay-bench rivals` measures, each in a folder of its own.
#
# Usage: bench/rivals/install.sh [DIR] [NAME]...
#
# DIR is `plugbay-rivals` in the user's cache folder unless given. NAMEs pick some of the list below. What is there already is left alone. An install that
# fails is reported at the end and does not stop the others; its output is in DIR/NAME/install.log. Rust gateways are built
# with their own release profile, one after the other, and take an hour on two cores.
#
# Needs cargo, git, npm and python3. Exit code 1: an install failed.
set -u

dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/plugbay-rivals}
[ $# -gt 0 ] && shift
mkdir -p "$dir" && dir=$(CDPATH='' cd -- "$dir" && pwd) || exit 1

# kind, name of the folder and of the description, package, version, program
list='
npm     mcp-hub-node    mcp-hub         4.2.1   mcp-hub
pypi    fastmcp         fastmcp         4.1.2   fastmcp
pypi    mcp-proxy-py    mcp-proxy       0.13.0  mcp-proxy
crate   mcpzip          mcpzip          0.1.0   mcpzip
crate   mcp-multiplexer mcp-multiplexer 0.5.0   mcp-multiplexer
crate   mcp-hub         mcp-hub         0.3.0   mcp-hub
crate   mcp-aggregator  mcp-aggregator  0.1.0   mcp-aggregator
crate   mcp-compressor  mcp-compressor  0.40.0  mcp-compressor
crate   mcp-proxy       mcp-proxy       0.6.0   mcp-proxy
crate   mcp-gateway     mcp-gateway     3.5.1   mcp-gateway
git     1mcp            1mcp-app/agent  d7bde4b27491202fc5fe366c296267d97685a697  1mcp
git     switchboard     George5562/Switchboard  e33359c886836b25b4357ce2d91a95db619799b9  switchboard
git     mcpflip         prashant-DS/mcpflip     a954c9f331247557ae1ca548ced4b69217ae4869  mcpflip
'

install_crate() { # DIR PACKAGE VERSION
    CARGO_TARGET_DIR=$dir/build cargo install --locked --root "$1" "$2@$3"
}

install_npm() {
    npm install --no-audit --no-fund --prefix "$1" "$2@$3" && mkdir -p "$1/bin" && ln -sf ../node_modules/.bin/"$2" "$1/bin/$2"
}

install_pypi() {
    python3 -m venv "$1" && "$1/bin/pip" install --quiet "$2==$3"
}

# What no registry has: a commit, built as its own documentation says.
install_git() {
    [ -d "$1/source" ] || git clone --quiet "https://github.com/$2" "$1/source" || return 1
    mkdir -p "$1/bin"
    (cd "$1/source" && { git checkout --quiet "$3" || { git fetch --quiet && git checkout --quiet "$3"; }; } && "build_$name" "$1")
}

build_1mcp() {
    npm install --no-audit --no-fund --prefix "$1/pnpm" pnpm@10.33.0 &&
        PATH=$1/pnpm/node_modules/.bin:$PATH &&
        CI=1 pnpm install --frozen-lockfile --ignore-scripts &&
        pnpm exec tsc --project tsconfig.build.json &&
        pnpm exec tsc-alias -p tsconfig.build.json &&
        chmod +x build/index.js && ln -sf ../source/build/index.js "$1/bin/1mcp"
}

build_switchboard() {
    npm ci --no-audit --no-fund --ignore-scripts && npm rebuild esbuild && npm run build &&
        ln -sf ../source/dist/index.js "$1/bin/switchboard" && chmod +x dist/index.js
}

build_mcpflip() {
    chmod +x gateway.js && ln -sf ../source/gateway.js "$1/bin/mcpflip"
}

failed=
while read -r kind name package version program; do
    [ -n "$kind" ] || continue
    case " ${*:-$name} " in *" $name "*) ;; *) continue ;; esac
    if [ "$(cat "$dir/$name/version" 2>/dev/null)" = "$version" ]; then
        echo "$name $version: there already"
        continue
    fi
    mkdir -p "$dir/$name"
    echo "$name $version: installing $package ($kind)"
    if "install_$kind" "$dir/$name" "$package" "$version" >"$dir/$name/install.log" 2>&1 </dev/null && [ -x "$dir/$name/bin/$program" ]; then
        echo "$version" >"$dir/$name/version"
    else
        failed="$failed $name"
        echo "$name $version: failed: $(grep -m1 '^error' "$dir/$name/install.log" || tail -n1 "$dir/$name/install.log")"
    fi
done <<LIST
$list
LIST

[ -z "$failed" ] || {
    echo "not installed:$failed" >&2
    exit 1
}
