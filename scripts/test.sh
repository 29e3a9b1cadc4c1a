#!/usr/bin/env bash
# All tests, from nothing:
#   build-test   gcc, address and undefined-behaviour sanitizers: every unit and command-line test
#   build-tsan   gcc, thread sanitizer: the tests labelled tsan
#   build        the release tree: resume under kills, the out-of-tree plugins against an installed rung
#   build-clang  clang: everything compiles without a warning
# Goes on after a failure, prints each failed test's output, and ends with one line of totals.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
passed=0 failed=0 skipped=0
# Old sanitizer runtimes trip over kernels that randomise addresses by many bits.
steady=()
setarch "$(uname -m)" -R true 2>/dev/null && steady=(setarch "$(uname -m)" -R)

step() { echo "== $* ($(date +%T))"; }

count() # NAME STATUS: one check that is no ctest
{
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1" >&2
    fi
}

build_tree() # FOLDER TARGET CMAKE_ARGUMENT...
{
    local folder=$1 target=$2
    shift 2
    if [ ! -e "$folder/build.ninja" ]; then
        cmake -S . -B "$folder" -G Ninja "$@" >"$folder.log" 2>&1 || { cat "$folder.log"; return 1; }
        rm -f "$folder.log"
    fi
    if [ -e build/lib/rung/cuda ] && [ ! -e "$folder/lib/rung/cuda" ]; then
        ln -sfn "$PWD/build/lib/rung/cuda" "$folder/lib/rung/cuda"
    fi
    ninja -C "$folder" --quiet "$target"
}

run_ctest() # FOLDER ARGUMENT...: adds what ctest says to the totals
{
    local folder=$1 report=$1/report.xml numbers
    shift
    rm -f "$report"
    ${steady[@]+"${steady[@]}"} ctest --test-dir "$folder" -j "$jobs" --output-on-failure --output-junit "$PWD/$report" "$@" |
        grep --line-buffered -v -e '^ *Start ' -e '^Internal ctest' -e '^Test project'
    numbers=$(grep -o -E '[[:space:]](tests|failures|skipped)="[0-9]+"' "$report" | grep -o -E '[0-9]+' | head -3)
    set -- $numbers
    if [ $# != 3 ] || [ "$1" = 0 ]; then
        count "ctest in $folder ran no test" 1
        return
    fi
    passed=$((passed + $1 - $2 - $3)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

sanitized()
{
    step "address and undefined-behaviour sanitizers"
    build_tree build-test all -DCMAKE_BUILD_TYPE=Debug -DRUNG_SANITIZE=address,undefined \
        -DCMAKE_C_FLAGS=-O1 || { count "build with address,undefined" 1; return; }
    run_ctest build-test -LE '^(gpu|perf)$'
}

threads()
{
    step "thread sanitizer"
    build_tree build-tsan tsan_tests -DCMAKE_BUILD_TYPE=Debug -DRUNG_SANITIZE=thread \
        -DCMAKE_C_FLAGS=-O1 || { count "build with thread sanitizer" 1; return; }
    run_ctest build-tsan -L '^tsan$'
}

release()
{
    step "release build"
    scripts/build.sh
    count "release build" $?
    [ -x build/bin/rung ] || return
    scripts/exports.sh build/lib/rung/plugins
    count "one exported symbol a plugin" $?
    step "resume after kill -9 at 50 random instants"
    python3 tests/cli/resume.py build/bin/rung 50
    count "resume" $?
    step "recorded replies, replayed"
    python3 tests/cli/replay.py build/bin/rung
    count "replay" $?
    step "plugins out of tree, against an installed rung"
    rm -rf build/prefix build/out_of_tree
    cmake --install build --prefix "$PWD/build/prefix" >/dev/null &&
        tests/out_of_tree/run.sh build/prefix build/out_of_tree >build/out_of_tree.log 2>&1
    local status=$?
    [ $status = 0 ] || cat build/out_of_tree.log
    count "out of tree" $status
}

second_compiler()
{
    step "clang"
    build_tree build-clang all -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O0
    local status=$?
    count "build with clang" $status
    # What the sanitizers' runtimes keep from running.
    [ $status != 0 ] || run_ctest build-clang -R '^test_worker_chroot$'
}

mkdir -p build
scripts/bootstrap.sh test build || exit 3
sanitized
threads
release
second_compiler
echo "tests: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
