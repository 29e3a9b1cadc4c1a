#!/bin/sh
# Thread instructions a second of the ptx device, one host thread, medians of 9 runs. Usage:
#   bench/ptx/run.sh BUILD_DIR [ISA...]        ISA: auto (default), v2, v3, v4
# kernels.ptx is committed so that no NVRTC is needed; it comes from kernels.cu with -arch=compute_90 -lineinfo.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
shift
plugin=$build/lib/rung/plugins/device_ptx.so
mkdir -p "$build/bin"
${CC:-cc} -O2 -std=gnu11 -D_GNU_SOURCE -I "$root/core/include" "$here/driver.c" "$root/tests/device/ptx/harness.c" \
    -ldl -lm -o "$build/bin/bench_ptx"
for isa in "${@:-auto}"; do
    "$build/bin/bench_ptx" "$plugin" "$here/kernels.ptx" "$isa"
done
