#!/bin/sh
# Start-up figures: `rung --version`, a cold `rung eval` of a 64x1000 softmax, and `make run`'s search.
# usage: bench/startup.sh [build folder]. Times are wall seconds of this machine, medians of 5.
set -eu
build=${1:-build}
root=$(cd "$(dirname "$0")/.." && pwd)
python3 - "$root/$build/bin/rung" "$root" <<'PY'
import statistics, subprocess, sys, tempfile, time
rung, root = sys.argv[1:]
def median(command, times=5, drop=1):
    spent = []
    for _ in range(times + drop):
        begun = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True)
        spent.append(time.monotonic() - begun)
        if done.returncode != 0:
            sys.exit(f"{command} failed: {done.stderr}")
    return statistics.median(spent[drop:])
kernel = f"{root}/tests/sound/online_fast_exp.cu"
floor = median(["/bin/true"], 20)
print(f"floor: an empty process            {floor * 1e3:8.1f} ms")
print(f"rung --version                     {median([rung, '--version'], 20) * 1e3:8.1f} ms   (limit 10)")
evaluate = [rung, "eval", f"{root}/config/tasks/softmax_small.cfg", kernel, "--device", "ptx"]
print(f"rung eval, softmax 64x1000         {median(evaluate) * 1e3:8.1f} ms   (limit 700)")
with tempfile.TemporaryDirectory() as folder:
    begun = time.monotonic()
    subprocess.run([rung, "run", f"{root}/config/pipelines/quickstart.cfg", "--quiet", "--out", folder + "/run"],
                   check=True, stdout=subprocess.DEVNULL)
    print(f"quickstart search                  {(time.monotonic() - begun) * 1e3:8.1f} ms   (limit 60000)")
PY
