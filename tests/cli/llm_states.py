#!/usr/bin/env python3
"""Every end that a request to a model can have, with scripted models: what is sent next, what the journal holds, what
it counts as. usage: llm_states.py RUNG TEST_BIN"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from llm_lab import IDEA, Lab, kernel, stop, texts

RUNG, PLUGINS = sys.argv[1], pathlib.Path(sys.argv[2])
WAIT = "limits = { llm_tries = 4; llm_wait = 30; };\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.lab = Lab(RUNG, PLUGINS, self.temporary.name)

    def play(self, code, more="", others=(), **options):
        """A run whose first kernel's request is answered by the steps of `code`."""
        steps = {"code/1/0": code, "ideas": [stop(IDEA)], "*": [stop(kernel())]}
        models = [self.lab.script("one", steps, **options)] + list(others)
        self.lab.write(f"llm = ( {', '.join(models)} );\n", more)
        done = self.lab.run()
        self.sent = self.lab.records("sent")
        self.asked = [a for a in self.lab.asked() if a["key"] == "code/1/0"]
        return done

    def reply(self):
        return self.lab.records("reply")["code/1/0"]

    def other(self, name="two", steps=None, **options):
        return self.lab.script(name, steps or {"*": [stop(kernel(name))], "ideas": [stop(IDEA)]}, **options)


