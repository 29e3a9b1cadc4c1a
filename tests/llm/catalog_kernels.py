#!/usr/bin/env python3
"""Judges every kernel of the catalog on the PTX interpreter, each at a small task that it serves.

catalog_kernels.py RUNG CATALOG_RENDER CATALOG_FOLDER BRANCHES [PART]

catalog_render asks the catalog as the engine does and leaves the kernels in files; `rung eval` must
accept each of them. BRANCHES variants of each are judged, which are as many tune points. PART
(1/8, say) takes only the files whose number leaves that rest, for slow builds. A kernel that no
task here reaches is a failure too. Ends with 77 where there is no compiler.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

RUNG, RENDER, CATALOG, BRANCHES = sys.argv[1:5]
PART = sys.argv[5] if len(sys.argv) > 5 else "0/1"

SHIPPED = ["softmax_small", "matmul_small", "matmul_fp16_small", "layernorm_small", "conv2d_small",
           "conv2d_relu_maxpool_small", "attention_small"]

# name: dims, tensors (name, role, dtype, shape), graph. Shapes that vectors and tiles do not divide
# come from the verifier.
OTHERS = {
    "chain": ("n = 1000;", [("x", "input", "f32", "n"), ("a", "input", "f32", "n"),
                            ("y", "output", "f32", "n")], "y = gelu(x * a + 1.5)"),
    "sum_last": ("a = 30; b = 500;", [("x", "input", "f32", "a, b"), ("y", "output", "f32", "a")],
                 "y = sum(x, axis=1)"),
    "mean_inner": ("a = 5; b = 70; c = 33;",
                   [("x", "input", "f32", "a, b, c"), ("y", "output", "f32", "a, c")],
                   "y = mean(x, axis=1)"),
    "max_all": ("a = 50; b = 60;", [("x", "input", "f32", "a, b"), ("y", "output", "f32", "")],
                "y = max(x)"),
    "argmax": ("a = 30; b = 500;", [("x", "input", "f32", "a, b"), ("y", "output", "i64", "a")],
               "y = argmax(x, axis=1)"),
    "argmin_inner": ("a = 5; b = 70; c = 33;",
                     [("x", "input", "f32", "a, b, c"), ("y", "output", "i64", "a, c")],
                     "y = argmin(x, axis=1)"),
    "transpose": ("a = 3; b = 70; c = 40;",
                  [("x", "input", "f32", "a, b, c"), ("y", "output", "f32", "a, c, b")],
                  "y = transpose(x)"),
    "maxpool": ('a = 2; h = { value = 40; min = 3; }; w = { value = 50; min = 3; }; '
                'oh = "(h - 3) / 2 + 1"; ow = "(w - 3) / 2 + 1";',
                [("x", "input", "f32", "a, 3, h, w"), ("y", "output", "f32", "a, 3, oh, ow")],
                "y = maxpool2d(x, kernel=3, stride=2)"),
    "avgpool": ('a = 2; h = { value = 40; min = 3; }; w = { value = 50; min = 3; }; '
                'oh = "(h - 1) / 3 + 1"; ow = "(w - 1) / 3 + 1";',
                [("x", "input", "f32", "a, 3, h, w"), ("y", "output", "f32", "a, 3, oh, ow")],
                "y = avgpool2d(x, kernel=3, pad=1)"),
    "linear": ("m = 70; n = 68; k = 36;",
               [("x", "input", "f32", "m, k"), ("w", "weight", "f32", "n, k"),
                ("b", "weight", "f32", "n"), ("y", "output", "f32", "m, n")],
               "y = relu(matmul(x, w, transpose_b=1) + b)"),
    "batched_tn": ("h = { value = 2; max = 3; }; m = 66; n = 40; k = 24;",
                   [("a", "input", "f16", "h, k, m"), ("b", "input", "f16", "h, k, n"),
                    ("c", "output", "f16", "h, m, n")],
                   "c = bmm(a, b, transpose_a=1)"),
    "attention_causal": ("h = { value = 2; max = 3; }; n = 70; m = 90; d = 20;",
                         [("q", "input", "f32", "h, n, d"), ("k", "input", "f32", "h, m, d"),
                          ("v", "input", "f32", "h, m, d"), ("o", "output", "f32", "h, n, d")],
                         "o = attention(q, k, v, causal=1)"),
    "log_softmax": ("a = 30; b = 500;",
                    [("x", "input", "f32", "a, b"), ("y", "output", "f32", "a, b")],
                    "y = log_softmax(x, axis=-1)"),
    "logsumexp": ("a = 30; b = 500;",
                  [("x", "input", "f32", "a, b"), ("y", "output", "f32", "a")],
                  "y = logsumexp(x, axis=-1)"),
}


def write_task(folder, name, dims, tensors, graph):
    lines = ",\n".join(f'  {{ name = "{n}"; role = "{r}"; dtype = "{d}"; shape = "{s}"; }}'
                       for n, r, d, s in tensors)
    precision = "fp16" if any(d == "f16" for _, _, d, _ in tensors) else \
        "exact" if tensors[-1][2] == "i64" else "fp32"
    path = folder / f"{name}.cfg"
    path.write_text(f'name = "{name}";\nsummary = "test";\ndims = {{ {dims} }};\n'
                    f'tensors = (\n{lines} );\n'
                    f'reference = {{ plugin = "ops"; graph = "{graph}"; }};\n'
                    f'check = {{ precision = "{precision}"; }};\n')
    return path


def render(folder, task, branch):
    """The kernels of one variant for a task, as files."""
    out = folder / f"{task.stem}-{branch}"
    out.mkdir()
    done = subprocess.run([RENDER, task, out, str(branch)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{task.name}: {done.stdout}{done.stderr}")
    return sorted(out.iterdir())


def judge(job):
    task, kernel = job
    done = subprocess.run([RUNG, "eval", task, kernel, "--device", "ptx", "--json"],
                          capture_output=True, text=True)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        return task, kernel, done.stdout + done.stderr
    good = result["verdict"] == "accepted"
    return task, kernel, None if good else f'{result["code"]}: {result["message"]}'


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    shipped = pathlib.Path(CATALOG).parent / "tasks"
    tasks = [shipped / f"{name}.cfg" for name in SHIPPED]
    tasks += [write_task(folder, name, *what) for name, what in OTHERS.items()]
    rest, of = map(int, PART.split("/"))
    jobs, seen = [], set()
    for task in tasks:
        for branch in range(int(BRANCHES)):
            files = render(folder, task, branch)
            seen |= {path.stem for path in files}
            jobs += [(task, path) for path in files]
    there = {f"{path.parent.name}.{path.stem}" for path in pathlib.Path(CATALOG).glob("*/*.cu")}
    faults = [f"no task here reaches {name}" for name in sorted(there - seen)]
    jobs = jobs[rest::of]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for task, kernel, fault in pool.map(judge, jobs):
            if fault and "no NVRTC" in fault:
                print("SKIPPED: no NVRTC here")
                sys.exit(77)
            if fault:
                faults.append(f"{kernel.name} on {task.name}: {fault}")
    print(f"{len(jobs)} kernels judged, {len(faults)} faults")
    for fault in faults:
        print(fault)
    subprocess.run(["rm", "-rf", folder])
    sys.exit(1 if faults else 0)


main()
