"""Tasks of KernelBench: a Python file with class Model, get_inputs() and get_init_inputs().

The file is code of the user's and runs as such. Parameters and buffers of the model become tensors
beside the inputs, named `param.NAME`, so that a kernel can be given the same ones.
"""
import contextlib
import importlib.util
import inspect
import itertools
import sys

import torch

NAMES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
         torch.int8: "i8", torch.uint8: "u8", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}


class TaskError(Exception):
    """The file is no such task; the message says why."""


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


_numbers = itertools.count(1)


def _load(path):
    spec = importlib.util.spec_from_file_location(f"rung_kernelbench_task_{next(_numbers)}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # torch.compile imports the modules of what it compiles
    spec.loader.exec_module(module)
    for name in ("Model", "get_inputs"):
        if not callable(getattr(module, name, None)):
            raise TaskError(f"{path} has no {name}")
    return module


def _arguments(given):
    """get_init_inputs may give a list, or [list, dict] of positional and named arguments."""
    given = [] if given is None else list(given)
    if len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict):
        return list(given[0]), given[1]
    if len(given) == 1 and isinstance(given[0], dict):
        return [], given[0]
    return given, {}


def describe(name, tensor):
    if tensor.dtype not in NAMES:
        raise TaskError(f"{name} has a dtype that rung does not know: {tensor.dtype}")
    return {"name": name, "dtype": NAMES[tensor.dtype], "shape": list(tensor.shape)}


def _flatten(outputs):
    if torch.is_tensor(outputs):
        return [outputs]
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    if not isinstance(outputs, (list, tuple)):
        raise TaskError(f"forward gives a {type(outputs).__name__}, not tensors")
    return [t for part in outputs for t in _flatten(part)]


class Task:
    """One file at one seed: the model and its inputs as KernelBench would make them, on the CPU."""

    def __init__(self, path, seed, train=True):
        self.path, self.seed, self.train = path, seed, train
        self.module = _load(path)
        torch.manual_seed(seed)
        init = getattr(self.module, "get_init_inputs", lambda: [])
        self.init = _arguments(init())
        self.model = self.build(torch.float32)
        torch.manual_seed(seed)
        self.inputs = list(self.module.get_inputs())
        self.input_names = self._input_names()

    def build(self, dtype):
        """A model whose constants have `dtype`; KernelBench never calls eval(), so `train` is the rule."""
        torch.manual_seed(self.seed)
        with default_dtype(dtype):
            model = self.module.Model(*self.init[0], **self.init[1])
        return model.train(self.train)

    def _input_names(self):
        names = [p for p in inspect.signature(self.model.forward).parameters]
        names += [f"input{i}" for i in range(len(names), len(self.inputs))]
        return names[:len(self.inputs)]

    def state(self):
        """Parameters and buffers that are tensors, by name."""
        return dict(self.model.state_dict(keep_vars=False))

    def random(self):
        """Layers that draw random numbers when they run."""
        return sorted({type(m).__name__ for m in self.model.modules()
                       if m.training and "dropout" in type(m).__name__.lower() and getattr(m, "p", 0)})

    def describe(self):
        inputs = [describe(n, t) for n, t in zip(self.input_names, self.inputs) if torch.is_tensor(t)]
        params = [describe(f"param.{n}", t) for n, t in self.state().items()]
        constants = {n: repr(v) for n, v in zip(self.input_names, self.inputs) if not torch.is_tensor(v)}
        return {"inputs": inputs, "params": params, "constants": constants, "outputs": self.outputs(),
                "random": self.random()}

    def outputs(self):
        """Shapes and dtypes without computing anything; None where the model can't be run so."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        try:
            with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
                inputs = [mode.from_tensor(t) if torch.is_tensor(t) else t for t in self.inputs]
                return [describe(f"output{i}", t)
                        for i, t in enumerate(_flatten(self.build(torch.float32)(*inputs)))]
        except Exception:  # whatever the model does that shapes alone don't allow
            return None

    def prepared(self, given, dtype, device):
        """A model and its inputs on the device; floating tensors in `dtype`, None: as they are."""
        def place(t):
            t = t.to(device)
            return t.to(dtype) if dtype is not None and t.dtype.is_floating_point else t
        model = self.build(dtype or torch.float32).to(device)
        state = {name: place(given.get(f"param.{name}", t)) for name, t in self.state().items()}
        model.load_state_dict(state)
        inputs = [place(given.get(n, v)) if torch.is_tensor(v) else v
                  for n, v in zip(self.input_names, self.inputs)]
        return model, inputs

    def evaluate(self, given, dtype, device):
        """Outputs of forward. given: tensors by name, in place of those of the file's own."""
        model, inputs = self.prepared(given, dtype, device)
        torch.manual_seed(self.seed)
        with torch.no_grad(), default_dtype(dtype or torch.float32):
            return _flatten(model(*inputs))
