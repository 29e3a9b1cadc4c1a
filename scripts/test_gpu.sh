#!/usr/bin/env bash
# The tests that need a GPU. Where none answers it says so loudly and ends well.
set -uo pipefail
cd "$(dirname "$0")/.."

gpu_answer=$(python3 - 2>&1 <<'PY'
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit(str(error))
count = ctypes.c_int(0)
status = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
if status or not count.value:
    sys.exit(f"cuInit or cuDeviceGetCount: error {status}, {count.value} devices")
PY
)
if [ $? != 0 ]; then
    tests=$(grep -rlE 'LABELS.*gpu' tests --include=CMakeLists.txt | wc -l)
    echo "SKIPPED: no GPU answers ($gpu_answer)"
    echo "tests: 0 passed, 0 failed, $tests skipped"
    exit 0
fi
mkdir -p build
scripts/bootstrap.sh test build || exit 3
[ -e build-gpu/build.ninja ] || cmake -S . -B build-gpu -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo || exit 1
if [ -e build/lib/rung/cuda ]; then
    mkdir -p build-gpu/lib/rung
    ln -sfn "$PWD/build/lib/rung/cuda" build-gpu/lib/rung/cuda
fi
ninja -C build-gpu --quiet all && ctest --test-dir build-gpu --output-on-failure -L '^gpu$'
