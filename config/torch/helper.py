#!/usr/bin/env python3
"""The long-lived PyTorch process beside rung: one JSON object a line in, one out (docs/baselines.md).

    hello     what is installed here
    prepare   a graph, or a KernelBench file, at fixed shapes: builds, compiles, runs once
    measure   one block of samples of what was prepared
    evaluate  outputs of a graph or KernelBench file at given inputs
    load      what a KernelBench file holds: inputs, parameters, outputs

Any request may list in "release" what was prepared and is to be forgotten.
An answer has "ok". When that is false, "kind" is unavailable, unsupported, memory, config or internal, and
"message" is for people. What libraries print goes to standard error.
"""
import base64
import ctypes
import gc
import json
import os
import sys
import traceback

sys.dont_write_bytecode = True
import rung_graph  # noqa: E402

PROTOCOL = 1
MODES = {"eager": None, "default": "default", "max-autotune": "max-autotune-no-cudagraphs"}


class Refusal(Exception):
    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def import_torch():
    """Torch and the modules that need it, once; what is missing is told with its remedy."""
    try:
        import torch
    except ImportError as why:
        raise Refusal("unavailable", f"{sys.executable} has no PyTorch ({why}); install it (pip install torch) "
                      "or name a Python that has it with the option `python`") from None
    import rung_kernelbench
    import rung_ops
    import rung_timing
    return torch, rung_ops, rung_timing, rung_kernelbench


def need_gpu(torch):
    if not torch.cuda.is_available():
        raise Refusal("unavailable", f"PyTorch {torch.__version__} sees no GPU; install a build for CUDA and check "
                      "CUDA_VISIBLE_DEVICES")
    return torch.device("cuda", 0)


def graph_function(request, ops):
    tensors = request["tensors"]
    inputs = [t["name"] for t in tensors if t["role"] != "output"]
    outputs = [t for t in tensors if t["role"] in ("output", "inout")]
    if not all(str(t["name"]).isidentifier() for t in tensors):
        raise Refusal("config", "a tensor's name is no name")
    numbers = {name: int(value) for name, value in request.get("dims", {}).items()}
    for param in request.get("params", []):
        numbers[param["name"]] = (int if param["dtype"] == "i64" else float)(param["value"])
    try:
        text = rung_graph.translate(request["graph"], inputs, [t["name"] for t in outputs], numbers)
    except rung_graph.GraphError as why:
        raise Refusal("unsupported", f"graph: {why}") from None
    scope = {"R": ops}
    exec(compile(text, "<graph>", "exec"), scope)  # text of our own making: see rung_graph.py
    return scope["graph"], outputs, text


def with_dtypes(function, dtypes):
    """The same with outputs in the task's dtypes."""
    def cast(*tensors):
        return tuple(y if y.dtype == dtype else y.to(dtype) for y, dtype in zip(function(*tensors), dtypes))
    return cast


def math_text(specs, tf32):
    dtypes = {s["dtype"] for s in specs if s["role"] != "output"}
    for half, name in (("f16", "fp16"), ("bf16", "bf16")):
        if half in dtypes:
            return f"{name}, fp32 accumulation"
    if "f32" in dtypes:
        return "tf32 in products and convolutions" if tf32 else "fp32"
    return "fp64" if "f64" in dtypes else "integers"


