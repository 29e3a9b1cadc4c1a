#!/usr/bin/env python3
"""The catalog's kernels for the headline tasks: a search over each task, then every kernel with its best tune point.

    bench/catalog/run.py RUNG [TASK...] [--device cuda|ptx] [--small] [--workers N] [--wall 60s] [--out DIR]
                         [--baselines cublas,cudnn,torch,torch_compile]

Times are measured where the device has a clock and modelled where it has none; the table says which. Each search is
an ordinary run, kept in DIR. With baselines the winner is timed again in three fresh processes, in turns with each.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADLINE = ["matmul", "conv2d", "softmax", "layernorm", "conv2d_relu_maxpool", "matmul_fp16", "attention"]
PIPELINE = """task = "{task}";
llm = ( {{ plugin = "catalog"; }} );
search = {{ plugin = "branching"; rounds = 4; ideas = 8; branches = 1; keep = 3; tune = 6; repairs = 0; patience = 0; }};
workers = ( {{ device = "{device}"; count = {workers}; }} );
limits = {{ check = "5m"; time = "5m"; }};
budget = {{ wall = "{wall}"; }};
timing = {{ baselines = ( {baselines} ); }};
"""


def title(rung, run, number):
    """The catalog's own name of a kernel, from the first line of its source."""
    shown = json.loads(subprocess.run([rung, "show", run, str(number), "--json"], capture_output=True, text=True,
                                      check=True).stdout)
    first = shown["bundle"]["files"][0]["text"].splitlines()[0] if shown["bundle"] else "?"
    return first.removeprefix("// catalog: ").split(" variant")[0]


def table(rung, run):
    """Best accepted time of each kernel, and what was not accepted."""
    shown = json.loads(subprocess.run([rung, "show", run, "--json"], capture_output=True, text=True, check=True).stdout)
    best = {}
    for c in shown["candidates"]:
        name = title(rung, run, c["number"])
        row = (c["time"]["median_us"], c["time"]["kind"], c["point"]) if c["accepted"] and "time" in c else None
        if row and (name not in best or best[name][0] is None or row[0] < best[name][0]):
            best[name] = row
        elif not row and name not in best:
            best[name] = (None, "", c["code"] or "not timed")
    return best


def final(found):
    """The winner beside the baselines, over fresh processes."""
    if not found:
        return
    low, high = found["ci_us"]
    print(f"  winner {found['median_us']:.1f} us [{low:.1f}, {high:.1f}] in {found['processes']} processes, spread "
          f"{100 * found['spread']:.2f} %")
    for b in found["baselines"]:
        if not b.get("available", True) or "speedup" not in b:
            print(f"  vs {b['name']}: not available: {b.get('why', '')}")
            continue
        low, high = b["speedup_ci"]
        print(f"  vs {b['name']} ({b.get('label', '')}, {b.get('math', '')}): {b['median_us']:.1f} us, {b['speedup']:.3f}x "
              f"[{low:.3f}, {high:.3f}] {b['verdict']}")


def search(arguments, task, folder):
    folder.mkdir(parents=True)
    config = folder / "search.cfg"
    config.write_text(PIPELINE.format(task=ROOT / "config" / "tasks" / f"{task}.cfg", device=arguments.device,
                                      workers=arguments.workers, wall=arguments.wall,
                                      baselines=", ".join(f'"{b}"' for b in arguments.baselines.split(",") if b)))
    start = time.monotonic()
    done = subprocess.run([arguments.rung, "run", str(config), "--out", str(folder / "run"), "--json", "--quiet"],
                          capture_output=True, text=True)
    if not done.stdout:
        print(f"\n{task}: no run: {done.stderr.strip()}")
        return
    report = json.loads(done.stdout)
    floor = (report["best"] or {}).get("time", {}).get("floor_us", 0)
    print(f"\n{task}: {report['candidates']} candidates, {report['evaluations']} verdicts in "
          f"{time.monotonic() - start:.1f} s ({report['stop']}); floor {floor:.3g} us; {report['verdicts']}")
    final(report.get("final"))
    rows = table(arguments.rung, str(folder / "run"))
    for name, (us, kind, point) in sorted(rows.items(), key=lambda row: row[1][0] or 1e30):
        print(f"  {name:34} {f'{us:.1f} us {kind}' if us else '-':>24}  {point}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rung")
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--wall", default="60s")
    parser.add_argument("--baselines", default="")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", default="bench-catalog")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    if out.exists():
        sys.exit(f"{out} is there already; give another --out")
    for task in arguments.tasks or HEADLINE:
        search(arguments, task + "_small" if arguments.small else task, out / task)


if __name__ == "__main__":
    main()
