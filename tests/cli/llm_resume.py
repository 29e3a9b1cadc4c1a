#!/usr/bin/env python3
"""Kills a run with SIGKILL at random instants while it talks to a server of ours, and resumes it until it ends.
No request that was answered is sent again, every one that was sent and not ended is sent again and counted as an
estimate, and the spend of the last process is what the server's own ledger says.
usage: llm_resume.py RUNG TEST_BIN [KILLS] [SEED]"""
import collections
import hashlib
import json
import os
import pathlib
import random
import signal
import shutil
import subprocess
import sys
import tempfile
import time

from llm_lab import Lab

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOCK = ROOT / "bench/llm/mock.py"
LLM = """llm = ( { name = "mock"; plugin = "openai"; model = "mock-1"; url = "http://127.0.0.1:%d"; parallel = 8;
          price = { input = 2.0; output = 10.0; }; } );
"""
SETS = ["search.rounds=5", "search.ideas=3", "search.branches=2", "search.keep=2", "search.patience=0",
        "limits.llm_parallel=8"]


def start_mock(folder):
    mock = subprocess.Popen([sys.executable, MOCK, "--ledger", f"{folder}/ledger", "--delay-ms", "40"],
                            stdout=subprocess.PIPE, text=True)
    return mock, int(mock.stdout.readline())


def until_its_end(lab, kills_left, rng):
    kills, begun = 0, False
    sets = [word for setting in SETS for word in ("--set", setting)]
    while True:
        begun = begun or (lab.folder / "run/journal.db").exists()
        command = [lab.rung, "run", "--resume", str(lab.folder / "run"), "--json"] if begun else lab.command(*sets)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        try:
            output, errors = process.communicate(timeout=rng.uniform(0.05, 0.8) if kills < kills_left else 120)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        if process.returncode and "cut before it began" in errors:
            shutil.rmtree(lab.folder / "run")
            begun = False
            continue
        assert process.returncode == 0, errors[-3000:]
        return json.loads(output), kills


def prompt_of(request):
    return hashlib.sha256("\0".join(m["text"] for m in request["messages"]).encode()).hexdigest()[:16]


def check(lab, report, kills):
    ledger = [json.loads(line) for line in (lab.folder / "ledger").read_text().splitlines()]
    replies, sent, sends = lab.records("reply"), lab.records("sent"), lab.records("send")
    lost = {key: record for key, record in sent.items() if record["end"] == "lost"}
    # Every sending has one end: a record of its own, or its reply's.
    ended = set(sent) | {"%s@%d" % (key, reply.get("sendings", 1) - 1) for key, reply in replies.items()}
    assert set(sends) == ended, set(sends) ^ ended
    # The server saw the sendings that ended and at most those that were under way at a kill.
    good = len(sends) - len(lost)
    assert good <= len(ledger) <= len(sends), (good, len(ledger), len(sends))
    # Nothing that was answered was asked again: each prompt came as often as the journal holds sendings of it.
    prompts = {key: prompt_of(request) for key, request in lab.records("request").items()}
    journaled = collections.Counter(prompts[key.split("@")[0]] for key in sends)
    seen = collections.Counter(entry["key"] for entry in ledger)
    assert all(seen[prompt] <= journaled[prompt] for prompt in seen), (seen, journaled)
    assert len(lost) <= kills * 10, (len(lost), kills)
    # Money: what was reported is exact, what was lost stands apart, marked.
    usage = [reply["usage"] for reply in replies.values()]
    exact = sum(u["input"] * 2 + u["output"] * 10 for u in usage) * 1e-6
    assert abs(report["cost_usd"] - exact) < 1e-9, (report["cost_usd"], exact)
    assert all(record["usage"]["estimated"] and record["billed"] == "guessed" for record in lost.values())
    assert report["calls"] == len(replies) + len(lost), (report["calls"], len(replies), len(lost))
    return len(sends), len(lost)


def main():
    rung, plugins = sys.argv[1], sys.argv[2]
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    killed = sendings = lost = number = 0
    while killed < wanted:
        number += 1
        with tempfile.TemporaryDirectory() as folder:
            lab = Lab(rung, plugins, folder)
            mock, port = start_mock(folder)
            try:
                lab.write(LLM % port)
                report, kills = until_its_end(lab, min(5, wanted - killed), rng)
                time.sleep(0.1)
                counts = check(lab, report, kills)
            finally:
                mock.kill()
                mock.wait()
        killed, sendings, lost = killed + kills, sendings + counts[0], lost + counts[1]
    print(f"llm resume: {killed} kills in {number} runs, {sendings} sendings, {lost} lost and sent again, none twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