class States(Case):
    def test_stop_takes_one_sending(self):
        done = self.play([stop(kernel())])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((len(self.asked), self.sent), (1, {}))
        self.assertEqual(list(self.lab.records("send"))[0], "code/1/0@0")
        self.assertEqual(self.reply()["text"], kernel())

    def test_length_goes_on_and_joins(self):
        whole = kernel("first half, second half")
        cut = whole.index(", second")
        done = self.play([stop(whole[:cut], finish="length"), stop(whole[cut - 20:], finish="stop")])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.reply()["text"], whole)
        self.assertEqual(self.reply()["finish"], "stop")
        second = texts(self.asked[1])
        self.assertEqual(second[-2], whole[:cut])
        self.assertIn("// first half", second[-1])
        self.assertEqual(self.sent["code/1/0@0"]["finish"], "length")

    def test_length_ends_after_so_many_pieces(self):
        pieces = [stop(f"piece number {i} of many\n", finish="length") for i in range(9)]
        self.play(pieces, "conversation = { continues = 2; };\n")
        self.assertEqual(len(self.asked), 3)
        self.assertEqual(self.reply()["finish"], "length")
        self.assertEqual(self.reply()["text"].count("piece number"), 3)

    def test_the_cap_rises_where_the_model_allows_it(self):
        self.play([stop("```cuda\nint a", finish="length"), stop("b;\n```\n", finish="length"), stop("done")],
                  max_output_tokens=1000, output_cap=3000)
        self.assertEqual([a["cap"] for a in self.asked], [0, 2000, 3000])

    def test_reasoning_is_tried_once_more_with_less(self):
        nothing = {"finish": "reasoning", "usage": {"input": 100, "output": 0, "reasoning": 500}}
        self.play([nothing, stop(kernel())])
        self.assertEqual([a["effort"] for a in self.asked], [0, 1])
        self.assertEqual(self.reply()["finish"], "stop")

    def test_reasoning_twice_is_a_verdict(self):
        nothing = {"finish": "reasoning", "usage": {"input": 100, "output": 0, "reasoning": 500}}
        done = self.play([nothing], "limits = { compile_repairs = 0; };\n", max_output_tokens=1000, output_cap=8000)
        self.assertEqual([a["cap"] for a in self.asked], [0, 2000])
        self.assertEqual(self.reply()["finish"], "reasoning")
        self.assertIn("reply.none", done.report["verdicts"], done.report)

    def test_a_refusal_is_rephrased_then_goes_to_the_next_model(self):
        refusal = {"finish": "refused", "usage": {"input": 100, "output": 3}}
        done = self.play([refusal], others=[self.other(weight=0)])
        self.assertEqual([a["as"] for a in self.asked], ["one", "one", "two"])
        self.assertIn("ordinary numerical engineering", texts(self.asked[1])[-1])
        self.assertTrue(texts(self.asked[1])[-1].startswith(texts(self.asked[0])[-1]))
        self.assertIn("llm 'two' takes the request over", done.stderr)
        self.assertEqual(self.lab.records("send")["code/1/0@2"]["why"], "switch")
        self.assertEqual(self.reply()["llm"], "two")

    def test_a_refusal_of_all_is_a_verdict(self):
        refusal = {"finish": "refused", "usage": {"input": 100, "output": 3}}
        done = self.play([refusal], "limits = { compile_repairs = 0; };\n")
        self.assertEqual(len(self.asked), 2)
        self.assertIn("reply.refused", done.report["verdicts"])

    def test_a_prompt_that_is_too_long_shrinks(self):
        broken = "```cuda\n//@ launch k grid=(1) block=(32) args=(rows, rows)\n// marker: compile-error\n" + "x" * 30000 + "\n```\n"
        steps = {"code/1/0": [stop(broken)], "repair/1/1": [{"finish": "context"}, {"finish": "context"}, stop(kernel())],
                 "ideas": [stop(IDEA)], "*": [stop(kernel())]}
        self.lab.write(f"llm = ( {self.lab.script('one', steps)} );\n")
        done = self.lab.run()
        self.assertEqual(done.returncode, 0, done.stderr)
        asked = [a for a in self.lab.asked() if a["key"] == "repair/1/1"]
        sizes = [sum(map(len, texts(a))) for a in asked]
        self.assertEqual(len(sizes), 3, sizes)
        self.assertTrue(sizes[0] > sizes[1] > sizes[2], sizes)
        self.assertIn("bytes left out", "".join(texts(asked[1])))
        for later in asked[1:]:
            self.assertEqual(texts(later)[0], texts(asked[0])[0])
            self.assertEqual(later["messages"][1]["parts"][0], asked[0]["messages"][1]["parts"][0])

    def test_a_cut_stream_is_sent_again_and_billed_as_a_guess(self):
        cut = {"error": "http.broken", "code": 6, "cut": True, "text": "x" * 4000}
        done = self.play([cut, stop(kernel())], WAIT)
        self.assertEqual(len(self.asked), 2)
        ended = self.sent["code/1/0@0"]
        self.assertEqual((ended["end"], ended["billed"], ended["usage"]["output"]), ("cut", "guessed", 1000))
        self.assertTrue(ended["usage"]["estimated"] and ended["usage"]["input"] > 100)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_rate_limit_waits_as_the_server_says(self):
        self.play([{"error": "llm.rate", "code": 9, "after_ms": 1500}, stop(kernel())], WAIT)
        waited = self.asked[1]["begun"] - self.asked[0]["ended"]
        self.assertTrue(1.5 <= waited < 4, waited)
        self.assertEqual(self.sent["code/1/0@0"]["billed"], "no")

    def test_overload_backs_off_then_goes_to_the_next_model(self):
        busy = {"error": "llm.overloaded", "code": 10, "after_ms": 20}
        done = self.play([busy], WAIT, others=[self.other(weight=0)])
        self.assertEqual([a["as"] for a in self.asked], ["one"] * 4 + ["two"])
        self.assertIn("given up after 4 tries", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_waits_are_bounded_in_all(self):
        busy = {"error": "llm.overloaded", "code": 10, "after_ms": 1200}
        done = self.play([busy], "limits = { llm_tries = 100; llm_wait = 2; };\n")
        self.assertEqual(len(self.asked), 2)
        self.assertIn("code/1/0", self.lab.records("failure"))
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_quota_stops_one_model_and_not_the_others(self):
        gone = {"error": "llm.quota", "code": 11}
        steps = {"*": [gone]}
        self.lab.write(f"llm = ( {self.lab.script('one', steps)}, {self.other()} );\n")
        done = self.lab.run()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(len([a for a in self.lab.asked() if a["as"] == "one"]), 2)
        self.assertIn("no more is asked of it for the rest of the run", done.stderr)

    def test_quota_of_the_last_model_ends_the_run(self):
        self.lab.write(f"llm = ( {self.lab.script('one', {'*': [{'error': 'llm.quota', 'code': 11}]})} );\n")
        done = self.lab.run()
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no llm is left for the role", done.report["stop"])

    def test_a_bad_key_ends_the_run_at_once(self):
        self.play([{"error": "llm.key", "code": 2}], others=[self.other(weight=0)])
        done = self.lab.resume()
        self.assertEqual(len([a for a in self.lab.asked() if a["as"] == "two" and a["key"] == "code/1/0"]), 0)
        self.assertEqual(done.returncode, 3)
        self.assertIn("llm.key", done.stderr)

    def test_an_unknown_model_is_left_for_the_next(self):
        done = self.play([{"error": "llm.model", "code": 2}], others=[self.other(weight=0)])
        self.assertEqual([a["as"] for a in self.asked], ["one", "two"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([a for a in self.lab.asked() if a["as"] == "one"], self.asked[:1])

    def test_a_request_that_is_refused_goes_on_once(self):
        done = self.play([{"error": "llm.request", "code": 2}], others=[self.other(weight=0)])
        self.assertEqual([a["as"] for a in self.asked], ["one", "two"])
        self.assertEqual(done.returncode, 0)

    def test_a_failed_check_is_mended_in_the_same_conversation(self):
        wrong = kernel("marker: fail")
        done = self.play([stop(wrong)], "limits = { check_repairs = 1; };\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        repair = [a for a in self.lab.asked() if a["key"] == "repair/1/1"]
        self.assertEqual(len(repair), 1)
        self.assertEqual(texts(repair[0])[:2], texts(self.asked[0]))
        self.assertIn("numeric.mismatch", texts(repair[0])[-1])


class Resumed(Case):
    def test_a_failure_that_the_policy_went_on_from_stands(self):
        ideas = stop(IDEA + "- [latency] Start the next load before the last one is used.\n")
        steps = {"code/2/0": [{"error": "llm.request", "code": 2}], "ideas": [ideas], "*": [stop(kernel())]}
        self.lab.write(f"llm = ( {self.lab.script('one', steps)} );\n")
        done = self.lab.run("--set", "search.ideas=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.lab.records("failure")), ["code/2/0"])
        before = len(self.lab.asked())
        self.lab.script("one", {"*": [stop(kernel("another"))]})
        again = self.lab.resume()
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(self.lab.asked()), before)
        for name in ("best", "verdicts", "tokens", "calls", "cost_usd", "stop"):
            self.assertEqual(again.report[name], done.report[name])

    def test_what_each_sending_cost_counts_again_and_nothing_is_asked(self):
        cut = {"error": "http.broken", "code": 6, "cut": True, "text": "x" * 4000}
        done = self.play([cut, stop("piece one,", finish="length"), stop(" piece two")], WAIT,
                         price="{ input = 1.0; output = 2.0; }")
        before = len(self.lab.asked())
        again = self.lab.resume()
        self.assertEqual(len(self.lab.asked()), before)
        for name in ("verdicts", "tokens", "calls", "cost_usd"):
            self.assertEqual(again.report[name], done.report[name])


class Prefix(Case):
    def test_every_request_begins_with_the_same_bytes(self):
        broken = stop("```cuda\n//@ launch k grid=(1) block=(32) args=(rows, rows)\n// marker: compile-error\n```\n")
        self.play([broken, stop(kernel())])
        asked = self.lab.asked()
        self.assertGreaterEqual(len({a["key"] for a in asked}), 3)
        heads = {json.dumps([a["messages"][0], a["messages"][1]["parts"][0]]) for a in asked}
        self.assertEqual(len(heads), 1)
        for a in asked:
            marks = [(m, p) for m, message in enumerate(a["messages"]) for p, part in enumerate(message["parts"])
                     if part["mark"]]
            self.assertEqual(marks, [(1, 0)])
            self.assertIn("## Task", a["messages"][1]["parts"][0]["text"])

    def test_long_logs_lose_their_middle(self):
        self.play([stop("no kernel, but words: " + "w" * 3000)], "conversation = { log_bytes = 256; };\n")
        self.assertEqual(self.lab.records("reply")["code/1/0"]["text"][:9], "no kernel")


class Budget(Case):
    def priced(self, name="one", steps=None, **more):
        steps = steps or {"ideas": [stop(IDEA)], "*": [stop(kernel())]}
        return self.lab.script(name, steps, price="{ input = 10.0; output = 100.0; }", **more)

    def test_money_counts_exactly_and_estimates_apart(self):
        steps = {"code/1/0": [{"error": "http.broken", "code": 6, "cut": True, "text": "x" * 400}, stop(kernel())],
                 "ideas": [stop(IDEA)], "*": [stop(kernel())]}
        self.lab.write(f"llm = ( {self.priced(steps=steps, max_output_tokens=100)} );\n", "budget = { usd = 100.0; };\n")
        done = self.lab.run()
        self.assertEqual(done.returncode, 0, done.stderr)
        replies = len(self.lab.records("reply"))
        self.assertAlmostEqual(done.report["cost_usd"], replies * (100 * 10 + 10 * 100) * 1e-6, delta=1e-12)
        self.assertEqual(done.report["calls"], replies + 1)
        shown = subprocess.run([RUNG, "show", str(self.lab.folder / "run"), "--json"], capture_output=True, text=True,
                               timeout=60)
        spent = json.loads(shown.stdout)["spent"]
        self.assertAlmostEqual(spent["usd"], done.report["cost_usd"], delta=1e-12)
        self.assertEqual(spent["tokens"]["output"], replies * 10)
        self.assertEqual((spent["estimated"]["calls"], spent["estimated"]["tokens"]["output"]), (1, 100))
        people = subprocess.run([RUNG, "show", str(self.lab.folder / "run")], capture_output=True, text=True, timeout=60)
        self.assertIn("estimated, for 1 of the calls", people.stdout)

    def test_nothing_is_sent_that_could_pass_the_limit(self):
        self.lab.write(f"llm = ( {self.priced(max_output_tokens=1000)} );\n", "budget = { usd = 0.1; };\n")
        done = self.lab.run()
        self.assertEqual(done.report["calls"], 0, done.stderr)
        self.assertIn("the budget ends here", done.stderr)
        self.assertEqual(done.report["stop"], "the budget is used up")

    def test_tokens_and_calls_are_limits(self):
        for limit, most in (("calls = 7", 7), ("tokens = 9000", 9000)):
            with tempfile.TemporaryDirectory() as folder:
                self.lab = Lab(RUNG, PLUGINS, folder)
                ideas = [stop(f"- [memory] Idea number {i}, unlike all that came before it.\n") for i in range(99)]
                steps = {"ideas": ideas, "*": [stop(kernel())]}
                self.lab.write(f"llm = ( {self.priced(steps=steps, max_output_tokens=10)} );\n", f"budget = {{ {limit}; }};\n")
                done = self.lab.run("--set", "search.rounds=20", "--set", "search.branches=3", "--set", "search.patience=0")
                used = done.report["calls"] if "calls" in limit else sum(done.report["tokens"].values())
                self.assertLessEqual(used, most, done.report)
                self.assertGreater(used, 0, done.stderr)
                self.assertEqual(done.report["stop"], "the budget is used up")

    def test_an_unknown_price_is_refused_unless_allowed(self):
        self.lab.write(f"llm = ( {self.lab.script('one', {'*': [stop(kernel())], 'ideas': [stop(IDEA)]})} );\n",
                       "budget = { usd = 1.0; };\n")
        done = self.lab.run()
        self.assertEqual(done.returncode, 2)
        self.assertIn("allow_unknown_price", done.stderr)
        done = self.lab.run("--set", "budget.allow_unknown_price=true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("costs is not known"), 1)
        self.assertIsNone(done.report["cost_usd"])

    def test_prices_of_a_users_file_count(self):
        (self.lab.folder / "rung").mkdir()
        (self.lab.folder / "rung/prices.cfg").write_text(
            'prices = ( { plugin = "scr*"; model = ""; input = 1.0; output = 2.0; } );\n')
        self.lab.write(f"llm = ( {self.lab.script('one', {'*': [stop(kernel())], 'ideas': [stop(IDEA)]}, max_output_tokens=50)} );\n",
                       "budget = { usd = 1.0; };\n")
        done = self.lab.run(env={"XDG_CONFIG_HOME": str(self.lab.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(done.report["cost_usd"], done.report["calls"] * 120e-6, delta=1e-12)


class Tools(Case):
    def call(self, arguments, name="compile", number="c1", **more):
        return {"finish": "tool_calls", "opaque": "sig", "usage": {"input": 100, "output": 5},
                "calls": [{"id": number, "name": name, "arguments": arguments}]} | more

    def tool_run(self, steps, more=""):
        done = self.play(steps, 'tools = ( "compile" );\n' + more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def result(self, request):
        return request["messages"][-1]["parts"][0]

    def test_a_trial_compile(self):
        self.tool_run([self.call(json.dumps({"source": kernel()})), stop(kernel())])
        self.assertEqual(self.asked[0]["tools"], ["compile"])
        echoed = self.asked[1]["messages"][-2]["parts"]
        self.assertEqual([part["kind"] for part in echoed], [4, 2])
        self.assertEqual(echoed[0]["text"], "sig")
        self.assertEqual((self.result(self.asked[1])["kind"], self.result(self.asked[1])["id"]), (3, "c1"))
        self.assertIn("17 registers", self.result(self.asked[1])["text"])

    def test_the_compilers_log_comes_back(self):
        source = kernel("marker: compile-error")
        self.tool_run([self.call(json.dumps({"source": source})), stop(kernel())])
        self.assertIn("k.cu(1): error: no", self.result(self.asked[1])["text"])

    def test_wrong_calls_are_answered_in_words(self):
        cases = [("{not json", "compile", "not one JSON object"), ("[1]", "compile", "not one JSON object"),
                 ("{}", "compile", "'source' is missing"), ('{"source": 7}', "compile", "'source' is missing"),
                 ('{"source": "words"}', "compile", "Not compiled"), ("{}", "rm", "There is no tool 'rm'")]
        self.tool_run([self.call(arguments, name) for arguments, name, _ in cases] + [stop(kernel())])
        for request, (_, _, words) in zip(self.asked[1:], cases):
            self.assertIn(words, self.result(request)["text"])

    def test_endless_calling_ends(self):
        self.tool_run([self.call("{}")], "conversation = { tool_calls = 3; };\n")
        self.assertEqual(len(self.asked), 3 + 1 + 2)
        self.assertIn("limit of tool calls", self.result(self.asked[-1])["text"])
        self.assertEqual(self.reply()["finish"], "tool_calls")

    def test_results_are_bounded_in_bytes(self):
        self.tool_run([self.call(json.dumps({"source": kernel()}))] * 3 + [stop(kernel())],
                      "conversation = { tool_bytes = 300; };\n")
        total = sum(len(self.result(request)["text"]) for request in self.asked[1:2])
        self.assertLessEqual(total, 400)
        self.assertIn("No more results", self.result(self.asked[2])["text"])

    def test_calls_without_an_offer_are_answered(self):
        done = self.play([self.call("{}"), stop(kernel())])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.asked[0]["tools"], [])
        self.assertIn("there is: none", self.result(self.asked[1])["text"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=1)
