#!/bin/sh
# What share of public kernels the ptx device runs. Usage:
#   bench/census/run.sh BUILD_DIR WORK_DIR INCLUDE_DIR LIBNVRTC SOURCE...
# SOURCE: folders of .cu, .cuh, .py or .json files, fetched beforehand and never committed. WORK_DIR
# keeps the extracted sources, the PTX, the logs and census.tsv, a line a kernel.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
work=$2 include=$3 library=$4
shift 4
if [ $# -gt 0 ]; then
    python3 "$here/extract.py" "$work" "$@"
    python3 "$here/compile.py" "$work" "$include" "$library"
fi
mkdir -p "$build/bin"
${CC:-cc} -O2 -std=gnu11 -D_GNU_SOURCE -I "$root/core/include" "$here/driver.c" "$root/tests/device/ptx/harness.c" \
    -ldl -lm -o "$build/bin/census_ptx"
"$build/bin/census_ptx" "$build/lib/rung/plugins/device_ptx.so" "$work"/*.ptx >"$work/census.tsv"
python3 "$here/summary.py" "$work"
