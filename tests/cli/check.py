#!/usr/bin/env python3
"""`rung check`, and the same checks in run and eval: what is good is said in a line; every fault is told at once with
file and line; no file, however hostile, does worse than be refused. usage: check.py RUNG"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNG = sys.argv[1]
TASK = f"{ROOT}/config/tasks/softmax_small.cfg"
SOUND = f"{ROOT}/tests/sound/serial.cu"
GOOD_TASK = """name = "t";
dims = { rows = 64; cols = 64; };
tensors = (
  { name = "x"; role = "input"; dtype = "f32"; shape = "rows, cols"; },
  { name = "y"; role = "output"; dtype = "f32"; shape = "rows, cols"; } );
reference = { plugin = "ops"; graph = "y = softmax(x, axis=1)"; };
check = { extra = ( { rows = 3; cols = 33; } ); };
"""
GOOD_PIPELINE = f"""task = "{TASK}";
llm = ( {{ name = "writer"; plugin = "catalog"; }} );
"""


class Case(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def put(self, text, name="f.cfg"):
        path = pathlib.Path(self.folder, name)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text)
        return str(path)

    def rung(self, *arguments):
        env = {name: value for name, value in os.environ.items() if name != "RUNG_PLUGIN_PATH"}
        env["XDG_CONFIG_HOME"] = self.folder
        done = subprocess.run([RUNG, *arguments], capture_output=True, text=True, timeout=120, env=env)
        self.assertNotIn("Sanitizer", done.stderr)
        return done

    def good(self, *arguments):
        done = self.rung("check", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def bad(self, text, *want, more=()):
        """Checks the text as a file; each of want stands in what is told."""
        done = self.rung("check", self.put(text), *more)
        self.assertEqual((done.returncode, done.stdout), (2, ""), (text[:200], done.stderr))
        for words in want:
            self.assertIn(words, done.stderr)
        return done.stderr.splitlines()


class Good(Case):
    def test_all_that_is_shipped_is_good_and_said_in_a_line_each(self):
        files = sorted(map(str, [*ROOT.glob("config/tasks/*.cfg"), *ROOT.glob("config/pipelines/*.cfg")]))
        done = self.good(*files)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), len(files))
        for file, line in zip(files, lines):
            self.assertTrue(line.startswith(f"{file}: good: "), line)

    def test_what_was_checked_is_named(self):
        done = self.good(self.put(GOOD_TASK))
        self.assertIn("task 't' (2 dims, 2 tensors, 1 bench shape, 1 extra check shape; "
                      "graph computed by reference ops)", done.stdout)
        done = self.good(self.put(GOOD_PIPELINE))
        self.assertIn("pipeline (search branching; llm writer; rungs numeric) on task 'softmax_small'", done.stdout)

    def test_json_is_one_object(self):
        good, bad = self.put(GOOD_TASK, "good.cfg"), self.put("name = 5;\n\ntensors = 1;\n", "bad.cfg")
        done = self.rung("check", good, bad, "--json")
        self.assertEqual(done.returncode, 2)
        report = json.loads(done.stdout)
        self.assertFalse(report["ok"])
        self.assertEqual([(f["file"], f["kind"], f["ok"]) for f in report["files"]],
                         [(good, "task", True), (bad, "task", False)])
        places = [(f["file"], f["line"]) for f in report["faults"]]
        self.assertIn((bad, 1), places)
        self.assertIn((bad, 3), places)
        self.assertIn("'name' must be a string", report["faults"][0]["message"])
        self.assertIsNone(json.loads(self.rung("check", "/no/such", "--json").stdout)["faults"][0]["line"])

    def test_a_base_file_alone_is_a_pipeline(self):
        self.put('search = { plugin = "branching"; rounds = 2; };', "lab.cfg")
        done = self.good(self.put('base = "lab.cfg";'))
        self.assertIn("llm none yet; rungs numeric; task none yet", done.stdout)


class Pipelines(Case):
    def test_every_fault_is_told_at_once(self):
        lines = self.bad("""serch = { rounds = 1; };
llm = ( { plugin = "catalog"; wieght = 2; } );
budget = { wall = "2 parsecs"; tokens = -1; };
stop = { roofline = 2; };
workers = ( { device = "ptx"; cuont = 2; } );
task = "nothing.cfg";
""", "f.cfg:1: a pipeline has no setting 'serch'; did you mean 'search'?", "f.cfg:3: 'wall' must be a duration",
                         "f.cfg:3: 'tokens' is -1", "f.cfg:4: 'roofline' is 2", "did you mean 'count'?")
        self.assertEqual(len(lines), 5)

    def test_settings_of_plugins_are_checked_with_the_rest(self):
        lines = self.bad("""llm = ( { plugin = "catalog"; wieght = 2; } );
