#!/usr/bin/env python3
"""Bad kernels on a GPU harm nothing but themselves: a hang comes back in time, the next kernel passes, a thousand
alternating good and bad ones leave no memory, descriptors or processes behind.
usage: robust.py RUNG [--count N]"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOUND = (ROOT / "tests" / "sound" / "online_fast_exp.cu").read_text()
HUGE = """name = "huge"; summary = "more than any card has";
dims = { n = 1099511627776L; };
tensors = ( { name = "x"; role = "input"; dtype = "f32"; shape = "n"; }, { name = "y"; role = "output"; dtype = "f32"; shape = "n"; } );
reference = { plugin = "ops"; graph = "y = x * 2"; };
check = { precision = "fp32"; shapes = "fixed"; };
bench = { shapes = ( { n = 1099511627776L; } ); };
"""
DOUBLE = """//@ launch twice grid=(1024) block=(256) args=(x, y, n)
extern "C" __global__ void twice(const float *x, float *y, long long n)
{
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += 1024 * 256)
        y[i] = 2 * x[i];
}
"""
GREEDY_TEMP = """//@ temp t f32 [rows * cols * 1000000]
//@ launch softmax grid=(ceil_div(rows, 32)) block=(32) args=(x, y, t, rows, cols)
extern "C" __global__ void softmax(const float *x, float *y, float *t, int rows, int cols)
{
    int r = blockIdx.x * 32 + threadIdx.x;
    if (r >= rows)
        return;
    float most = x[(long long)r * cols], sum = 0;
    for (int c = 1; c < cols; c++)
        most = fmaxf(most, x[(long long)r * cols + c]);
    for (int c = 0; c < cols; c++)
        sum += expf(x[(long long)r * cols + c] - most);
    for (int c = 0; c < cols; c++)
        y[(long long)r * cols + c] = expf(x[(long long)r * cols + c] - most) / sum;
    t[r] = sum;
}
"""
passed = failed = 0


def tell(good, what, detail=""):
    global passed, failed
    passed, failed = passed + good, failed + (not good)
    print(f"{'ok  ' if good else 'FAIL'} {what} {detail}", flush=True)


def evaluate(rung, task, kernel, *more):
    begun = time.monotonic()
    done = subprocess.run([rung, "eval", task, kernel, "--device", "cuda", "--json", *more], capture_output=True, text=True,
                          timeout=240)
    seconds = time.monotonic() - begun
    return (json.loads(done.stdout) if done.stdout else {"verdict": "none", "code": done.stderr[-300:]}), seconds


def gpu_memory():
    done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True,
                          text=True)
    return int(done.stdout.split()[0]) if done.returncode == 0 else -1


def descendants(pid):
    """Processes below one, with their open descriptors and resident MiB."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int(re.search(r"\) \S (\d+)", (entry / "stat").read_text())[1])
            status = (entry / "status").read_text()
            found[int(entry.name)] = (parent, len(os.listdir(entry / "fd")),
                                      int((re.search(r"VmRSS:\s+(\d+)", status) or [0, 0])[1]) / 1024)
        except (OSError, TypeError):
            continue
    below = {pid}
    while True:
        more = {p for p, (parent, *_) in found.items() if parent in below} - below
        if not more:
            return {p: found[p] for p in below if p in found}
        below |= more


def watch(process, samples):
    while process.poll() is None:
        below = descendants(process.pid)
        samples.append((len(below), sum(v[1] for v in below.values()), max((v[2] for v in below.values()), default=0), gpu_memory()))
        time.sleep(1)


def bad(n):
    """Bad kernels of four kinds; every one has other text, so that nothing is answered from a cache."""
    kinds = ["y[(1LL << 34) + threadIdx.x] = 1;", "if (blockIdx.x == 0) y[0] = ((float *)1)[0];", "__trap();",
             "if (threadIdx.x < 16) y[threadIdx.x] = 0;"]
    return ("//@ launch bad grid=(rows) block=(128) args=(x, y)\n"
            'extern "C" __global__ void bad(const float *x, float *y)\n{\n    ' + kinds[n % len(kinds)] + f"\n    // {n}\n}}\n")


