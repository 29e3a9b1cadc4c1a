#!/usr/bin/env python3
"""config/torch/helper.py on the CPU: operators give what plain Python gives, KernelBench files are read and
evaluated, the protocol survives nonsense. Ends with 77 (skipped) where Python has no PyTorch."""
import array
import base64
import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODES = {"f64": "d", "f32": "f", "i32": "i", "i64": "q", "bool": "B"}
MODEL = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features, classes, factor=2.0):
        super().__init__()
        print("noise on standard output")
        self.linear = nn.Linear(features, classes)
        self.norm = nn.BatchNorm1d(classes)
        self.constant = torch.tensor(0.1)
        self.factor = factor

    def forward(self, x, repeat=1):
        return self.norm(self.linear(x)) * self.constant * self.factor * repeat

def get_inputs():
    return [torch.rand(4, 3), 2]

def get_init_inputs():
    return [[3, 2], {"factor": 3.0}]
"""


def text_of(values, dtype):
    return base64.b64encode(array.array(CODES[dtype], values).tobytes()).decode()


def values_of(output):
    values = array.array(CODES[output["dtype"]])
    values.frombytes(base64.b64decode(output["base64"]))
    return list(values)


def given(name, dtype, shape, values, role="input"):
    return {"name": name, "role": role, "dtype": dtype, "shape": shape, "base64": text_of(values, dtype)}


class Helper(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen([sys.executable, "-B", str(ROOT / "config/torch/helper.py")],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = pathlib.Path(cls.folder.name) / "model.py"
        cls.file.write_text(MODEL)

    @classmethod
    def tearDownClass(cls):
        cls.process.stdin.close()
        cls.process.wait()
        cls.process.stdout.close()
        cls.folder.cleanup()

    def line(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, op, **more):
        return self.line(json.dumps({"op": op, **more}))

    def graph(self, text, tensors, shape=(), dims=None):
        out = {"name": "y", "role": "output", "dtype": "f64", "shape": list(shape)}
        answer = self.ask("evaluate", graph=text, tensors=[*tensors, out], dims=dims or {})
        self.assertTrue(answer["ok"], answer)
        return values_of(answer["outputs"][0])

    def near(self, got, want):
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            self.assertTrue(math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12), (got, want))

    def test_hello(self):
        answer = self.ask("hello")
        self.assertTrue(answer["ok"])
        self.assertEqual(answer["protocol"], 1)

    def test_operators(self):
        x = given("x", "f32", [2, 3], [1, -2, 3, 0.5, 0.25, -1])
        self.near(self.graph("y = sum(x, axis=1) + n", [x], dims={"n": 2}), [4, 1.75])
        self.near(self.graph("y = max(x)", [x]), [3])
        self.near(self.graph("y = relu(x) * 2", [x]), [2, 0, 6, 1, 0.5, 0])
        self.near(self.graph("y = transpose(x)", [x]), [1, 0.5, -2, 0.25, 3, -1])
        self.near(self.graph("y = matmul(x, x, transpose_b=1)", [x]), [14, -3, -3, 1.3125])
        self.near(self.graph("y = where(gt(x, 0), x, 0)", [x]), [1, 0, 3, 0.5, 0.25, 0])
        self.near(self.graph("y = mean(gt(x, 0))", [x]), [4 / 6])
        self.near(self.graph("y = cumsum(x, axis=1)", [x]), [1, -1, 2, 0.5, 0.75, -0.25])
        self.near(self.graph("y = slice(x, 1, start=1, step=2)", [x]), [-2, 0.25])
        self.near(self.graph("y = var(x, axis=(0, 1), unbiased=0)", [x]),
                  [sum((v - 1.75 / 6) ** 2 for v in (1, -2, 3, 0.5, 0.25, -1)) / 6])
        self.near(self.graph("y = rmsnorm(x, axis=1, eps=0)", [x])[:1], [1 / math.sqrt(14 / 3)])
        self.near(self.graph("y = maximum(x, 0.75)", [x]), [1, 0.75, 3, 0.75, 0.75, 0.75])
        self.near(self.graph("y = norm(x, axis=1, p=1)", [x]), [6, 1.75])

    def test_windows_and_norms(self):
        x = given("x", "f32", [1, 1, 4], [1, 2, 3, 4])
        w = given("w", "f32", [1, 1, 2], [1, 10])
        self.near(self.graph("y = conv1d(x, w, stride=2)", [x, w]), [21, 43])
        self.near(self.graph("y = conv_transpose1d(x, w)", [x, w]), [1, 12, 23, 34, 40])
        self.near(self.graph("y = maxpool1d(x, 2)", [x]), [2, 4])
        self.near(self.graph("y = avgpool1d(x, 2, pad=1, count_include_pad=0)", [x]), [1, 2.5, 4])
        self.near(self.graph("y = layernorm(x, axis=1, eps=0)", [given("x", "f32", [1, 2], [1, 3])]), [-1, 1])

    def test_attention_and_losses(self):
        q = given("q", "f32", [2, 1], [0, 0])
        k = given("k", "f32", [2, 1], [1, 2])
        v = given("v", "f32", [2, 1], [10, 20])
        self.near(self.graph("y = attention(q, k, v)", [q, k, v]), [15, 15])
        self.near(self.graph("y = attention(q, k, v, causal=1)", [q, k, v]), [10, 15])
        mask = given("m", "bool", [2, 2], [0, 1, 1, 1])
        self.near(self.graph("y = attention(q, k, v, mask=m)", [q, k, v, mask]), [20, 15])
        x, t = given("x", "f32", [2, 2], [0, 0, 0, 0]), given("t", "i32", [2], [0, 1])
        self.near(self.graph("y = cross_entropy(x, t)", [x, t]), [math.log(2)])

    def test_float_precision_is_the_tasks_own_when_asked(self):
        x = given("x", "f32", [1], [0.1])
        answer = self.ask("evaluate", graph="y = x * 3", tensors=[x, {"name": "y", "role": "output", "dtype": "f32",
                                                                       "shape": [1]}], precision="native")
        self.assertEqual(answer["outputs"][0]["dtype"], "f32")

    def test_kernelbench(self):
        held = self.ask("load", file=str(self.file), seed=42)
        self.assertTrue(held["ok"], held)
        self.assertEqual(held["inputs"], [{"name": "x", "dtype": "f32", "shape": [4, 3]}])
        self.assertEqual(held["constants"], {"repeat": "2"})
        self.assertEqual(held["outputs"], [{"name": "output0", "dtype": "f32", "shape": [4, 2]}])
        self.assertIn({"name": "param.linear.weight", "dtype": "f32", "shape": [2, 3]}, held["params"])
        self.assertEqual(held["random"], [])
        exact = self.ask("evaluate", file=str(self.file), seed=42, tensors=[])
        plain = self.ask("evaluate", file=str(self.file), seed=42, tensors=[], precision="native")
        wide, narrow = values_of(exact["outputs"][0]), values_of(plain["outputs"][0])
        self.assertEqual(exact["outputs"][0]["dtype"], "f64")
        self.assertLess(max(abs(a - b) for a, b in zip(wide, narrow)), 1e-4)
        self.assertGreater(max(map(abs, wide)), 1e-2)
        single = self.ask("evaluate", file=str(self.file), seed=42, tensors=[], precision="float32")
        self.assertEqual(values_of(single["outputs"][0]), narrow)
        self.assertEqual(self.ask("evaluate", file=str(self.file), tensors=[], precision="half")["kind"], "config")
        # A constant input has no variance: batchnorm in training mode gives 0, whatever the weights.
        same = self.ask("evaluate", file=str(self.file), seed=42,
                        tensors=[given("x", "f32", [4, 3], [1.0] * 12)])
        self.near(values_of(same["outputs"][0]), [0.0] * 8)

    def test_files(self):
        data, out = pathlib.Path(self.folder.name) / "in", pathlib.Path(self.folder.name) / "out"
        data.write_bytes(b"skip" + array.array("f", [1, 2]).tobytes())
        x = {"name": "x", "role": "input", "dtype": "f32", "shape": [2], "file": str(data), "offset": 4}
        y = {"name": "y", "role": "output", "dtype": "f64", "shape": [2]}
        answer = self.ask("evaluate", graph="y = x + 1", tensors=[x, y], outputs=[{"file": str(out)}])
        self.assertTrue(answer["ok"], answer)
        self.assertNotIn("base64", answer["outputs"][0])
        self.assertEqual(list(array.array("d", out.read_bytes())), [2, 3])
        x["shape"] = [3]
        self.assertEqual(self.ask("evaluate", graph="y = x", tensors=[x, y])["kind"], "config")

    def test_nonsense(self):
        for text in ("", "7", "[]", "{", '{"op": "exit"}', '{"op": "evaluate"}', '{"op": "__init__"}',
                     '{"op": "measure", "case": 5}', '{"op": "load", "file": "/none.py"}',
                     '{"op": "evaluate", "graph": "y = foo(x)", "tensors": []}',
                     '{"op": "evaluate", "graph": "y = 1", "tensors": [{"name": "x(", "role": "input"}]}'):
            answer = self.line(text)
            self.assertFalse(answer["ok"], text)
            self.assertIn("message", answer)
        self.assertTrue(self.ask("hello")["ok"])


if __name__ == "__main__":
    if not importlib.util.find_spec("torch"):
        print(f"SKIPPED: {sys.executable} has no PyTorch")
        sys.exit(77)
    unittest.main()
