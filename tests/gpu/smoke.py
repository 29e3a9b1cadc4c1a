#!/usr/bin/env python3
"""The session on a real GPU: every sound kernel is accepted there, faults get their exact codes, a run
goes on behind them. Prints the raw
numbers. Ends with 77 (skipped) where no GPU answers. usage: smoke.py RUNG"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# On a GPU a wild address may hit other memory of the process, so the faults asked for here are those that
# the session or the hardware must catch.
FAULTS = {
    "unwritten_half": ["output.unwritten"],
    "zeros": ["numeric.mismatch"],
    "half_precision": ["numeric.precision"],
    "writes_its_input": ["input.modified"],
    "tail_skipped": ["output.unwritten"],
    "out_of_bounds_write": ["mem.out_of_bounds"],
    "misaligned": ["mem.misaligned"],
    "never_ends": ["run.timeout"],
    "too_much_shared": ["launch.resources", "compile.error"],
    "does_not_compile": ["compile.error"],
}


def evaluate(rung, task, kernel, device, *sets):
    command = [rung, "eval", task, kernel, "--device", device, "--json"]
    for assignment in sets:
        command += ["--set", assignment]
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    seconds = time.monotonic() - begun
    try:
        return json.loads(done.stdout), seconds, done
    except json.JSONDecodeError:
        return {"verdict": "none", "code": done.stderr.strip()[-400:]}, seconds, done


def headline(report):
    spent = report.get("time") or {}
    return f"{spent.get('median_us', 0):.2f} us {spent.get('kind', 'not timed')}" if spent else "not timed"


def main():
    rung, passed, failed = sys.argv[1], 0, 0
    small = f"{ROOT}/config/tasks/softmax_small.cfg"
    report, _, done = evaluate(rung, small, f"{ROOT}/tests/sound/serial.cu", "cuda")
    if done.returncode == 3 and report["verdict"] == "none":
        print(f"SKIPPED: no GPU answers: {report['code']}")
        return 77
    print("device:", json.dumps(report.get("device")))
    for path in sorted((ROOT / "tests" / "sound").glob("*.cu")):
        task = re.search(r"^// task: (\S+)", path.read_text(), re.M)[1]
        report, seconds, done = evaluate(rung, f"{ROOT}/config/tasks/{task}.cfg", str(path), "cuda")
        good = report["verdict"] == "accepted" and done.returncode == 0
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} sound/{path.stem} {headline(report)} in {seconds:.2f} s "
              f"{'' if good else (report.get('code'), done.stderr[-300:])}", flush=True)
    for name, codes in FAULTS.items():
        report, seconds, done = evaluate(rung, small, f"{ROOT}/tests/exploits/{name}.cu", "cuda", "limits.check=\"5s\"")
        good = report["verdict"] == "rejected" and report["code"] in codes and done.returncode == 1
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} exploits/{name} {report['verdict']} {report.get('code')} in {seconds:.2f} s "
              f"{'' if good else done.stderr[-300:]}", flush=True)
    full = f"{ROOT}/config/tasks/softmax.cfg"
    for name in ("online_fast_exp", "vector_loads_when_aligned"):
        report, seconds, done = evaluate(rung, full, f"{ROOT}/tests/sound/{name}.cu", "cuda", "limits.check=\"120s\"")
        good = report["verdict"] == "accepted"
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} softmax 4096x65536 {name} {headline(report)} in {seconds:.2f} s "
              f"{'' if good else (report.get('code'), done.stderr[-300:])}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [rung, "run", f"{ROOT}/config/pipelines/quickstart.cfg", "--json", "--quiet", "--out", folder + "/run",
                   "--task", small, "--set", "workers=( { device = \"cuda\"; count = 1; } )"]
        begun = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=400)
        good = done.returncode == 0
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} quickstart search on the GPU in {time.monotonic() - begun:.1f} s: "
              f"{done.stdout.strip() if good else done.stderr[-600:]}", flush=True)
    print(f"gpu smoke: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