class Helper:
    def __init__(self):
        self.cases, self.n_cases = {}, 0

    def hello(self, request):
        torch, *_ = import_torch()
        answer = {"protocol": PROTOCOL, "python": sys.version.split()[0], "torch": torch.__version__,
                  "cuda": torch.version.cuda or "", "gpu": ""}
        if torch.cuda.is_available():
            answer["gpu"] = torch.cuda.get_device_name(0)
        return answer

    # ---- timing ----

    def prepare(self, request):
        torch, ops, timing, kernelbench = import_torch()
        device = need_gpu(torch)
        tf32 = bool(request.get("tf32"))
        set_tf32(torch, tf32)
        if "file" in request:
            function, specs = self.kernelbench_case(request, kernelbench, device)
        else:
            specs = request["tensors"]
            function, outputs, _ = graph_function(request, ops)
            function = with_dtypes(function, [timing.DTYPES[t["dtype"]] for t in outputs])
        mode = request.get("mode", "eager")
        if mode not in MODES:
            raise Refusal("config", f"mode {mode}: it must be {', '.join(MODES)}")
        inputs = [s for s in specs if s["role"] != "output"]
        results = self.try_once(torch, timing, device, function, inputs)
        check_shapes(results, [s for s in specs if s["role"] in ("output", "inout")])
        if MODES[mode]:
            function = torch.compile(function, mode=MODES[mode], dynamic=False)
            check_values(torch, self.try_once(torch, timing, device, function, inputs), results)
        del results
        torch.cuda.empty_cache()
        self.n_cases += 1
        self.cases[self.n_cases] = (function, inputs, timing.tensor_bytes(specs), tf32)
        label = "torch eager" if mode == "eager" else f"torch.compile {mode}"
        return {"case": self.n_cases, "label": label, "math": math_text(specs, tf32), "torch": torch.__version__}

    def kernelbench_case(self, request, kernelbench, device):
        """The model's forward; its parameters stay as the file makes them."""
        task = kernelbench.Task(request["file"], int(request.get("seed", 42)), bool(request.get("train", True)))
        model, inputs = task.prepared({}, None, device)
        places = [i for i, value in enumerate(inputs) if hasattr(value, "dtype")]

        def forward(*tensors):
            full = list(inputs)
            for place, tensor in zip(places, tensors):
                full[place] = tensor
            outputs = model(*full)
            return outputs if isinstance(outputs, tuple) else (outputs,)
        specs = [dict(d, role="input", fill="uniform") for d in task.describe()["inputs"]]
        return forward, specs

    @staticmethod
    def try_once(torch, timing, device, function, inputs):
        """Compiles, and finds out here whether it runs; results for the same inputs each time."""
        sets = timing.Sets(inputs, device, 1)
        with torch.inference_mode():
            sets.grow(1)
            for _ in range(3):
                results = function(*sets.sets[0])
        torch.cuda.synchronize()
        return results

    def measure(self, request):
        torch, _, timing, _ = import_torch()
        case = self.cases.get(request.get("case"))
        if not case:
            raise Refusal("config", "no such case is prepared")
        function, inputs, one_set, tf32 = case
        set_tf32(torch, tf32)
        try:
            return timing.measure(function, inputs, one_set, request, need_gpu(torch))
        finally:
            gc.collect()
            torch.cuda.empty_cache()

    def release(self, cases):
        for case in cases:
            self.cases.pop(case, None)
        gc.collect()

    # ---- correctness ----

    def load(self, request):
        *_, kernelbench = import_torch()
        task = kernelbench.Task(request["file"], int(request.get("seed", 42)), bool(request.get("train", True)))
        return task.describe()

    def evaluate(self, request):
        torch, ops, timing, kernelbench = import_torch()
        device = need_gpu(torch) if request.get("device") == "cuda" else torch.device("cpu")
        precisions = {"float64": torch.float64, "float32": torch.float32, "native": None}
        precision = request.get("precision", "float64")
        if precision not in precisions:
            raise Refusal("config", f"precision {precision}: it must be {', '.join(precisions)}")
        dtype = precisions[precision]
        set_tf32(torch, False)
        given = {t["name"]: read_tensor(torch, timing, t) for t in request["tensors"] if has_data(t)}
        if "file" in request:
            task = kernelbench.Task(request["file"], int(request.get("seed", 42)), bool(request.get("train", True)))
            results = task.evaluate(given, dtype, device)
        else:
            function, _, _ = graph_function(request, ops)
            names = [t["name"] for t in request["tensors"] if t["role"] != "output"]
            missing = [n for n in names if n not in given]
            if missing:
                raise Refusal("config", f"no data for {missing[0]}")
            with torch.no_grad(), kernelbench.default_dtype(dtype or torch.float32):
                results = function(*[placed(given[n], dtype, device) for n in names])
        return {"outputs": [write_tensor(kernelbench, y, want) for y, want in
                            zip(results, padded(request.get("outputs"), len(results)))]}


