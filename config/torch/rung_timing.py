"""Times a function of tensors on a CUDA device as rung times a kernel (docs/baselines.md).

A sample is `batch` calls, each on another of `sets` sets of inputs, between two events of one stream.
Before each sample every set gets inputs that no call saw before, the L2 cache is emptied when the
recipe is cold, and a kernel keeps the GPU busy until all of the sample is queued, so that the host's
part of a launch is not in the time. More than one call a sample is replayed from a CUDA graph.
"""
import math
import time

import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "i8": torch.int8, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}
SHORT_S = 200e-6      # below this a sample is a batch
BATCH_S = 1e-3        # what a batch should take
MOST_SETS = 256
MEMORY_SHARE = 0.4    # of the free memory, for all sets
LONGEST_WAIT_S = 0.05  # that the GPU is kept busy for the host
LAUNCHES_DISCARDED = 3
FLOOR_PAIRS = 21


def draw(tensor, kind, generator):
    """Fills a tensor as rung/session.h says of `kind`; the distribution is the same, the bits are not."""
    if tensor.dtype == torch.bool:
        return tensor.random_(0, 2, generator=generator)
    if not tensor.dtype.is_floating_point:
        return _draw_whole(tensor, kind, generator)
    if kind == "uniform":
        return tensor.uniform_(0, 1, generator=generator)
    if kind == "signed":
        return tensor.uniform_(-1, 1, generator=generator)
    if kind == "zeros":
        return tensor.zero_()
    if kind == "ones":
        return tensor.fill_(1)
    if kind == "integers":
        return tensor.random_(0, 17, generator=generator).sub_(8)
    if kind == "ramp":
        ramp = torch.arange(tensor.numel(), device=tensor.device).remainder_(97).sub_(48)
        return tensor.copy_((ramp / 16).reshape(tensor.shape))
    if kind in ("equal_rows", "onehot_rows") and tensor.dim():
        rows = tensor.shape[:-1] + (1,)
        if kind == "equal_rows":
            return tensor.copy_(torch.empty(rows, device=tensor.device).normal_(generator=generator))
        place = torch.empty(rows, dtype=torch.int64, device=tensor.device)
        place.random_(0, tensor.shape[-1], generator=generator)
        return tensor.zero_().scatter_(-1, place, 30)
    mean, deviation = {"offset": (1000, 1), "large": (0, 1e4), "small": (0, 1e-6)}.get(kind, (0, 1))
    return tensor.normal_(mean, deviation, generator=generator)


def _draw_whole(tensor, kind, generator):
    if kind == "integers":
        low = 0 if tensor.dtype == torch.uint8 else -8
        return tensor.random_(0, 9 - low, generator=generator).add_(low)
    real = torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
    return tensor.copy_(draw(real, kind, generator).trunc_())


def tensor_bytes(specs):
    return sum(math.prod(s["shape"]) * DTYPES[s["dtype"]].itemsize for s in specs)


class Sets:
    """Sets of inputs; refresh() gives each new values."""

    def __init__(self, specs, device, seed):
        self.specs, self.device, self.sets = specs, device, []
        self.generator = torch.Generator(device=device)
        self.generator.manual_seed(seed & (2**63 - 1))

    def grow(self, n):
        while len(self.sets) < n:
            tensors = [torch.empty(s["shape"], dtype=DTYPES[s["dtype"]], device=self.device)
                       for s in self.specs]
            self.sets.append(tensors)
            self._fill(tensors)

    def _fill(self, tensors):
        for spec, tensor in zip(self.specs, tensors):
            draw(tensor, spec.get("fill") or "normal", self.generator)

    def refresh(self):
        for tensors in self.sets:
            self._fill(tensors)


