#!/usr/bin/env python3
"""The end of a run on a device with a clock: the winner and a runner-up are timed again in fresh processes, in turns
with baselines; a resume repeats nothing; a wrong winner loses. Device, timer and baseline are the fakes of
tests/worker. usage: final.py RUNG PLUGINS"""
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

RUNG, PLUGINS = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
TASK = """name = "nothing"; summary = "Nothing at all";
dims = { rows = 8; };
tensors = ( { name = "x"; role = "input"; dtype = "f32"; shape = "rows"; },
            { name = "y"; role = "output"; dtype = "f32"; shape = "rows"; } );
reference = { plugin = "zero"; graph = "y = 0 * x"; };
bench = { baselines = ( "nosuch" ); };
"""
PIPELINE = """task = "task.cfg"; plugin_path = [ "%s" ];
llm = ( { plugin = "replay"; cassette = "replies.jsonl"; } );
compiler = { plugin = "fake"; };
search = { plugin = "branching"; rounds = 1; ideas = 1; branches = 1; keep = 1; tune = 0; patience = 0; };
devices = ( { plugin = "clock"; } );
workers = ( { device = "clock"; count = 1; } );
references = ( { plugin = "zero"; } );
rungs = ( { plugin = "marker"; } );
timers = ( { plugin = "clock"; } );
timing = { budget = 1.0; baselines = ( { plugin = "fake"; name = "slow"; us = "15"; },
                                       { plugin = "fake"; name = "fast"; us = "8"; what = "tf32"; } ); };
"""
KERNEL = """//@ launch k grid=(1) block=(32) args=(x, y)
// candidate {n}
{markers}
__global__ void k(const float *x, float *y) {{}}
"""


def cassette(kernels):
    lines = [{"rung_cassette": 1, "through": "a test"}]
    for n in range(1, 30):
        words = kernels[min(n, len(kernels)) - 1].split()
        code = KERNEL.format(n=n, markers="\n".join(f"// marker: {word}" for word in words))
        lines.append({"key": f"code/{n}/0", "role": "code", "reply": f"```cuda\n{code}```\n"})
    for decision in range(8):
        for action in range(4):
            lines.append({"key": f"ideas/{decision}/{action}", "role": "ideas",
                          "reply": f"- [memory] Idea {action} of decision {decision}: move data in another order."})
    return "".join(json.dumps(line) + "\n" for line in lines)


