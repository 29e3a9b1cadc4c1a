#!/usr/bin/env python3
"""Replays the cassette in which a model's replies were recorded through the mailbox: the same replies
must get the same verdicts. usage: replay.py RUNG [EVALUATIONS]"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPELINE = """
task = "%s/config/tasks/softmax.cfg";
llm = ( { name = "replay"; plugin = "replay"; cassette = "%s/tests/cassettes/softmax.jsonl"; } );
search = { plugin = "branching"; rounds = 2; ideas = 3; branches = 2; keep = 2; tune = 2; seed = 1; };
workers = ( { device = "ptx"; count = 1; } );
budget = { evaluations = %d; };
"""


def main():
    rung, evaluations = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30
    header = json.loads((ROOT / "tests/cassettes/softmax.jsonl").read_text().splitlines()[0])
    assert header["through"] == "mailbox", header
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "replay.cfg"
        config.write_text(PIPELINE % (ROOT, ROOT, evaluations))
        done = subprocess.run([rung, "run", str(config), "--json", "--quiet", "--out", folder + "/run"],
                              capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-2000:]
        result = json.loads(done.stdout)
    assert set(result["verdicts"]) <= {"accepted", "not_judged"}, result["verdicts"]
    if evaluations >= 20:
        assert result["verdicts"] == {"accepted": 14}, result["verdicts"]
        assert result["best"]["candidate"] == 3, result["best"]
    print(f"replay: {result['verdicts']}, best #{result['best']['candidate']} in {result['wall_s']:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