def check_shapes(results, outputs):
    for spec, result in zip(outputs, results):
        if list(result.shape) != list(spec["shape"]):
            raise Refusal("unsupported", f"PyTorch gives {spec['name']} the shape {list(result.shape)}, the task "
                          f"{spec['shape']}")


def check_values(torch, got, wanted):
    """What was compiled must give what it was compiled from: 1 % of the norm, which no honest rounding reaches."""
    for y, want in zip(got, wanted):
        if not want.dtype.is_floating_point:
            continue
        finite = torch.isfinite(want)
        error = torch.where(finite, y - want, 0).float().norm()
        if not error <= 0.01 * torch.where(finite, want, 0).float().norm() + 1e-12:
            raise Refusal("internal", "torch.compile's results are not those of the operators")


def set_tf32(torch, on):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def padded(wanted, n):
    wanted = list(wanted or [])
    return wanted + [{}] * (n - len(wanted))


def has_data(t):
    return "file" in t or "base64" in t


def placed(tensor, dtype, device):
    tensor = tensor.to(device)
    return tensor.to(dtype) if dtype is not None and tensor.dtype.is_floating_point else tensor


def read_tensor(torch, timing, t):
    """Row-major elements, in the machine's byte order, from a file (from `offset` on) or from base64."""
    dtype = timing.DTYPES.get(t["dtype"])
    if dtype is None:
        raise Refusal("config", f"{t['name']}: dtype {t['dtype']} is not known")
    n = dtype.itemsize
    for extent in t["shape"]:
        n *= extent
    if "file" in t:
        with open(t["file"], "rb") as file:
            file.seek(int(t.get("offset", 0)))
            data = file.read(n)
    else:
        data = base64.b64decode(t["base64"], validate=True)
    if len(data) != n:
        raise Refusal("config", f"{t['name']}: {len(data)} bytes where {n} are wanted")
    if not n:
        return torch.empty(t["shape"], dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(t["shape"])


def write_tensor(kernelbench, y, want):
    """What evaluate answers of one output: floating ones in the dtype of the evaluation."""
    y = y.detach().cpu().contiguous()
    answer = {"dtype": kernelbench.NAMES[y.dtype], "shape": list(y.shape)}
    data = ctypes.string_at(y.data_ptr(), y.numel() * y.element_size()) if y.numel() else b""
    if "file" in want:
        with open(want["file"], "wb") as file:
            file.write(data)
    else:
        answer["base64"] = base64.b64encode(data).decode()
    return answer


def refusal_of(why):
    """Kind and message of whatever went wrong."""
    if isinstance(why, Refusal):
        return why.kind, str(why)
    name, text = type(why).__name__, str(why).strip()
    traceback.print_exc()
    if name == "OutOfMemoryError":
        return "memory", text[:900]
    if name in ("TaskError", "KeyError", "ValueError", "TypeError", "FileNotFoundError"):
        return "config", f"{name}: {text}"[:900]
    if name in ("NotImplementedError", "RuntimeError") or "dynamo" in type(why).__module__:
        return "unsupported", f"{name}: {text}"[:900]
    return "internal", f"{name}: {text}"[:900]


def answer_to(helper, line):
    try:
        request = json.loads(line)
        op = request.get("op") if isinstance(request, dict) else None
        if op not in ("hello", "prepare", "measure", "evaluate", "load"):
            raise Refusal("config", f"unknown operation {op}")
        if request.get("release"):
            helper.release(request["release"])
        return {"ok": True, **getattr(helper, op)(request)}
    except Exception as why:  # every failure is an answer
        kind, message = refusal_of(why)
        return {"ok": False, "kind": kind, "message": message}


def main():
    # Nothing else may write among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    helper = Helper()
    for line in sys.stdin:
        answers.write(json.dumps(answer_to(helper, line)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