class Final(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def rung(self, *args, status=0):
        done = subprocess.run([RUNG, *args], capture_output=True, text=True, cwd=self.folder, timeout=300)
        self.assertEqual(done.returncode, status, done.stderr[-3000:] + done.stdout[-500:])
        return done

    def run_with(self, *kernels, sets=()):
        (self.folder / "task.cfg").write_text(TASK)
        (self.folder / "run.cfg").write_text(PIPELINE % PLUGINS)
        (self.folder / "replies.jsonl").write_text(cassette(kernels))
        args = [word for one in sets for word in ("--set", one)]
        return json.loads(self.rung("run", "run.cfg", "--json", "--out", "run", *args).stdout)

    def records(self, kind):
        with sqlite3.connect(self.folder / "run/journal.db") as db:
            return db.execute("select key, json from records where type = ?", (kind,)).fetchall()

    def named(self, result, name):
        return next(b for b in result["speedups"] if b["name"] == name)

    def test_the_winner_is_timed_again_with_baselines(self):
        result = self.run_with("good", "clock-slow")
        self.assertEqual(result["best"]["candidate"], 1)
        final, slow, fast = result["final"], self.named(result, "slow"), self.named(result, "fast")
        self.assertEqual((final["processes"], slow["processes"]), (3, 3))
        self.assertGreaterEqual(final["spread"], 0)
        self.assertLess(final["spread"], 0.01)
        self.assertEqual(result["best"]["time"]["median_us"], final["median_us"])
        self.assertEqual((slow["verdict"], fast["verdict"]), ("faster", "slower"))
        self.assertAlmostEqual(slow["speedup"], 1.5, delta=0.01)
        self.assertLessEqual(slow["speedup_ci"][0], slow["speedup"])
        self.assertEqual((fast["math"], fast["within_tolerance"]), ("tf32", False))
        missing = self.named(result, "nosuch")
        self.assertFalse(missing["available"])
        self.assertIn("nosuch", missing["why"])
        self.assertEqual(len(self.records("final")), 3)
        self.resume_repeats_nothing(result)
        self.show_tells_it()

    def resume_repeats_nothing(self, result):
        before = self.records("final")
        again = json.loads(self.rung("run", "--resume", "run", "--json").stdout)
        self.assertEqual(again["final"], result["final"])
        self.assertEqual(self.records("final"), before)

    def show_tells_it(self):
        text = self.rung("show", "run").stdout
        for part in ("measured in 3 fresh processes", "vs slow    1.5x faster [", "vs fast    1.2", "x slower [",
                     "tolerance: tf32", "vs nosuch  not available: "):
            self.assertIn(part, text)
        self.assertEqual(json.loads(self.rung("show", "run", "--json").stdout)["final"]["processes"], 3)

    def test_a_runner_up_that_is_near_takes_turns(self):
        result = self.run_with("good", "clock-near", sets=("timing.processes=2",))
        rival = result["final"]["rival"]
        self.assertEqual(rival["verdict"], "same")
        self.assertEqual(result["final"]["processes"], 2)
        self.assertNotEqual(rival["name"], f"candidate {result['best']['candidate']}")

    def test_a_runner_up_that_is_faster_in_turns_wins(self):
        result = self.run_with("clock-bluff", "good", sets=("timing.processes=2",))
        best, final = result["best"], result["final"]
        self.assertNotEqual(best["candidate"], 1)
        self.assertAlmostEqual(best["time"]["median_us"], 10, delta=0.1)
        self.assertEqual((final["rival"]["name"], final["rival"]["verdict"]), ("candidate 1", "faster"))
        self.assertAlmostEqual(self.named(result, "slow")["speedup"], 1.5, delta=0.01)
        self.assertIn(f"// candidate {best['candidate']}\n", (self.folder / "run/best.cu").read_text())
        self.assertEqual(len(self.records("final")), 4)
        again = json.loads(self.rung("run", "--resume", "run", "--json").stdout)
        self.assertEqual((again["best"]["candidate"], again["final"]), (best["candidate"], final))

    def test_a_winner_that_is_wrong_in_turns_loses(self):
        result = self.run_with("clock-wrong-late", "clock-slow", sets=("timing.processes=1",))
        self.assertNotEqual(result["best"]["candidate"], 1)
        self.assertEqual(result["verdicts"]["numeric.mismatch"], 1)
        self.assertAlmostEqual(result["final"]["median_us"], 10.5, delta=0.1)
        candidates = json.loads(self.rung("show", "run", "--json").stdout)["candidates"]
        self.assertEqual((candidates[0]["accepted"], candidates[0]["code"]), (False, "numeric.mismatch"))
        self.assertIn("wrong in a timed launch", self.rung("show", "run", "1").stdout)
        self.rung("export", "run", "-o", "out")
        self.assertIn(f"// candidate {result['best']['candidate']}\n", next((self.folder / "out").glob("*.cu")).read_text())

    def test_a_baseline_that_crashes_costs_nothing_else(self):
        crash = 'timing.baselines=( { plugin = "fake"; what = "crash"; }, { plugin = "fake"; name = "slow"; us = "15"; } )'
        result = self.run_with("good", sets=(crash, "timing.processes=1"))
        self.assertIn("the process died with", self.named(result, "fake")["why"])
        self.assertEqual(self.named(result, "slow")["verdict"], "faster")

    def test_eval_compares_and_says_so(self):
        self.run_with("good", sets=("timing.processes=1",))
        (self.folder / "k.cu").write_text(KERNEL.format(n=1, markers="// marker: good"))
        args = ("eval", "task.cfg", "k.cu", "--pipeline", "run.cfg")
        text = self.rung(*args, "--save", "saved").stderr
        self.assertRegex(text, r"time       1\d(\.\d+)? us \[[\d.]+, [\d.]+\] measured, cold \(flush\), n = \d+; floor 5 us")
        self.assertIn("vs slow    1.5x faster [", text)
        self.assertIn("vs nosuch  not available: ", text)
        samples = json.loads((self.folder / "saved/samples.json").read_text())
        self.assertEqual([k["name"] for k in samples["shapes"][0]["kernels"]], ["candidate", "slow", "fast"])
        report = json.loads(self.rung(*args, "--no-baselines", "--json").stdout)
        self.assertEqual(report["baselines"], [])
        self.assertGreaterEqual(report["time"]["verified"], 3)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
