#!/usr/bin/env python3
"""What a pipeline file says of a run: rungs for the best and the winner, stops, budgets, prices, examples.
usage: run_options.py RUNG"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNG = os.path.abspath(sys.argv[1])
TASK = f"{ROOT}/config/tasks/softmax_small.cfg"
SEARCH = 'search = { plugin = "branching"; rounds = 2; ideas = 2; branches = 1; keep = 1; tune = 0; };\n'
NUMERIC = '{ name = "numeric"; plugin = "numeric"; }'


class Run:
    """One run of a pipeline made of the given lines over the catalog, on the interpreter."""

    def __init__(self, case, lines, search=SEARCH, llm='llm = ( { plugin = "catalog"; } );\n'):
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        self.path = folder.name
        pathlib.Path(self.path, "p.cfg").write_text(
            f'task = "{TASK}";\n{llm}{search}workers = ( {{ device = "ptx"; count = 2; }} );\n{lines}')
        done = subprocess.run([RUNG, "run", "p.cfg", "--out", "run", "--json"], capture_output=True, text=True,
                              timeout=300, cwd=self.path)
        self.status, self.text = done.returncode, done.stderr
        self.report = json.loads(done.stdout) if done.stdout else None

    def show(self, *arguments):
        done = subprocess.run([RUNG, "show", "run", *arguments, "--json"], capture_output=True, text=True, cwd=self.path)
        return json.loads(done.stdout)

    def prompts(self):
        """First messages of all requests for code, from the journal."""
        import sqlite3
        with sqlite3.connect(f"{self.path}/run/journal.db") as db:
            rows = db.execute("SELECT json FROM records WHERE type = 'request' AND key LIKE 'code/%'").fetchall()
        return [json.loads(row[0])["messages"][1]["text"] for row in rows]


class Rungs(unittest.TestCase):
    def occasions(self, run, number):
        return [v.get("occasion", "always") for v in run.show(str(number))["variants"]]

    def test_rungs_for_the_best_run_on_no_other(self):
        run = Run(self, f'rungs = ( {NUMERIC}, {{ name = "again"; plugin = "numeric"; when = "best"; }} );\n')
        self.assertEqual(run.status, 0, run.text)
        best = run.report["best"]["candidate"]
        self.assertIn("best", self.occasions(run, best))
        never = [c["number"] for c in run.show()["candidates"] if "best" not in self.occasions(run, c["number"])]
        self.assertTrue(never)
        rungs = {r["rung"]: r for r in run.show(str(never[0]))["report"]["rungs"]}
        self.assertEqual((rungs["numeric"]["status"], rungs["again"]["status"]), ("pass", "skipped"))

    def test_the_winner_alone_meets_the_final_rungs(self):
        run = Run(self, f'rungs = ( {NUMERIC}, {{ name = "last"; plugin = "numeric"; when = "final"; }} );\n')
        self.assertEqual(run.status, 0, run.text)
        met = [c["number"] for c in run.show()["candidates"] if "final" in self.occasions(run, c["number"])]
        self.assertEqual(met, [run.report["best"]["candidate"]])

    def test_a_rung_that_no_worker_can_run_is_told_and_skipped(self):
        run = Run(self, f'rungs = ( {NUMERIC}, {{ name = "gpu"; plugin = "numeric"; on = "cuda"; }} );\n')
        self.assertEqual(run.status, 0, run.text)
        self.assertIn("rung gpu is skipped: it runs on cuda, and no worker has it", run.text)


class Ends(unittest.TestCase):
    def test_the_roofline_is_enough(self):
        run = Run(self, "stop = { roofline = 1e-6; };\n")
        self.assertEqual(run.status, 0, run.text)
        self.assertIn("of the speed that the physical floor allows", run.report["stop"])
        self.assertEqual(run.report["ideas"], 0)

    def test_a_target_time_is_enough(self):
        self.assertEqual(Run(self, 'stop = { target = "1s"; };\n').report["stop"], "the target time is reached")

    def test_patience_ends_where_nothing_gets_faster(self):
        many = 'search = { plugin = "branching"; rounds = 50; ideas = 1; branches = 1; keep = 1; tune = 0; patience = 0; };\n'
        run = Run(self, "stop = { patience = 2; };\n", search=many)
        self.assertEqual(run.report["stop"], "2 rounds brought no faster kernel")

    def test_evaluations_are_a_limit(self):
        run = Run(self, "budget = { evaluations = 3; };\n")
        self.assertEqual(run.report["stop"], "the budget is used up")
        self.assertEqual(run.report["evaluations"], 3)

    def test_a_budget_may_end_in_the_middle_of_tuning(self):
        tuned = 'search = { plugin = "branching"; rounds = 3; ideas = 3; branches = 1; keep = 2; tune = 6; };\n'
        for limit in (4, 9):
            run = Run(self, f"budget = {{ evaluations = {limit}; }};\n", search=tuned)
            self.assertEqual((run.status, run.report["stop"]), (0, "the budget is used up"), run.text)
            self.assertLessEqual(run.report["evaluations"], limit + 2)

    def test_the_budget_in_money_counts_prices(self):
        priced = 'llm = ( { plugin = "catalog"; price = { input = 1e6; output = 1e6; }; } );\n'
        run = Run(self, "budget = { usd = 4000.0; };\n", llm=priced)
        self.assertEqual(run.report["stop"], "the budget is used up")
        self.assertGreaterEqual(run.report["cost_usd"], 4000)
        tokens = run.report["tokens"]
        self.assertAlmostEqual(run.report["cost_usd"], tokens["input"] + tokens["output"], delta=1e-6)

    def test_what_costs_nothing_needs_no_price(self):
        run = Run(self, "budget = { usd = 1.0; };\n")
        self.assertEqual((run.status, run.report["cost_usd"]), (0, 0), run.text)


class Prompts(unittest.TestCase):
    def test_examples_stand_in_prompts_of_first_kernels(self):
        run = Run(self, 'examples = ( { plugin = "catalog"; count = 1; } );\n')
        self.assertEqual(run.status, 0, run.text)
        prompts = run.prompts()
        first = [p for p in prompts if "(none: start from nothing)" in p]
        self.assertTrue(first and all("## Examples" in p and "__global__" in p for p in first))
        self.assertFalse(any("## Examples" in p for p in prompts if p not in first))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
