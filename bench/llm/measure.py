#!/usr/bin/env python3
"""Runs `rung run` against bench/llm/mock.py and compares the journal with the mock's ledger.

    measure.py BUILD CALLS FAULTS

Exit status 1 when an outcome is unaccounted for, a reply is lost or double, the spend differs by a cent, or the time
from a reply's last byte to the start of its compile passes 5 ms at the median.
"""
import collections
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_MS = 5.0
IDEAS, BRANCHES = 25, 4
INPUT, OUTPUT = 2.0, 10.0  # USD per million tokens
AWAY = {"rate", "overloaded", "unavailable", "html"}


def configuration(folder, build, port, rounds, parallel):
    (folder / "task.cfg").write_text("""name = "nothing"; summary = "Nothing at all";
dims = { rows = 8; };
tensors = ( { name = "x"; role = "input"; dtype = "f32"; shape = "rows"; },
            { name = "y"; role = "output"; dtype = "f32"; shape = "rows"; } );
reference = { plugin = "zero"; graph = "y = 0 * x"; };
""")
    plugins = (build / "test_bin" / "worker_plugins").resolve()
    (folder / "run.cfg").write_text(f"""task = "task.cfg"; plugin_path = [ "{plugins}" ];
llm = ( {{ plugin = "openai"; model = "mock-1"; url = "http://127.0.0.1:{port}"; timeout = 1; parallel = {parallel};
          price = {{ input = {INPUT}; output = {OUTPUT}; }}; }} );
compiler = {{ plugin = "stamp"; }};
search = {{ plugin = "branching"; rounds = {rounds}; ideas = {IDEAS}; branches = {BRANCHES}; keep = 1; tune = 0;
           patience = 0; repairs = 0; }};
devices = ( {{ plugin = "null"; }} );
workers = ( {{ device = "null"; count = 2; }} );
references = ( {{ plugin = "zero"; }} );
rungs = ( {{ plugin = "marker"; }} );
timers = ( {{ plugin = "fake"; }} );
limits = {{ llm_parallel = {parallel}; llm_tries = 20; }};
""")


def run(folder, build, calls, faults, parallel, seed=1):
    mock = subprocess.Popen([sys.executable, str(HERE / "mock.py"), "--ledger", f"{folder}/ledger", "--faults",
                             str(faults), "--seed", str(seed), "--slow-s", "3"], stdout=subprocess.PIPE, text=True)
    try:
        configuration(folder, build, int(mock.stdout.readline()), max(1, calls // (IDEAS * BRANCHES)), parallel)
        begun = time.monotonic()
        done = subprocess.run([str(build / "bin" / "rung"), "run", str(folder / "run.cfg"), "--json", "--quiet", "--out",
                               str(folder / "run")], capture_output=True, text=True,
                              env=dict(os.environ, RUNG_LOG="error", RUNG_BENCH_STAMPS=str(folder / "stamps")))
        wall = time.monotonic() - begun
    finally:
        time.sleep(0.2)
        mock.kill()
        mock.wait()
    if done.returncode:
        sys.exit(f"rung run ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout), wall


def records(folder, kind):
    with sqlite3.connect(f"file:{folder}/run/journal.db?mode=ro", uri=True) as db:
        return {key: json.loads(text) for key, text in
                db.execute("SELECT key, json FROM records WHERE type = ? ORDER BY seq", (kind,))}


def usd(n_in, n_out):
    return (n_in * INPUT + n_out * OUTPUT) * 1e-6


def account(folder, report):
    """Problems, and lines to print."""
    ledger = [json.loads(line) for line in (folder / "ledger").read_text().splitlines()]
    requests, sends, sent, replies = (records(folder, kind) for kind in ("request", "send", "sent", "reply"))
    failures, problems = records(folder, "failure"), []
    plain = {"%s@%d" % (key, reply.get("sendings", 1) - 1) for key, reply in replies.items() if reply.get("billed") != "no"}
    ends = collections.Counter(record["end"] if record["end"] != "answered" else record["finish"]
                               for record in sent.values())
    ends["stop"] += len(plain)
    faults = collections.Counter(entry["fault"] or "none" for entry in ledger)
    if set(sends) != set(sent) | plain:
        problems.append("sendings without an end, or ends without a sending")
    if len(sends) != len(ledger):
        problems.append(f"{len(sends)} sendings, but the server saw {len(ledger)}")
    if set(requests) != set(replies) | set(failures):
        problems.append(f"{len(requests)} requests, {len(replies)} replies, {len(failures)} failures")
    expected = {"stop": faults["none"], "length": faults["length"], "refused": faults["refused"],
                "turned_away": sum(faults[f] for f in AWAY)}
    for name, n in expected.items():
        if ends[name] != n:
            problems.append(f"{name}: {ends[name]} in the journal, {n} in the ledger")
    if ends["cut"] + ends["unsure"] != faults["cut"] + faults["timeout"]:
        problems.append("cut streams and timeouts differ")
    said = usd(sum(e["input"] for e in ledger if e["said"]), sum(e["output"] for e in ledger if e["said"]))
    unsaid = usd(sum(e["input"] for e in ledger if not e["said"]), sum(e["output"] for e in ledger if not e["said"]))
    guessed = [r["usage"] for r in sent.values() if r.get("billed") == "guessed"]
    estimate = usd(sum(max(u["input"], 0) for u in guessed), sum(max(u["output"], 0) for u in guessed))
    if abs(report["cost_usd"] - said) >= 0.005:
        problems.append(f"cost {report['cost_usd']:.4f} USD, the ledger says {said:.4f}")
    lines = [f"{len(ledger)} requests on the wire, {len(requests)} logical: {len(replies)} replies, {len(failures)} failures",
             "ends: " + ", ".join(f"{name} {n}" for name, n in sorted(ends.items())),
             f"spend: {report['cost_usd']:.6f} USD reported, {said:.6f} in the ledger (difference "
             f"{abs(report['cost_usd'] - said):.2e}); cut off or silent: {estimate:.6f} estimated, {unsaid:.6f} in the ledger"]
    return problems, lines


def latencies(folder):
    """Milliseconds from the last byte of each plain reply to the start of its compile."""
    ended = {}
    for line in (folder / "ledger").read_text().splitlines():
        entry = json.loads(line)
        if entry["mark"] and not entry["fault"]:
            ended[entry["mark"]] = entry["end_ns"]
    pairs = [line.split() for line in (folder / "stamps").read_text().splitlines()]
    return sorted((int(ns) - ended[int(mark)]) / 1e6 for mark, ns in pairs if int(mark) in ended)


def show(name, times):
    print(f"{name}: reply's last byte to start of compile: median {statistics.median(times):.2f} ms, "
          f"p99 {times[int(len(times) * 0.99)]:.2f} ms, worst {times[-1]:.2f} ms over {len(times)} compiles")


def main():
    build, calls, faults = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        report, wall = run(folder, build, calls, faults, parallel=32)
        problems, lines = account(folder, report)
        print(f"{calls} kernels asked for, {faults:.0%} faults: {wall:.1f} s")
        print("\n".join(lines))
        show("32 at once, with faults", latencies(folder))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(folder, build, max(100, calls // 20), 0, parallel=1)
        times = latencies(folder)
        show("1 at once, without faults", times)
    if statistics.median(times) > LIMIT_MS:
        problems.append(f"the median passes {LIMIT_MS} ms")
    print("problems: " + ("; ".join(problems) if problems else "none"))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
