#!/usr/bin/env python3
"""config/torch/rung_graph.py without PyTorch: every operator of docs/operators.md is known, numbers are
folded as the reference folds them, and nothing but known operators comes into the text."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "config" / "torch"))
sys.dont_write_bytecode = True
import rung_graph  # noqa: E402

NUMBERS = {"rows": 7, "cols": 12, "scale": 0.5}


def lines(graph, inputs=("x", "w", "b", "q", "k", "v"), outputs=("y",)):
    text = rung_graph.translate(graph, inputs, outputs, NUMBERS)
    return [line.strip() for line in text.splitlines()[1:-1]]


class Translation(unittest.TestCase):
    def test_every_operator_of_the_reference_is_known(self):
        table = (ROOT / "plugins" / "verify" / "ops" / "table.c").read_text()
        names = set(re.findall(r'^ +(?:UNARY|BINARY|COMPARE|REDUCE|ARG|SCAN|CONV|CONV_TRANSPOSE|MAX_POOL|MEAN_POOL|'
                               r'ADAPTIVE|LOSS|EDGE_LOSS|NLL|NORM|SHAPE)\("([a-z0-9_]+)"', table, re.M))
        names |= set(re.findall(r'\{\.name = "([a-z0-9_]+)"', table))
        self.assertGreater(len(names), 100)
        self.assertEqual(names - set(rung_graph.OPS), set())

    def test_headline_tasks(self):
        self.assertEqual(lines("y = maxpool2d(relu(conv2d(x, w, b, stride=4, pad=2)), kernel=3, stride=2)"),
                         ["t_y = R.maxpool2d(x=R.relu(x=R.conv2d(x=t_x, w=t_w, bias=t_b, stride=4, pad=2)), "
                          "kernel=3, stride=2)"])
        self.assertEqual(lines("h = softmax(x, axis=1)\n; y = h;"), ["t_h = R.softmax(x=t_x, axis=1)", "t_y = t_h"])
        self.assertEqual(lines("y = attention(q, k, v, is_causal=true)"),
                         ["t_y = R.attention(q=t_q, k=t_k, v=t_v, causal=True)"])

    def test_names_of_pytorch(self):
        self.assertEqual(lines("y = layer_norm(x, weight=w, b=b, dim=-2)"),
                         ["t_y = R.layernorm(x=t_x, weight=t_w, bias=t_b, axis=-2)"])
        self.assertEqual(lines("y = max_pool2d(x, kernel_size=(2, 3), padding=[1, 1])"),
                         ["t_y = R.maxpool2d(x=t_x, kernel=(2, 3), pad=(1, 1))"])
        self.assertEqual(lines("y = cat([x, w], dim=1)"), ["t_y = R.concat([t_x, t_w], axis=1)"])

    def test_numbers(self):
        self.assertEqual(lines("y = reshape(x, (rows / 2, -cols % 5, ceil_div(cols, 5), max(rows, 3)))"),
                         ["t_y = R.reshape(x=t_x, shape=(3, -2, 3, 7))"])
        self.assertEqual(lines("y = x * (1 / cols) - 2 ** -1"), ["t_y = ((t_x * 0.08333333333333333) - 0.5)"])
        self.assertEqual(lines("y = -x ** 2 * scale"), ["t_y = ((-(t_x ** 2)) * 0.5)"])
        self.assertEqual(lines("y = gelu(x, approximate=tanh)"), ["t_y = R.gelu(x=t_x, approximate='tanh')"])

    def test_comparisons_count_as_numbers_but_in_where(self):
        self.assertEqual(lines("y = where(gt(x, 0), x, w) + lt(x, w)"),
                         ["t_y = (R.where(condition=R.gt(x=t_x, y=0), x=t_x, y=t_w) + "
                          "R.as_number(R.lt(x=t_x, y=t_w)))"])

    def test_what_is_refused(self):
        for graph in ("y = nothing(x)", "y = x.__class__", "y = (lambda: x)()", "y = x; import os", "y = 'text'",
                      "y = x if x else w", "y = [x for x in w]", "y = conv2d(x)", "y = relu(x, x)", "y = relu(x=x, x=x)",
                      "y = softmax(x, axis=w)", "x + w", "z = x", "y, z = x", "y = unknown", "y = relu(*x)",
                      "y = relu(**x)", "y = " + "(" * 100 + "x" + ")" * 100 + "+" * 3 + "", "y = 1e999 * x",
                      "y = " + "relu(" * 70 + "x" + ")" * 70, "y = __import__(x)", "y = x @ w", "y = x[0]",
                      "y = reshape(x, (rows / 0,))", "y = x and w", "y = f(x)(w)", "\x00", "y = " + "x + " * 20000 + "x"):
            with self.assertRaises(rung_graph.GraphError, msg=graph[:60]):
                lines(graph)

    def test_the_text_compiles(self):
        for graph in ("y = x", "y = relu(x) + w * 2", "lambda_ = x; y = lambda_"):
            compile(rung_graph.translate(graph, ["x", "w"], ["y"], NUMBERS), "graph", "exec")


if __name__ == "__main__":
    unittest.main()
