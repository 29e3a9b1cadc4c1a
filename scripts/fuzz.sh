#!/usr/bin/env bash
# Fuzzes every parser for FUZZ_SECONDS (60) with clang's libFuzzer under the address and
# undefined-behaviour sanitizers. Names as arguments pick some: scripts/fuzz.sh plan expr. New inputs
# stay in build-fuzz/corpus/NAME; one that crashes is kept as build-fuzz/crash-NAME-*.
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
mkdir -p build
scripts/bootstrap.sh fuzz build || exit 3
if [ ! -e build-fuzz/build.ninja ]; then
    cmake -S . -B build-fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug \
        "-DCMAKE_C_FLAGS=-O1 -fsanitize=fuzzer-no-link" -DRUNG_FUZZ=ON -DRUNG_SANITIZE=address,undefined >/dev/null || exit 1
fi
targets=("${@/%/_fuzz}")
[ $# -gt 0 ] || targets=(fuzz)
ninja -C build-fuzz --quiet "${targets[@]}" || exit 1
passed=0 failed=0
for program in build-fuzz/fuzz_bin/*_fuzz; do
    name=$(basename "$program" _fuzz)
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
        continue
    fi
    mkdir -p "build-fuzz/corpus/$name"
    seeds=()
    [ -d "build-fuzz/seeds/$name" ] && seeds=("build-fuzz/seeds/$name")
    echo "== $name for $seconds s"
    if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="build-fuzz/crash-$name-" "build-fuzz/corpus/$name" ${seeds[@]+"${seeds[@]}"} \
        >"build-fuzz/$name.log" 2>&1; then
        passed=$((passed + 1))
        grep -E 'number_of_executed_units|new_units_added' "build-fuzz/$name.log"
    else
        failed=$((failed + 1))
        tail -n 40 "build-fuzz/$name.log"
    fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
