#!/usr/bin/env bash
# Requests to models under faults: a mock server on this machine answers about CALLS requests, a share of them with
# faults, and its ledger is compared with what the run says; then, without faults, the time from a reply's last byte
# to the start of its compile. Compiler, device, verifier and timer are the test suite's fakes.
#   bench/llm/run.sh [CALLS] [FAULTS]      default 10000 0.2; limit: 5 ms at the median and at worst
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=${RUNG_BENCH_TREE:-build-bench}
if [ ! -e "$tree/build.ninja" ]; then
    cmake -S . -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
fi
ninja -C "$tree" --quiet rung worker_main llm_openai codegen_cuda search_branching
cc -O2 -Wall -shared -fPIC -D_GNU_SOURCE -Icore/include -Itests/worker/plugins -Wl,--version-script=cmake/plugin.map \
    bench/llm/compiler_stamp.c -o "$tree/test_bin/worker_plugins/compiler_stamp.so"
exec python3 bench/llm/measure.py "$tree" "${1:-10000}" "${2:-0.2}"
