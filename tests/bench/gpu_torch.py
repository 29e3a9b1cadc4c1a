#!/usr/bin/env python3
"""config/torch/helper.py on a real GPU: every headline task in the modes asked for.

usage: gpu_torch.py [--modes eager,default,max-autotune] [--tasks NAME,...] [--tf32] [--seconds S]

Prints one line a measurement. Ends with 77 (skipped) where PyTorch or a GPU is missing, and with 1 when a
task fails or a time is absurd (under its least traffic at 8 TB/s, or spread by more than half).
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

HELPER = pathlib.Path(__file__).resolve().parents[2] / "config" / "torch" / "helper.py"
BYTES = {"f32": 4, "f16": 2}


def tensor(name, role, dtype, *shape):
    return {"name": name, "role": role, "dtype": dtype, "shape": list(shape), "fill": "normal"}


def conv(graph, *out):
    return graph, [tensor("x", "input", "f32", 100, 3, 224, 224), tensor("w", "weight", "f32", 96, 3, 11, 11),
                   tensor("b", "weight", "f32", 96), tensor("y", "output", "f32", 100, 96, *out)]


def product(dtype, n=4096):
    return "c = matmul(a, b)", [tensor("a", "input", dtype, n, n), tensor("b", "input", dtype, n, n),
                                tensor("c", "output", dtype, n, n)]


SHAPE = (16, 64, 256, 256)
HEADS = (32, 8, 512, 64)
TASKS = {
    "matmul": product("f32"),
    "matmul_fp16": product("f16"),
    "conv2d": conv("y = conv2d(x, w, b, stride=4, pad=2)", 55, 55),
    "conv2d_relu_maxpool": conv("y = maxpool2d(relu(conv2d(x, w, b, stride=4, pad=2)), kernel=3, stride=2)", 27, 27),
    "softmax": ("y = softmax(x, axis=1)", [tensor("x", "input", "f32", 4096, 65536),
                                           tensor("y", "output", "f32", 4096, 65536)]),
    "layernorm": ("y = layernorm(x, w, b, axis=1, eps=1e-5)",
                  [tensor("x", "input", "f32", *SHAPE), tensor("w", "weight", "f32", *SHAPE[1:]),
                   tensor("b", "weight", "f32", *SHAPE[1:]), tensor("y", "output", "f32", *SHAPE)]),
    "attention": ("o = attention(q, k, v)", [tensor(n, "input", "f16", *HEADS) for n in "qkv"] +
                  [tensor("o", "output", "f16", *HEADS)]),
    "tiny": ("y = relu(x)", [tensor("x", "input", "f32", 4096), tensor("y", "output", "f32", 4096)]),
}


KERNELBENCH = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.rand(1024, 2048)]

def get_init_inputs():
    return [2048]
"""


class Helper:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, str(HELPER)], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE)

        self.last = 0

    def ask(self, op, **more):
        self.process.stdin.write(json.dumps({"op": op, **more}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"ok": False, "kind": "internal", "message": "the helper died"}


def one(helper, name, mode, tf32):
    begun = time.monotonic()
    if name == "kernelbench":
        graph, tensors = "", [tensor("x", "input", "f32", 1024, 2048)]
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(KERNELBENCH)
            file.flush()
            ready = helper.ask("prepare", release=[helper.last], file=file.name, mode=mode, tf32=tf32)
    else:
        graph, tensors = TASKS[name]
        ready = helper.ask("prepare", release=[helper.last], graph=graph, tensors=tensors, mode=mode, tf32=tf32)
    if not ready["ok"]:
        print(f"{name:20} {mode:13} {ready['kind']}: {ready['message'][:300]}", flush=True)
        return False
    helper.last = ready["case"]
    prepared = time.monotonic() - begun
    got = helper.ask("measure", case=ready["case"], warmups=3, samples=30, cold=1, seed=7, budget_s=3)
    if not got["ok"]:
        print(f"{name:20} {mode:13} {got['kind']}: {got['message'][:300]}", flush=True)
        return False
    again = helper.ask("measure", case=ready["case"], warmups=3, samples=10, cold=1, seed=8, sets=got["sets"], batch=got["batch"],
                       budget_s=1)
    times = sorted(got["samples_ns"])
    middle = times[len(times) // 2]
    spread = (times[-1 - len(times) // 4] - times[len(times) // 4]) / middle
    second = sorted(again.get("samples_ns") or [0])
    traffic = sum(math.prod(t["shape"]) * BYTES[t["dtype"]] for t in tensors)
    good = middle * 1e-9 > (traffic - 120e6) / 8e12 and spread < 0.5
    print(f"{name:20} {mode:13} {middle / 1e3:9.2f} us iqr {100 * spread:4.1f}% min {times[0] / 1e3:9.2f} "
          f"again {second[len(second) // 2] / 1e3:9.2f} n {len(times)} sets {got['sets']} batch {got['batch']} "
          f"cold {got['cold']} graph {int(got['captured'])} floor {got['floor_ns'] / 1e3:.2f} us "
          f"prepare {prepared:.1f} s all {time.monotonic() - begun:.1f} s {got['note']}"
          f"{'' if good else ' ABSURD'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modes", default="eager,default")
    parser.add_argument("--tasks", default=",".join([*TASKS, "kernelbench"]))
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--seconds", type=float, default=600)
    args = parser.parse_args()
    begun, helper = time.monotonic(), Helper()
    hello = helper.ask("hello")
    print(json.dumps(hello), flush=True)
    if not hello["ok"] or not hello["gpu"]:
        print("SKIPPED: PyTorch or a GPU is missing")
        return 77
    failed = 0
    for mode in args.modes.split(","):
        for name in args.tasks.split(","):
            if time.monotonic() - begun < args.seconds:
                failed += not one(helper, name, mode, args.tf32)
            else:
                print(f"{name:20} {mode:13} not tried: out of time")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
