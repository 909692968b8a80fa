#!/bin/sh
# Runs fuzz targets one after the other: run.sh [SECONDS] [TARGET…]. Findings are in artifacts/TARGET.
# The corpus grows in corpus/TARGET, which is not kept; the seeds are in seeds/TARGET.
set -eu
cd "$(dirname "$0")"
seconds=${1:-600}
[ $# -gt 0 ] && shift
gateway="challenge request_state config cache expand sandbox"
if [ $# -eq 0 ]; then
    set -- framer head members sse schema repair names globs hosts edits answers requests bridge text outline shape references search
    for target in $gateway; do set -- "$@" "$target"; done
fi
failed=""
for target in "$@"; do
    features=""
    case " $gateway " in *" $target "*) features="--features gateway" ;; esac
    mkdir -p "corpus/$target"
    # There is one stable toolchain; the sanitizers and the coverage of libFuzzer need the flag.
    # shellcheck disable=SC2086
    RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer "${SANITIZER:-none}" $features "$target" "corpus/$target" "seeds/$target" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 ||
        failed="$failed $target"
done
[ -z "$failed" ] || { echo "findings:$failed"; exit 1; }
