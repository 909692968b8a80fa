#!/bin/sh
# Writes what plugbay is made of, every crate with its version, license and checksum, as a CycloneDX document.
#
# Usage: packaging/sbom.sh FILE
#
# Needs cargo-cyclonedx. Exit code 3: it is not installed.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
out=${1:?which file to write}

if ! cargo cyclonedx --version >/dev/null 2>&1; then
    echo "sbom.sh: skipped, cargo-cyclonedx is not installed: cargo install cargo-cyclonedx --locked" >&2
    exit 3
fi
# It writes a file beside the manifest of each crate that it looks at.
name=plugbay-sbom-$$
trap 'rm -f "$top"/crates/*/"$name".json "$top"/*/"$name".json "$top"/tests-e2e/matrix/rust/"$name".json' EXIT
cargo cyclonedx --quiet --format json --spec-version 1.5 --no-build-deps --override-filename "$name" \
    --manifest-path "$top/crates/plugbay/Cargo.toml"
# Nothing of the machine that made it.
sed "s|file://$top|file://.|g" "$top/crates/plugbay/$name.json" >"$out"
python3 - "$out" <<'EOF'
import json, sys

bom = json.load(open(sys.argv[1]))
program = bom["metadata"]["component"]
parts = bom["components"]
unlicensed = [part["name"] for part in parts if not part.get("licenses")]
assert bom["bomFormat"] == "CycloneDX" and program["name"] == "plugbay", program
assert any(part["name"] == "tokio" and part.get("hashes") for part in parts), "tokio with its checksum"
assert not unlicensed, f"no license: {unlicensed}"
assert ":///" not in json.dumps(bom), "no path of this machine"
print(f"sbom.sh: plugbay {program['version']} is made of {len(parts)} crates, each with a license")
EOF
