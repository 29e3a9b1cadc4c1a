#!/usr/bin/env python3
"""The interpreter against a GPU, bit for bit: every sound kernel, and every kernel of the catalog on the small headline
tasks, runs on both with the same inputs. Kernels that use only exact fp32 operations must agree; those with approximate
instructions (exp and its like) are told apart and need not.
usage: bits.py RUNG FOLDER_OF_output_bits.so [--rounds N]"""
import argparse
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ["matmul_small", "conv2d_small", "softmax_small", "layernorm_small", "conv2d_relu_maxpool_small"]
# Instructions whose last bits are the hardware's own, and orders that it may choose.
INEXACT = re.compile(r"\.approx|atom\.|red\.(global|shared|async)|mma\.|wgmma")
RUNGS = """rungs = ( { name = "bits_cuda"; plugin = "output_bits"; on = "cuda"; }, { name = "bits_ptx"; plugin = "output_bits"; on = "ptx"; } );
workers = ( { device = "cuda"; count = 1; }, { device = "ptx"; count = 4; } );
limits = { check = "3m"; };
"""


def pipeline(folder, task, llm, search):
    path = folder / "p.cfg"
    path.write_text(f'task = "{ROOT}/config/tasks/{task}.cfg";\nllm = ( {llm} );\nsearch = {search};\n{RUNGS}')
    return path


def run(arguments, folder, task, llm, search):
    env = dict(os.environ, RUNG_PLUGIN_PATH=str(pathlib.Path(arguments.plugins).resolve()))
    done = subprocess.run([arguments.rung, "run", str(pipeline(folder, task, llm, search)), "--out", str(folder / "run"),
                           "--json", "--quiet"], capture_output=True, text=True, timeout=500, env=env)
    if not (folder / "run" / "journal.db").exists():
        sys.exit(f"{task}: no run: {done.stderr[-600:]}")
    return folder / "run"


def ptx_of(folder, record):
    for stored in record.get("stored") or []:
        if stored["name"].endswith(".ptx"):
            sha = stored["sha256"]
            for path in (folder / "artifacts").rglob(f"*{sha[2:]}*"):
                return path.read_text()
    return ""


def variants(folder):
    """(name, metrics on cuda, metrics on ptx, PTX) of each variant."""
    base = sqlite3.connect(folder / "journal.db")
    for key, text in base.execute("select key, json from records where type = 'variant'"):
        record = json.loads(text)
        rungs = {r["rung"]: r for r in (record.get("report") or {}).get("rungs", [])}
        if all(rungs.get(name, {}).get("status") == "pass" for name in ("bits_cuda", "bits_ptx")):
            yield key, rungs["bits_cuda"]["metrics"], rungs["bits_ptx"]["metrics"], ptx_of(folder, record)


def compare(task, folder, totals):
    for key, cuda, ptx, text in variants(folder):
        exact, same = bool(text) and not INEXACT.search(text), cuda == ptx
        totals["exact" if exact else "inexact", same] = totals.get(("exact" if exact else "inexact", same), 0) + 1
        if exact and not same:
            print(f"FAIL {task} {key}: bits differ at {[k for k in cuda if cuda[k] != ptx.get(k)]}", flush=True)


def cassette(folder):
    """All sound kernels of row softmax as replies."""
    lines = [{"rung_cassette": 1, "through": "a test"}]
    kernels = [p for p in sorted((ROOT / "tests" / "sound").glob("*.cu"))
               if re.search(r"^// task: (\S+)", p.read_text(), re.M)[1] == "softmax_small"]
    lines += [{"key": f"code/{n}/0", "role": "code", "reply": f"```cuda\n{p.read_text()}\n```\n"}
              for n, p in enumerate(kernels, 1)]
    lines += [{"key": f"ideas/{d}/{a}", "role": "ideas", "reply": "\n".join(f"- [memory] Idea {i} of {d}." for i in range(12))}
              for d in range(8) for a in range(4)]
    path = folder / "sound.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path, len(kernels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rung")
    parser.add_argument("plugins")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    arguments.rung = str(pathlib.Path(arguments.rung).resolve())
    probe = json.loads(subprocess.run([arguments.rung, "plugin", "try", "device", "cuda", "--json"], capture_output=True,
                                      text=True).stdout)
    if probe["state"] != "ready":
        print(f"SKIPPED: no GPU answers: {probe['message']}")
        return 77
    totals = {}
    with tempfile.TemporaryDirectory() as name:
        for task in SMALL:
            folder = pathlib.Path(name, task)
            folder.mkdir()
            search = f'{{ plugin = "branching"; rounds = {arguments.rounds}; ideas = 8; branches = 1; keep = 4; tune = 2; repairs = 0; patience = 0; }}'
            compare(task, run(arguments, folder, task, '{ plugin = "catalog"; }', search), totals)
            print(task, totals, flush=True)
        folder = pathlib.Path(name, "sound")
        folder.mkdir()
        path, n = cassette(folder)
        search = f'{{ plugin = "branching"; rounds = 1; ideas = {n - 1}; branches = 1; keep = 1; tune = 0; repairs = 0; patience = 0; }}'
        compare("sound", run(arguments, folder, "softmax_small", f'{{ plugin = "replay"; cassette = "{path}"; }}', search), totals)
    good, bad = totals.get(("exact", True), 0), totals.get(("exact", False), 0)
    print(f"exact kernels: {good} with the same bits, {bad} without; with approximate instructions, atomics or tensor cores: "
          f"{totals.get(('inexact', True), 0)} the same, {totals.get(('inexact', False), 0)} not")
    print(f"{good} passed, {bad + (good == 0)} failed")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
