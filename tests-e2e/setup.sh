#!/bin/sh
# Installs the pinned real servers and clients of the end-to-end tests.
#
# Usage: tests-e2e/setup.sh [FOLDER]    (default: $PLUGBAY_E2E_DIR, else target/e2e)
#
# Quick when nothing changed: a stamp in FOLDER holds a hash of everything that is pinned here.
# Exit code 3: node, npm or python3 is missing.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
folder=${1:-${PLUGBAY_E2E_DIR:-$here/../target/e2e}}

# The inspector needs a newer node than most machines have; used only where ours is older.
inspector_node=22.19.0
newer_node=24.20.0

missing() {
    echo "setup.sh: $1 is missing; the end-to-end tests need node (20 or newer) with npm, and python3 (3.10 or newer) with venv" >&2
    exit 3
}
for program in node npm python3; do
    command -v "$program" >/dev/null 2>&1 || missing "$program"
done
python3 -c 'import venv, ensurepip' 2>/dev/null || missing "python3's venv module"

pinned="$here/package.json $here/requirements-v1.txt $here/requirements-v2.txt $here/setup.sh"
# shellcheck disable=SC2086 # a list of files on purpose
wanted=$(cat $pinned | cksum; node --version; python3 --version)

mkdir -p "$folder"
folder=$(CDPATH='' cd -- "$folder" && pwd)
stamp="$folder/installed"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi
rm -rf "$stamp" "$folder/node_modules" "$folder/py1" "$folder/py2"

# True if version $1 is older than version $2.
older() {
    node -e 'const number = (v) => v.replace("v", "").split(".").reduce((sum, part) => sum * 1000 + Number(part), 0);
             const [one, two] = process.argv.slice(1);
             process.exit(number(one) < number(two) ? 0 : 1);' "$1" "$2"
}

echo "setup.sh: node packages into $folder"
cp "$here/package.json" "$here/.npmrc" "$folder/"
(cd "$folder" && npm install --no-package-lock --ignore-scripts --loglevel=error)
if older "$(node --version)" "$inspector_node"; then
    node_package=node-$(node -p '`${process.platform}-${process.arch}`')
    (cd "$folder" && npm install --no-save --no-package-lock --ignore-scripts --loglevel=error "$node_package@$newer_node") ||
        echo "setup.sh: no $node_package@$newer_node; the inspector's tests will be skipped" >&2
fi

for line in 1 2; do
    echo "setup.sh: python packages into $folder/py$line"
    python3 -m venv "$folder/py$line"
    "$folder/py$line/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements-v$line.txt"
done

printf '%s' "$wanted" >"$stamp"