def alternate(rung, count, folder):
    """Distinct kernels, every other one bad; ten of them a round."""
    lines = [{"rung_cassette": 1, "through": "a test"}]
    for n in range(1, count + 1):
        text = SOUND.replace("#include", f"// {n}\n#include", 1) if n % 2 else bad(n)
        lines.append({"key": f"code/{n}/0", "role": "code", "reply": f"```cuda\n{text if '#include' in text or not n % 2 else text + f'// {n}'}\n```\n"})
    lines += [{"key": f"ideas/{d}/{a}", "role": "ideas", "reply": "\n".join(f"- [memory] Idea {i} of {d}." for i in range(30))}
              for d in range(count // 5 + 8) for a in range(3)]
    (folder / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rounds = (count - 2) // 10 + 1
    (folder / "p.cfg").write_text(
        f'task = "{ROOT}/config/tasks/softmax_small.cfg";\nllm = ( {{ plugin = "replay"; cassette = "a.jsonl"; }} );\n'
        f'search = {{ plugin = "branching"; rounds = {rounds}; ideas = 20; branches = 1; keep = 2; tune = 0; repairs = 0; patience = 0; }};\n'
        'workers = ( { device = "cuda"; count = 4; } );\nlimits = { check = "20s"; llm_parallel = 16; };\n')
    before, begun, samples = gpu_memory(), time.monotonic(), []
    process = subprocess.Popen([rung, "run", str(folder / "p.cfg"), "--out", str(folder / "run"), "--json", "--quiet"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watcher = threading.Thread(target=watch, args=(process, samples))
    watcher.start()
    out, err = process.communicate()
    watcher.join()
    seconds = time.monotonic() - begun
    time.sleep(1)
    report = json.loads(out) if out else {"verdicts": {}, "candidates": 0, "error": err[-500:]}
    verdicts = report["verdicts"]
    n = report["candidates"]
    tell(n >= count * 0.9 and verdicts.get("accepted", 0) >= n * 0.45 and verdicts.get("internal", 0) == 0,
         f"{n} alternating kernels in {seconds:.1f} s ({n / seconds:.2f} a second from source to verdict)", f"{verdicts} {report.get('error', '')}")
    third = max(1, len(samples) // 3)
    early, late = samples[third:2 * third] or samples, samples[-third:]
    for at, what, slack in ((0, "processes", 3), (1, "descriptors", 40), (2, "MiB of the largest process", 300), (3, "MiB of GPU memory", 1500)):
        first, last = max(s[at] for s in early), max(s[at] for s in late)
        tell(last <= first + slack, f"no leak of {what}", f"middle third {first:.0f}, last third {last:.0f}")
    tell(gpu_memory() <= before + 50, "GPU memory afterwards", f"{before} MiB before, {gpu_memory()} after")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rung")
    parser.add_argument("--count", type=int, default=1000)
    arguments = parser.parse_args()
    rung = str(pathlib.Path(arguments.rung).resolve())
    probe = json.loads(subprocess.run([rung, "plugin", "try", "device", "cuda", "--json"], capture_output=True, text=True).stdout)
    if probe["state"] != "ready":
        print(f"SKIPPED: no GPU answers: {probe['message']}")
        return 77
    small = f"{ROOT}/config/tasks/softmax_small.cfg"
    report, seconds = evaluate(rung, small, f"{ROOT}/tests/exploits/never_ends.cu", "--set", 'limits.check="4s"')
    tell(report["code"] == "run.timeout" and seconds < 4 + 3 + 2, "an infinite loop", f"{report['code']} in {seconds:.1f} s (limit 4 s)")
    report, seconds = evaluate(rung, small, f"{ROOT}/tests/sound/online_fast_exp.cu")
    tell(report["verdict"] == "accepted", "a good kernel behind it", f"{seconds:.2f} s")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "huge.cfg").write_text(HUGE)
        (folder / "double.cu").write_text(DOUBLE)
        (folder / "greedy.cu").write_text(GREEDY_TEMP)
        report, _ = evaluate(rung, str(folder / "huge.cfg"), str(folder / "double.cu"))
        tell(report["verdict"] == "unsupported" and report["code"] == "device.memory", "tensors larger than the card", report["code"])
        report, _ = evaluate(rung, small, str(folder / "greedy.cu"))
        tell(report["verdict"] == "unsupported" and report["code"] == "device.memory", "a temp larger than the card", report["code"])
        alternate(rung, arguments.count, folder)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
