#!/usr/bin/env python3
"""Stands in for Python with config/torch/helper.py in test_torch.c: answers as RUNG_FAKE_TORCH says and
writes every request to the file that RUNG_FAKE_LOG names."""
import json
import os
import sys
import time

mode = os.environ["RUNG_FAKE_TORCH"]
log = open(os.environ["RUNG_FAKE_LOG"], "a", encoding="utf-8")
log.write(json.dumps({"argv": sys.argv[1:], "visible": os.environ.get("CUDA_VISIBLE_DEVICES")}) + "\n")
cases = 0
samples = {"nan": [1.0, float("nan")], "negative": [-5.0], "none": [], "many": [1.0] * 50, "words": ["fast"],
           "no_list": 7}


def answer(op, request):
    global cases
    if mode == "no_torch":
        return {"ok": False, "kind": "unavailable", "message": "no PyTorch; pip install torch"}
    if op == "hello":
        return {"ok": True, "gpu": "" if mode == "no_gpu" else "GPU"}
    if mode == "dies":
        print("Segmentation fault (a joke)", file=sys.stderr, flush=True)
        os.abort()
    if mode == "hangs":
        time.sleep(60)
    if op == "prepare":
        if mode == "unsupported":
            return {"ok": False, "kind": "unsupported", "message": "graph: what is\nthis \x1b[31m?"}
        if mode == "memory":
            return {"ok": False, "kind": "memory", "message": "CUDA out of memory"}
        if mode == "no_label":
            return {"ok": True, "case": 1, "label": 5, "math": "fp32"}
        cases += 1
        return {"ok": True, "case": cases, "label": "torch eager", "math": "fp32"}
    times = samples.get(mode, [1000.0 + i for i in range(request["samples"])])
    return {"ok": True, "samples_ns": times, "floor_ns": 400.0, "sets": -1 if mode == "sets" else request["sets"] or 4,
            "batch": request["batch"] or 4, "cold": 2, "captured": True, "note": ""}


for line in sys.stdin:
    log.write(line)
    log.flush()
    if mode == "garbage":
        print("warning: something", flush=True)
    elif mode == "deep":
        print("[" * 50000, flush=True)
    else:
        print(json.dumps(answer(json.loads(line)["op"], json.loads(line))), flush=True)
