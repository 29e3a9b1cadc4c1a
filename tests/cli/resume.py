#!/usr/bin/env python3
"""Kills a run with SIGKILL at random instants and resumes it until it ends, KILLS times in all. Every
run must end with the winner of an undisturbed one and repeat at most the evaluations in flight.
usage: resume.py RUNG [KILLS] [SEED]"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKERS = 2
PIPELINE = """
task = "%s/config/tasks/softmax_small.cfg";
llm = ( { name = "catalog"; plugin = "catalog"; } );
search = { plugin = "branching"; rounds = 2; ideas = 3; branches = 1; keep = 2; tune = 2; seed = 7; };
workers = ( { device = "ptx"; count = %d; } );
budget = { wall = "2h"; };
""" % (ROOT, WORKERS)


def start(rung, arguments, log):
    env = dict(os.environ, RUNG_LOG="info")
    return subprocess.Popen([rung, "run", "--json", "--quiet", *arguments], stdout=subprocess.PIPE,
                            stderr=open(log, "ab"), env=env, start_new_session=True)


def winner(output):
    best = json.loads(output)["best"]
    return best["candidate"], best["point"], best["source_sha256"], best["time"]["median_us"]


def undisturbed(rung, folder, config):
    begun = time.monotonic()
    process = start(rung, [config, "--out", f"{folder}/whole"], f"{folder}/whole.log")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, open(f"{folder}/whole.log").read()[-2000:]
    return winner(output), time.monotonic() - begun


def variants(rung, run):
    shown = subprocess.run([rung, "show", run, "--json"], capture_output=True, text=True, timeout=60)
    total = 0
    for candidate in json.loads(shown.stdout)["candidates"]:
        one = subprocess.run([rung, "show", run, str(candidate["number"]), "--json"], capture_output=True,
                             text=True, timeout=60)
        total += len(json.loads(one.stdout)["variants"])
    return total


def disturbed(rung, folder, config, number, length, kills_left, rng):
    """One run to its end under kills; gives winner, kills, jobs started."""
    run, log = f"{folder}/run{number}", f"{folder}/run{number}.log"
    kills, begun = 0, False
    while True:
        begun = begun or os.path.exists(f"{run}/journal.db")
        process = start(rung, ["--resume", run] if begun else [config, "--out", run], log)
        if kills < kills_left:
            try:
                output, _ = process.communicate(timeout=rng.uniform(0, length))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
                continue
        else:
            output, _ = process.communicate(timeout=300)
        text = open(log).read()
        if process.returncode != 0 and "cut before it began" in text.rsplit("\n", 3)[-2]:
            shutil.rmtree(run)  # killed before its first record: nothing was lost, start it again
            begun = False
            continue
        assert process.returncode == 0, text[-2000:]
        return winner(output), kills, text.count("judging candidate")


def main():
    rung = sys.argv[1]
    kills_wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    folder = tempfile.mkdtemp(prefix="rung-resume-")
    config = f"{folder}/pipeline.cfg"
    pathlib.Path(config).write_text(PIPELINE)
    expected, length = undisturbed(rung, folder, config)
    print(f"undisturbed: {expected} in {length:.1f} s", flush=True)
    killed = number = repeats = 0
    while killed < kills_wanted:
        number += 1
        got, kills, jobs = disturbed(rung, folder, config, number, length, min(6, kills_wanted - killed), rng)
        killed += kills
        done = variants(rung, f"{folder}/run{number}")
        repeats += max(0, jobs - done)
        assert got == expected, f"run {number}: {got} instead of {expected}; see {folder}"
        assert jobs - done <= kills * WORKERS, f"run {number}: {jobs} jobs for {done} verdicts, {kills} kills"
        print(f"run {number}: {kills} kills, {jobs} jobs for {done} verdicts", flush=True)
    shutil.rmtree(folder)
    print(f"resume: {killed} kills in {number} runs, {repeats} evaluations repeated, same winner each time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
