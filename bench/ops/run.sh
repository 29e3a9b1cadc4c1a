#!/bin/sh
# Speed of the `ops` reference with one and two threads, beside numpy's float64 product (values only). Usage:
#   bench/ops/run.sh BUILD_DIR [THREADS...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
shift
mkdir -p "$build/bin"
${CC:-cc} -O2 -std=gnu11 -D_GNU_SOURCE -I "$root/core/include" "$here/driver.c" -ldl -o "$build/bin/bench_ops"
"$build/bin/bench_ops" "$build/lib/rung/plugins/reference_ops.so" ${*:-1 2}
python3 - <<'PYTHON'
try:
    import time
    import numpy
    a, b = numpy.random.rand(2, 2048, 2048)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - start)
    print(f"numpy float64 matmul 2048: {2 * 2048**3 / min(times) / 1e9:.2f} GFLOP/s (all threads that it takes)")
except ImportError:
    print("numpy float64 matmul: not available")
PYTHON