search = { plugin = "branching"; rouns = 3; ideas = "many"; };
task = "nothing.cfg";
devices = ( { plugin = "ptx"; threds = 1; } );
""", "f.cfg:1: llm 'catalog' has no setting 'wieght'; did you mean 'weight'?",
                         "f.cfg:2: search 'branching' has no setting 'rouns'; did you mean 'rounds'? (it knows: name,",
                         "f.cfg:2: 'ideas' must be an integer, not a string", "nothing.cfg: can't be opened",
                         "f.cfg:4: device 'ptx' has no setting 'threds'")
        self.assertEqual(len(lines), 5)

    def test_a_plugin_that_is_not_installed_is_told_with_those_that_are(self):
        self.bad(GOOD_PIPELINE + 'search = { plugin = "branchin"; };\n', "f.cfg:3: no search plugin 'branchin'",
                 "did you mean 'branching'?", "there are: ")
        self.bad(GOOD_PIPELINE + 'rungs = ( { plugin = "numeric"; on = ( "ptx", "cudda" ); } );\n',
                 "f.cfg:3: no device plugin 'cudda'; did you mean 'cuda'?")
        self.bad(GOOD_PIPELINE + 'workers = ( { device = "gpu"; } );\n', "f.cfg:3: no device plugin 'gpu'")
        self.bad(GOOD_PIPELINE + 'timing = { timer = "evnts"; };\n', "f.cfg:3: no timer plugin 'evnts'")
        self.bad(GOOD_PIPELINE + 'timing = {\n baselines = ( "nosuch" ); };\n', "f.cfg:4: no baseline plugin 'nosuch'")
        self.bad(GOOD_PIPELINE + 'profile = ( { plugin = "nosuch"; } );\n', "f.cfg:3: no profiler plugin 'nosuch'")
        self.bad(GOOD_PIPELINE + 'examples = ( { plugin = "nosuch"; } );\n', "f.cfg:3: no examples plugin 'nosuch'")
        self.bad(GOOD_PIPELINE + 'context = ( { path = "nosuch"; } );\n', "f.cfg:3: ", "nosuch: can't be read")
        self.bad(GOOD_PIPELINE + 'rungs = ( { plugin = "./mine.so"; } );\n', f"{self.folder}/./mine.so")

    def test_auto_does_without_a_device_that_is_not_there_and_says_so(self):
        done = self.good(self.put(GOOD_PIPELINE + 'devices = ( { plugin = "cudda"; }, { plugin = "ptx"; } );\n'))
        self.assertIn('f.cfg:3: note: "auto" does without it: no device plugin \'cudda\'', done.stderr)

    def test_context_without_a_plugin_for_it_is_noted(self):
        done = self.good(self.put(GOOD_PIPELINE + 'context = ( { path = "."; } );\n'))
        self.assertIn("f.cfg:3: note: 'context' is not used", done.stderr)

    def test_a_plugin_can_be_a_file_beside_the_pipeline(self):
        plugins = json.loads(self.rung("plugin", "list", "--json").stdout)
        numeric = next(p["path"] for p in plugins for f in p["factories"] if f["name"] == "numeric")
        os.mkdir(self.folder + "/lab")
        shutil.copy(numeric, self.folder + "/lab/mine.so")
        pipeline = self.put('base = "f.cfg";\nrungs = ( { name = "mine"; plugin = "./mine.so"; } );\n', "lab/lab.cfg")
        self.put(GOOD_PIPELINE, "lab/f.cfg")
        self.good(pipeline)
        done = self.rung("eval", TASK, SOUND, "--device", "ptx", "--pipeline", pipeline, "--json", "--only", "check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([r["rung"] for r in json.loads(done.stdout)["rungs"]], ["mine"])
        shutil.copy(numeric, self.folder + "/lab/verifier_numeric.so")
        pipeline = self.put('base = "f.cfg";\nplugin_path = ( "." );\n', "lab/lab.cfg")
        done = self.rung("eval", TASK, SOUND, "--device", "ptx", "--pipeline", pipeline, "--only", "check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_set_is_checked_like_a_file(self):
        path = self.put(GOOD_PIPELINE)
        for assignment in ("search.rounds=2", "llm.writer.weight=2", "llm.0.weight=2", "workers.0.count=3",
                           "budget.wall=1.5m", "stop.target=412us", 'rungs=( { plugin = "numeric"; } )'):
            self.good(path, "--set", assignment)
        for assignment, want in (("serch.rounds=2", "--set serch.rounds: a pipeline has no setting 'serch'; did you mean"),
                                 ("search.rouns=2", "has no setting 'rouns'; did you mean 'rounds'?"),
                                 ("search.rounds=two", "--set search.rounds: 'rounds' must be an integer"),
                                 ("search.rounds=-1", "'rounds' must lie in"),
                                 ("llm.writr.weight=2", "did you mean 'writer'?"),
                                 ("llm.1.weight=2", "'llm' has no item '1'; it has 0 (writer)"),
                                 ("search.seed=5000000000", "does not fit 32 bits; write 5000000000L"),
                                 ("budget.usd=ten", "'usd' must be a finite number"),
                                 ("base=x.cfg", "'base' can stand in a file only"),
                                 ("search=5", "'search' must be a group"),
                                 ("rounds", "write PATH=VALUE")):
            done = self.rung("check", path, "--set", assignment)
            self.assertEqual(done.returncode, 2, assignment)
            self.assertIn(want, done.stderr)

    def test_faults_of_a_base_stand_at_the_base(self):
        self.put("budget = { callz = 1; };\n", "lab.cfg")
        self.bad('base = "lab.cfg";\n' + GOOD_PIPELINE, f"{self.folder}/lab.cfg:1: budget has no setting 'callz'")


class Tasks(Case):
    def fault(self, change, *want):
        old, new = change
        self.assertIn(old, GOOD_TASK)
        return self.bad(GOOD_TASK.replace(old, new), *want)

    def test_faults_of_the_graph_have_line_and_column(self):
        self.fault(("softmax(x", "sofmax(x"), "f.cfg:6: graph, column 5: unknown operator 'sofmax'",
                   "did you mean 'softmax'?")
        self.fault(("softmax(x", "softmax(z"), "f.cfg:6: graph, column 13: ", "'z'")
        self.fault(("axis=1", "axis=7"), "f.cfg:6: graph, column")
        self.fault(('axis=1)"', 'axis=1"'), "f.cfg:6: graph, column")
        self.fault(('graph = "y = softmax(x, axis=1)"', 'graph = ""'), "f.cfg:6: ")

    def test_shapes_that_disagree_are_found_at_every_listed_shape(self):
        self.fault(("y = softmax(x, axis=1)", "y = sum(x, axis=1)"), "f.cfg:6: graph, column")
        self.bad(GOOD_TASK.replace("softmax(x, axis=1)", "transpose(x)"),
                 "f.cfg:6: graph, column", "(at rows=3 cols=33 of check.extra)")

    def test_a_graph_that_is_right_by_chance_is_noted(self):
        text = GOOD_TASK.replace("softmax(x, axis=1)", "transpose(x)").replace("{ rows = 3; cols = 33; }", "")
        done = self.good(self.put(text))
        self.assertIn("f.cfg:6: note: at other dims, such as rows=65 cols=66, it fails: graph, column", done.stderr)
        done = self.good(self.put(text.replace("check = {", 'check = { shapes = "fixed";')))
        self.assertEqual(done.stderr, "")

    def test_dims_at_which_the_graph_means_nothing_are_noted_and_never_held_against_a_kernel(self):
        task = self.put("""name = "pool"; summary = "pairs";
