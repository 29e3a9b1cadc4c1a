#!/usr/bin/env python3
"""References of the user's own, in C, CUDA and PyTorch: the sound kernels of row softmax are accepted against
them, the exploits rejected with their codes, and what is wrong with the user's file is told.
usage: own_references.py RUNG [--device NAME] [--torch]"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = ROOT / "tests" / "own"
TASK = """name = "softmax_own"; summary = "row softmax against a reference of the user's";
dims = {{ rows = 64; cols = 1000; }};
tensors = ( {{ name = "x"; role = "input"; dtype = "f32"; shape = "rows, cols"; }},
            {{ name = "y"; role = "output"; dtype = "f32"; shape = "rows, cols"; }} );
reference = {{ {reference} }};
check = {{ precision = "fp32"; extra = ( {{ rows = 3; cols = 33; }}, {{ rows = 5; cols = 4097; }} ); }};
bench = {{ shapes = ( {{ rows = 64; cols = 1000; }} ); }};
"""
LINEAR = """name = "linear"; summary = "y = relu(x w' + b)";
dims = {{ rows = 33; inside = 65; outside = 47; }};
tensors = ( {{ name = "x"; role = "input"; dtype = "f32"; shape = "rows, inside"; }},
            {weights}
            {{ name = "y"; role = "output"; dtype = "f32"; shape = "rows, outside"; }} );
reference = {{ plugin = "torch"; file = "{file}"; }};
check = {{ precision = "fp32"; shapes = "fixed"; }};
bench = {{ shapes = ( {{ rows = 33; inside = 65; outside = 47; }} ); }};
"""
WEIGHTS = """{ name = "linear_weight"; role = "weight"; dtype = "f32"; shape = "outside, inside"; },
            { name = "linear_bias"; role = "weight"; dtype = "f32"; shape = "outside"; },"""
SOUND = ["serial", "online_fast_exp"]
EXPLOITS = ["zeros", "half_precision", "no_max_subtraction"]
OPTIONS = None


class References(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def judge(self, task, kernel, *more):
        path = pathlib.Path(self.folder.name, "task.cfg")
        path.write_text(task)
        done = subprocess.run([OPTIONS.rung, "eval", str(path), str(kernel), "--device", OPTIONS.device, "--only", "check",
                               "--json", *more], capture_output=True, text=True, timeout=300)
        return done, json.loads(done.stdout) if done.stdout else {"verdict": "none", "code": done.stderr}

    def corpus(self, reference):
        task = TASK.format(reference=reference)
        for name in SOUND:
            _, report = self.judge(task, ROOT / "tests" / "sound" / f"{name}.cu")
            self.assertEqual((report["verdict"], report["code"]), ("accepted", None), (name, report))
        for name in EXPLOITS:
            path = ROOT / "tests" / "exploits" / f"{name}.cu"
            expected = re.search(r"^// expect: (.*)$", path.read_text(), re.M)[1].split()
            _, report = self.judge(task, path)
            self.assertEqual(report["verdict"], "rejected", name)
            self.assertIn(report["code"], expected, name)

    def test_c(self):
        self.corpus(f'plugin = "c"; trials = 3; file = "{OWN}/softmax.c";')

    def test_cuda(self):
        self.corpus(f'plugin = "cuda"; trials = 3; file = "{OWN}/softmax.cu";')

    def test_what_is_wrong_with_a_c_file_is_told_with_its_line(self):
        source = pathlib.Path(self.folder.name, "bad.c")
        source.write_text("void reference(const struct rung_task *t)\n{\n    t->y[0] = t->nothing;\n}\n")
        done, report = self.judge(TASK.format(reference='plugin = "c"; file = "bad.c";'), ROOT / "tests/sound/serial.cu")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("bad.c:3", done.stderr)
        self.assertIn("nothing", done.stderr)

    def test_a_c_reference_that_crashes_or_hangs_is_no_verdict_on_the_kernel(self):
        source = pathlib.Path(self.folder.name, "bad.c")
        for body in ("*(volatile int *)8 = 1;", "for (volatile int i = 0; i < 1; ) ;"):
            source.write_text("void reference(const struct rung_task *t)\n{\n    %s\n}\n" % body)
            done, report = self.judge(TASK.format(reference='plugin = "c"; file = "bad.c";'),
                                      ROOT / "tests/sound/serial.cu", "--set", 'limits.check="5s"')
            self.assertNotIn(report["verdict"], ("accepted", "rejected"), (body, report))

    def test_a_file_that_is_missing_is_told(self):
        for plugin in ("c", "cuda", "torch"):
            done, _ = self.judge(TASK.format(reference=f'plugin = "{plugin}"; file = "nowhere";'), ROOT / "tests/sound/serial.cu")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("nowhere can't be read", done.stderr)

    def test_a_cuda_file_without_the_kernel_is_told(self):
        source = pathlib.Path(self.folder.name, "bad.cu")
        source.write_text('extern "C" __global__ void other(struct rung_task t) {}\n')
        done, _ = self.judge(TASK.format(reference='plugin = "cuda"; file = "bad.cu";'), ROOT / "tests/sound/serial.cu")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("reference", done.stderr)

    def test_torch(self):
        if not OPTIONS.torch:
            self.skipTest("needs PyTorch (--torch)")
        task = LINEAR.format(weights=WEIGHTS, file=f"{OWN}/linear.py")
        done, report = self.judge(task, OWN / "linear.cu")
        self.assertEqual(report["verdict"], "accepted", (report, done.stderr))
        wrong = pathlib.Path(self.folder.name, "wrong.cu")
        wrong.write_text((OWN / "linear.cu").read_text().replace("float sum = b[o];", "float sum = 0;"))
        self.assertEqual(self.judge(task, wrong)[1]["code"], "numeric.mismatch")
        bare = pathlib.Path(self.folder.name, "bare.cu")
        bare.write_text("//@ launch bare grid=(1) block=(1) args=(x, y)\n"
                        'extern "C" __global__ void bare(const float *x, float *y) { y[0] = x[0]; }\n')
        done, _ = self.judge(LINEAR.format(weights="", file=f"{OWN}/linear.py"), bare)
        self.assertIn("linear.weight is no weight of the task", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rung")
    parser.add_argument("--device", default="ptx")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("tests", nargs="*")
    OPTIONS = parser.parse_intermixed_args()
    OPTIONS.rung = str(pathlib.Path(OPTIONS.rung).resolve())
    started = subprocess.run([OPTIONS.rung, "plugin", "try", "device", OPTIONS.device, "--json"], capture_output=True, text=True)
    if json.loads(started.stdout)["state"] != "ready":
        print(f"SKIPPED: no device {OPTIONS.device} here: {json.loads(started.stdout)['message']}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *OPTIONS.tests], verbosity=2)
