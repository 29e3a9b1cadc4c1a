#!/usr/bin/env python3
"""Three hostile kernels in one run: each gets its exact code, and the run goes on behind them to an
accepted winner. The replies come from a cassette made here. usage: hostile_run.py RUNG"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTILE = [("unwritten_half", "output.unwritten"), ("out_of_bounds_read", "mem.out_of_bounds"),
           ("never_ends", "run.timeout")]
PIPELINE = """
task = "%s/config/tasks/softmax_small.cfg";
llm = ( { plugin = "replay"; cassette = "replies.jsonl"; } );
search = { plugin = "branching"; rounds = 1; ideas = 1; branches = 4; keep = 1; repairs = 0; tune = 1; };
workers = ( { device = "ptx"; count = 1; } );
limits = { check = "20s"; };
"""


def reply(key, role, text):
    return json.dumps({"key": key, "role": role, "prompt_sha256": "0" * 64, "reply": text, "finish": "stop",
                       "model": "hostile", "usage": {}})


def code(folder, name):
    return "Here it is.\n\n```cuda\n" + (ROOT / "tests" / folder / f"{name}.cu").read_text() + "```\n"


def cassette():
    kernels = [("exploits", name) for name, _ in HOSTILE] + [("sound", "online_fast_exp")] * 5
    lines = [json.dumps({"rung_cassette": 1, "recorded": "now", "through": "a test"})]
    lines += [reply(f"code/{i}/0", "code", code(*kernel)) for i, kernel in enumerate(kernels, 1)]
    ideas = "- [memory] Find maximum and sum in one read of the row, with a fast exponential.\n"
    lines += [reply(f"ideas/{decision}/{action}", "ideas", ideas) for decision in range(1, 4) for action in range(3)]
    return "\n".join(lines) + "\n"


def main():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "replies.jsonl").write_text(cassette())
        (pathlib.Path(folder) / "hostile.cfg").write_text(PIPELINE % ROOT)
        done = subprocess.run([sys.argv[1], "run", f"{folder}/hostile.cfg", "--json", "--quiet", "--out", f"{folder}/run"],
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (done.returncode, done.stderr[-2000:], done.stdout)
        shown = subprocess.run([sys.argv[1], "show", f"{folder}/run", "--json"], capture_output=True, text=True,
                               timeout=60)
    result, candidates = json.loads(done.stdout), json.loads(shown.stdout)["candidates"]
    for candidate, (name, wanted) in zip(candidates, HOSTILE):
        assert candidate["code"] == wanted, (name, candidate)
    assert result["best"]["candidate"] == 4, result["best"]
    assert len(candidates) > 4 and candidates[-1]["accepted"], candidates
    print(f"hostile run: {result['verdicts']}, best #{result['best']['candidate']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