dims = { n = 64; };
tensors = ( { name = "x"; role = "input"; dtype = "f32"; shape = "1, 1, n"; },
            { name = "y"; role = "output"; dtype = "f32"; shape = "1, 1, n / 2"; } );
reference = { plugin = "ops"; graph = "y = maxpool1d(x, 2)"; };
""", "pool.cfg")
        kernel = self.put("""//@ launch pool grid=(ceil_div(n / 2, 64)) block=(64) args=(x, y, n / 2)
__global__ void pool(const float *x, float *y, int n)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) {
        float a = x[2 * i], b = x[2 * i + 1];
        y[i] = a > b || a != a ? a : b;
    }
}
""", "pool.cu")
        done = self.good(task)
        self.assertIn("such as n=1, it fails", done.stdout + done.stderr)
        done = self.rung("eval", task, kernel, "--device", "ptx", "--only", "check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_settings_of_the_reference_are_checked(self):
        self.fault(('"ops";', '"ops"; thraeds = 2;'), "f.cfg:6: reference 'ops' has no setting 'thraeds'; "
                   "did you mean 'threads'? (it knows: name, plugin, graph, threads")
        self.fault(('"ops";', '"ops"; threads = "x";'), "f.cfg:6: 'threads' must be an integer")
        self.fault(('"ops";', '"opps";'), "f.cfg:6: no reference plugin 'opps'; did you mean 'ops'?")
        self.good(self.put(GOOD_TASK.replace('"ops";', '"ops"; threads = 2;')))
        self.put(GOOD_TASK, "t.cfg")
        wrong = 'task = "t.cfg";\nllm = ( { plugin = "catalog"; } );\nreferences = ( { plugin = "ops"; threads = 99; } );\n'
        self.assertEqual(len(self.bad(wrong, "f.cfg:3: 'threads' must lie in")), 1)
        self.put(GOOD_TASK.replace('"ops";', '"ops"; thread = 2;'), "t.cfg")
        self.assertEqual(len(self.bad(wrong, "f.cfg:3: 'threads'", "t.cfg:6: reference 'ops'")), 2)
        lines = self.fault(('"ops"; graph = "y = softmax(x', '"ops"; a = 1; graph = "y = sofmax(x'), "setting 'a'", "'sofmax'")
        self.assertEqual(len(lines), 2)

    def test_baselines_that_are_not_there_are_told_once_and_no_fault(self):
        done = self.good(self.put(GOOD_TASK + 'bench = {\n baselines = ( "nosuch", "northis" ); };\n'))
        self.assertEqual(done.stderr.count("note:"), 1)
        self.assertIn("f.cfg:9: note: baselines not available here", done.stderr)
        self.assertIn("nosuch, northis", done.stderr)

    def test_every_fault_is_told_at_once(self):
        lines = self.bad("""nme = "t";