class Stopwatch:
    """Events, the emptied cache and the waiting GPU, on the current stream."""

    def __init__(self, device, cold):
        self.device, self.cold = device, cold
        self.l2 = torch.cuda.get_device_properties(device).L2_cache_size
        n = 2 * self.l2 // 4 + 1
        self.dirt = torch.empty(n, dtype=torch.int32, device=device) if cold else None
        self.clean = torch.zeros(n, dtype=torch.int32, device=device) if cold else None
        self.sink = torch.zeros((), dtype=torch.int64, device=device)
        self.wait_s = 100e-6

    def flush(self):
        """Twice the cache is overwritten, then twice the cache is read: no line of it is left, none is dirty."""
        self.dirt.add_(1)
        torch.sum(self.clean, dim=0, out=self.sink)

    def hold(self):
        torch.cuda._sleep(int(self.wait_s * 2e9))

    def sample(self, work, before=None):
        """Seconds of the work; None when the GPU did not wait long enough for it to be queued."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if before:
            before()
        if self.cold:
            self.flush()
        self.hold()
        begin.record()
        work()
        end.record()
        late = begin.query()
        end.synchronize()
        if late and self.wait_s < LONGEST_WAIT_S:
            self.wait_s = min(4 * self.wait_s, LONGEST_WAIT_S)
            return None
        return begin.elapsed_time(end) * 1e-3

    def sure_sample(self, work, before=None):
        while True:
            seconds = self.sample(work, before)
            if seconds is not None:
                return seconds


def median(values):
    values = sorted(values)
    n = len(values)
    return (values[n // 2] + values[(n - 1) // 2]) / 2


def choose(seconds, one_set, watch, cold, free):
    """Sets and batch of a measurement whose first block this is."""
    most = max(1, min(MOST_SETS, int(MEMORY_SHARE * free / max(1, one_set))))
    if seconds >= SHORT_S:
        return 1, 1
    batch = max(1, math.ceil(BATCH_S / seconds))
    if cold:
        rotate = max(2, math.ceil(5 * watch.l2 / max(1, one_set)) + 1)
        batch = max(batch, rotate)
    batch = min(batch, most)
    return batch, batch


def capture(function, sets, batch, stream):
    """A graph of `batch` calls, each on another set, with outputs of its own; or why there is none."""
    graph = torch.cuda.CUDAGraph()
    kept = []
    try:
        with torch.cuda.graph(graph, stream=stream):
            for i in range(batch):
                kept.append(function(*sets[i % len(sets)]))
    except Exception as why:  # whatever a framework throws where it can't be captured
        torch.cuda.synchronize()
        return None, None, f"{type(why).__name__}: {why}".splitlines()[0][:200]
    return graph, kept, None


def measure(function, specs, one_set, recipe, device):
    """One block. recipe: warmups, samples, cold, seed, sets, batch, budget_s. Times in nanoseconds."""
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.device(device), torch.cuda.stream(stream), torch.inference_mode():
        try:
            return _measure(function, specs, one_set, recipe, device, stream)
        finally:
            torch.cuda.synchronize()


def _measure(function, specs, one_set, recipe, device, stream):
    begun = time.monotonic()
    cold, wanted = bool(recipe.get("cold", 1)), max(1, int(recipe.get("samples", 1)))
    sets = Sets(specs, device, int(recipe.get("seed", 0)))
    watch = Stopwatch(device, cold)
    sets.grow(1)
    for _ in range(max(LAUNCHES_DISCARDED, int(recipe.get("warmups", 0)))):
        function(*sets.sets[0])
    n_sets, batch = int(recipe.get("sets", 0)), int(recipe.get("batch", 0))
    if not n_sets or not batch:
        guess = median([watch.sure_sample(lambda: function(*sets.sets[0])) for _ in range(5)])
        n_sets, batch = choose(guess, one_set, watch, cold, torch.cuda.mem_get_info(device)[0])
    sets.grow(n_sets)
    work, kept, note = lambda: [function(*sets.sets[i % n_sets]) for i in range(batch)], None, None
    captured = False
    if batch > 1:
        graph, kept, note = capture(function, sets.sets, batch, stream)
        if graph:
            work, captured = graph.replay, True
    watch.sure_sample(work)  # discarded: the first launch of a graph uploads it
    samples = []
    while len(samples) < wanted:
        samples.append(watch.sure_sample(work, sets.refresh) / batch * 1e9)
        if recipe.get("budget_s") and time.monotonic() - begun > recipe["budget_s"]:
            break
    floor = median([watch.sure_sample(lambda: None) for _ in range(FLOOR_PAIRS)]) / batch * 1e9
    del kept
    return {"samples_ns": samples, "floor_ns": floor, "sets": n_sets, "batch": batch,
            "cold": 0 if not cold else 2 if batch > 1 else 1, "captured": captured, "note": note or ""}
