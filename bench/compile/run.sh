#!/bin/sh
# Compiling through the helper process against a bare NVRTC call. Usage:
#   bench/compile/run.sh BUILD_DIR [CUDA_HOME [REPEATS [GAP_MS]]]
# and, behind it, the helper without and with precompiled headers. Ends with 1 when the worst ratio of
# medians passes 1.15.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
cuda=${2:-${RUNG_CUDA_HOME:-/usr/local/cuda}}
mkdir -p "$build/bin"
${CC:-cc} -O2 -std=gnu11 -D_GNU_SOURCE -I "$root/core" -I "$root/core/include" $(pkg-config --cflags libcjson) \
    "$here/driver.c" "$build/core/worker/process/librung_process.a" "$build/core/plugin/librung_plugin.a" \
    "$build/core/base/librung_base.a" $(pkg-config --libs libcjson libmd) -ldl -lpthread -lm -o "$build/bin/bench_compile"
out=$(RUNG_CUDA_HOME="$cuda" "$build/bin/bench_compile" "$cuda/lib64/libnvrtc.so" "$cuda/include" "${3:-15}" \
    "${4:-60}" "$here"/kernels/*.cu -- "$here"/headers/*.cu)
echo "$out"
echo "$out" | awk '/^worst ratio/ { exit !($3 <= 1.15) }'