dims = { rows = -4; cols = { value = 6; multiple_of = 4; }; };
tensors = ( { name = "x"; role = "inptu"; dtype = "f31"; shape = "rows, colz"; strides = "1, rowz"; } );
reference = { plugin = "ops"; };
check = { precision = "fp33"; };
bench = { flops = "2 * m"; weight = 1; };
""", "did you mean 'name'?", "f.cfg:2: dim 'rows' is -4", "f.cfg:2: dim 'cols' is 6, but it must be a multiple of 4",
                         "it is one of input, output, inout, weight", "f64, f32, f16", "did you mean 'cols'?",
                         "f.cfg:3: stride \"rowz\"", "it is one of fp32, tf32", "bench has no setting 'weight'")
        self.assertGreaterEqual(len(lines), 9)

    def test_strides_are_checked_at_every_listed_shape(self):
        x = ' shape = "rows, cols"'
        self.good(self.put(GOOD_TASK.replace(x, x + '; strides = "cols + 3, 1"', 1)))
        self.good(self.put(GOOD_TASK.replace(x, x + '; strides = "1, rows"', 1)))
        self.fault((x, x + '; strides = "cols"'), "has 1 items, but shape has 2")
        self.fault((x, x + '; strides = "cols - 1, 1"'), "it must be at least as many, or elements overlap")
        self.fault((x, x + '; strides = "0, 1"'), "must lie between 1 and 2^40")

    def test_integers_that_libconfig_would_wrap_are_refused(self):
        self.fault(("rows = 64", "rows = 5000000000"), "f.cfg:2: the integer 5000000000 does not fit 32 bits")
        self.fault(("rows = 64", "rows = 99999999999999999999"), "f.cfg:2: the integer", "too large")


class BeforeAnythingStarts(Case):
    def test_run_and_eval_refuse_what_check_refuses(self):
        task = self.put(GOOD_TASK.replace("softmax(x", "sofmax(x"))
        want = "f.cfg:6: graph, column 5: unknown operator 'sofmax'"
        done = self.rung("eval", task, SOUND, "--device", "ptx")
        self.assertEqual(done.returncode, 2)
        self.assertIn(want, done.stderr)
        pipeline = self.put(GOOD_PIPELINE, "p.cfg")
        out = self.folder + "/run"
        done = self.rung("run", pipeline, "--task", task, "--out", out)
        self.assertEqual(done.returncode, 2)
        self.assertIn(want, done.stderr)
        self.assertFalse(os.path.exists(out))
        done = self.rung("run", pipeline, "--out", out, "--set", "search.rouns=1", "--set",
                         'rungs=( { plugin = "numeric"; shaps = 1; } )')
        self.assertEqual(done.returncode, 2)
        self.assertIn("'rouns'", done.stderr)
        self.assertIn("'shaps'", done.stderr)

    def test_the_other_kind_of_file_is_told_with_the_right_command(self):
        done = self.rung("run", TASK)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"is a task file, but a pipeline is wanted here", done.stderr)
        self.assertIn(f"rung run PIPELINE --task {TASK}", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 2)
        pipeline = self.put(GOOD_PIPELINE)
        done = self.rung("eval", pipeline, SOUND)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"is a pipeline file, but a task is wanted here", done.stderr)
        self.assertIn(f"rung run {pipeline}", done.stderr)
        self.bad(f'task = "{pipeline}";\n', "is a pipeline file, but a task is wanted here")

    def test_a_wrong_point_is_a_mistake_of_the_command_line(self):
        for point in ("TPB=7", "TPB", "=1"):
            done = self.rung("eval", TASK, SOUND, "--device", "ptx", "--point", point)
            self.assertEqual(done.returncode, 2, point)
            self.assertIn(f"--point {point}: ", done.stderr)


class Hostile(Case):
    def test_files_that_are_no_text(self):
        self.bad(b"a = 1;\0", "f.cfg: is not a text in UTF-8: it holds a NUL byte")
        self.bad(bytes(range(1, 256)) * 40, "f.cfg: is not a text in UTF-8")
        self.bad(os.urandom(10 << 20), "f.cfg")
        self.bad("x" * (10 << 20), "f.cfg", "allowed")
        self.bad("", "is neither a task, which has tensors and a reference, nor a pipeline")
        self.bad("sm_count = 5;", "neither a task")

    def test_things_that_are_no_files(self):
        os.mkfifo(self.folder + "/fifo")
        for path, want in ((self.folder, "regular file"), (self.folder + "/fifo", "regular file"),
                           ("/dev/zero", "regular file"), (self.folder + "/none", "can't be opened"), ("", "")):
            done = self.rung("check", path)
            self.assertEqual(done.returncode, 2, path)
            self.assertIn(want, done.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root reads everything")
    def test_a_file_that_may_not_be_read(self):
        os.chmod(self.put(GOOD_TASK, "locked.cfg"), 0)
        self.assertIn("Permission denied", self.rung("check", self.folder + "/locked.cfg").stderr)

    def test_nesting(self):
        for n in (33, 1000, 100000, 500000):
            for left, right in ("()", "[]"):
                self.bad("a =\n" + left * n + right * n + ";", "f.cfg:2: groups and lists are nested more than 32 deep")
            self.bad("a = { b = " * n, "nested more than 32 deep") if n <= 1000 else None

    def test_what_never_ends(self):
        self.bad('a = 1;\nb = "open\n;\n', "f.cfg:2: the text that begins here is never closed")
        self.bad("a = 1;\n/* open\n", "f.cfg:2: the comment that begins here is never closed")
        self.bad("a = { b = 1;\n", "f.cfg:2: syntax error")
        self.bad("a = 1;\nb == 2;\n", "f.cfg:2: syntax error, at or before: b == 2;")

    def test_circles(self):
        self.bad('base = "f.cfg";\n', "f.cfg:1: 'base' goes in a circle")
        self.put('x = 1;\n\nbase = "f.cfg";\n', "other.cfg")
        self.bad('base = "other.cfg";\n', f"{self.folder}/other.cfg:3: 'base' goes in a circle: it leads back to ")
        self.bad('base = "none.cfg";\n', "f.cfg:1: base \"none.cfg\": ", "No such file")
        self.bad('base = ".";\n', "regular file")
        self.bad('@include "f.cfg"\n', "f.cfg", "8 deep")

    def test_many_faults_are_all_told(self):
        text = "".join(f"nosuch{i} = {i};\n" for i in range(500)) + GOOD_PIPELINE
        self.assertEqual(len(self.bad(text)), 500)

    def test_control_characters_do_not_reach_the_terminal(self):
        done = self.rung("check", self.put("a = \x1b[31m(;\n"))
        self.assertNotIn("\x1b", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
