"""The operators of docs/operators.md in PyTorch: the functions that rung_graph.py's text calls as R.

Each takes what rung_graph.OPS names, by keyword, and computes in the dtypes that it is given.
"""
import builtins
import math

import torch
import torch.nn.functional as F

UNARY = {
    "abs": torch.abs, "sign": torch.sign, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round,
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2,
    "log1p": torch.log1p, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "square": torch.square,
    "reciprocal": torch.reciprocal, "sin": torch.sin, "cos": torch.cos, "erf": torch.erf, "tanh": torch.tanh,
    "relu": torch.relu, "relu6": F.relu6, "sigmoid": torch.sigmoid, "logsigmoid": F.logsigmoid,
    "silu": F.silu, "softplus": F.softplus, "softsign": F.softsign, "mish": F.mish, "selu": F.selu,
    "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid}


def _unary(function):
    def operator(x):
        return function(x)
    return operator


for _name, _function in UNARY.items():
    globals()[_name] = _unary(_function)


def as_number(x):
    """A truth value as 0 or 1."""
    return x.to(torch.get_default_dtype())


def pow(x, exponent):
    return torch.pow(x, exponent)


def maximum(x, y):
    if not torch.is_tensor(y):
        return torch.clamp(x, min=y)
    return torch.maximum(x, y) if torch.is_tensor(x) else torch.clamp(y, min=x)


def minimum(x, y):
    if not torch.is_tensor(y):
        return torch.clamp(x, max=y)
    return torch.minimum(x, y) if torch.is_tensor(x) else torch.clamp(y, max=x)


def gt(x, y):
    return x > y


def ge(x, y):
    return x >= y


def lt(x, y):
    return x < y


def le(x, y):
    return x <= y


def eq(x, y):
    return x == y


def ne(x, y):
    return x != y


def where(condition, x, y):
    if torch.is_tensor(condition) and condition.dtype != torch.bool:
        condition = condition != 0
    return torch.where(condition, x, y)


def clamp(x, min=None, max=None):
    return torch.clamp(x, min=min, max=max)


def hardtanh(x, min=-1.0, max=1.0):
    return torch.clamp(x, min=min, max=max)


def leaky_relu(x, slope=0.01):
    return torch.where(x > 0, x, x * slope) if torch.is_tensor(slope) else F.leaky_relu(x, slope)


def elu(x, alpha=1.0):
    return torch.where(x > 0, x, torch.expm1(x) * alpha) if torch.is_tensor(alpha) else F.elu(x, alpha)


def gelu(x, approximate="none"):
    return F.gelu(x, approximate=approximate)


# ---- Along axes ----

def _axes(x, axis):
    """PyTorch's `dim` as a tuple: all axes when none is named."""
    if axis is None:
        return tuple(range(x.dim()))
    return axis if isinstance(axis, tuple) else (axis,)


def _one(axis):
    return axis[0] if isinstance(axis, tuple) else axis


def sum(x, axis=None, keepdim=False):
    return torch.sum(x, dim=_axes(x, axis), keepdim=keepdim)


def mean(x, axis=None, keepdim=False):
    return torch.mean(x, dim=_axes(x, axis), keepdim=keepdim)


def max(x, axis=None, keepdim=False):
    return torch.amax(x, dim=_axes(x, axis), keepdim=keepdim)


def min(x, axis=None, keepdim=False):
    return torch.amin(x, dim=_axes(x, axis), keepdim=keepdim)


def prod(x, axis=None, keepdim=False):
    if axis is None and not keepdim:
        return torch.prod(x)
    for d in sorted((a % x.dim() for a in _axes(x, axis)), reverse=True):
        x = torch.prod(x, dim=d, keepdim=keepdim)
    return x


def logsumexp(x, axis=None, keepdim=False):
    return torch.logsumexp(x, dim=_axes(x, axis), keepdim=keepdim)


def var(x, axis=None, keepdim=False, unbiased=True):
    return torch.var(x, dim=_axes(x, axis), correction=1 if unbiased else 0, keepdim=keepdim)


def norm(x, axis=None, keepdim=False, p=2):
    return torch.linalg.vector_norm(x, ord=p, dim=_axes(x, axis), keepdim=keepdim)


def argmax(x, axis=None, keepdim=False):
    return torch.argmax(x, dim=_one(axis), keepdim=keepdim)


def argmin(x, axis=None, keepdim=False):
    return torch.argmin(x, dim=_one(axis), keepdim=keepdim)


def softmax(x, axis):
    return F.softmax(x, dim=_one(axis))


def log_softmax(x, axis):
    return F.log_softmax(x, dim=_one(axis))


def cumsum(x, axis):
    return torch.cumsum(x, dim=_one(axis))


def cumprod(x, axis):
    return torch.cumprod(x, dim=_one(axis))


# ---- Products ----

def matmul(a, b, transpose_a=False, transpose_b=False):
    a = a.transpose(-2, -1) if transpose_a else a
    return torch.matmul(a, b.transpose(-2, -1) if transpose_b else b)


bmm = matmul


def attention(q, k, v, causal=False, scale=None, mask=None):
    if torch.is_tensor(scale):
        q, scale = q * scale, 1.0
    if mask is not None and causal:
        below = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
        mask = mask & below if mask.dtype == torch.bool else mask.masked_fill(~below, -math.inf)
        causal = False
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale)


def _conv(function):
    def operator(x, w, bias=None, stride=1, pad=0, dilation=1, groups=1):
        return function(x, w, bias, stride=stride, padding=pad, dilation=dilation, groups=groups)
    return operator


def _conv_transpose(function):
    def operator(x, w, bias=None, stride=1, pad=0, dilation=1, groups=1, output_pad=0):
        return function(x, w, bias, stride=stride, padding=pad, output_padding=output_pad, groups=groups,
                        dilation=dilation)
    return operator


def _max_pool(function):
    def operator(x, kernel, stride=None, pad=0, dilation=1, ceil_mode=False):
        return function(x, kernel, kernel if stride is None else stride, pad, dilation, ceil_mode)
    return operator


def _avg_pool(function):
    def operator(x, kernel, stride=None, pad=0, count_include_pad=True, ceil_mode=False):
        return function(x, kernel, kernel if stride is None else stride, pad, ceil_mode, count_include_pad)
    return operator


def _adaptive(function):
    def operator(x, output_size):
        return function(x, output_size)
    return operator


for _n, _functions in {"1": (F.conv1d, F.conv_transpose1d, F.max_pool1d, F.avg_pool1d, F.adaptive_avg_pool1d,
                             F.adaptive_max_pool1d),
                       "2": (F.conv2d, F.conv_transpose2d, F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d,
                             F.adaptive_max_pool2d),
                       "3": (F.conv3d, F.conv_transpose3d, F.max_pool3d, F.avg_pool3d, F.adaptive_avg_pool3d,
                             F.adaptive_max_pool3d)}.items():
    _makers = (("conv", _conv), ("conv_transpose", _conv_transpose), ("maxpool", _max_pool),
               ("avgpool", _avg_pool), ("adaptive_avgpool", _adaptive), ("adaptive_maxpool", _adaptive))
    for (_name, _maker), _function in zip(_makers, _functions):
        globals()[f"{_name}{_n}d"] = _maker(_function)


# ---- Normalisations ----

def layernorm(x, weight=None, bias=None, axis=-1, eps=1e-5):
    shape = x.shape[axis:]
    if all(p is None or p.shape == shape for p in (weight, bias)):
        return F.layer_norm(x, shape, weight, bias, eps)
    y = F.layer_norm(x, shape, None, None, eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rmsnorm(x, weight=None, axis=-1, eps=1e-6):
    shape = x.shape[axis:]
    if weight is None or weight.shape == shape:
        return F.rms_norm(x, shape, weight, eps)
    return F.rms_norm(x, shape, None, eps) * weight


def groupnorm(x, weight=None, bias=None, groups=1, eps=1e-5):
    return F.group_norm(x, groups, weight, bias, eps)


def instancenorm(x, weight=None, bias=None, eps=1e-5):
    return F.instance_norm(x, weight=weight, bias=bias, eps=eps)


def batchnorm(x, weight=None, bias=None, running_mean=None, running_var=None, eps=1e-5):
    return F.batch_norm(x, running_mean, running_var, weight, bias, training=running_mean is None, eps=eps)


# ---- Losses ----

def mse_loss(input, target, reduction="mean"):
    return F.mse_loss(input, target, reduction=reduction)


def l1_loss(input, target, reduction="mean"):
    return F.l1_loss(input, target, reduction=reduction)


def binary_cross_entropy(input, target, reduction="mean"):
    return F.binary_cross_entropy(input, target, reduction=reduction)


def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    return F.smooth_l1_loss(input, target, reduction=reduction, beta=beta)


def huber_loss(input, target, reduction="mean", delta=1.0):
    return F.huber_loss(input, target, reduction=reduction, delta=delta)


def kl_div(input, target, reduction="mean", log_target=False):
    return F.kl_div(input, target, reduction=reduction, log_target=log_target)


def _classes(target):
    return target if target.is_floating_point() else target.long()


def nll_loss(input, target, reduction="mean", ignore_index=-100):
    return F.nll_loss(input, _classes(target), reduction=reduction, ignore_index=ignore_index)


def cross_entropy(input, target, reduction="mean", ignore_index=-100):
    return F.cross_entropy(input, _classes(target), reduction=reduction, ignore_index=ignore_index)


# ---- Shapes ----

def transpose(x, dim0=-2, dim1=-1):
    return x.transpose(dim0, dim1)


def permute(x, axes):
    return x.permute(axes)


def reshape(x, shape):
    return x.reshape(shape)


def flatten(x, start=0, end=-1):
    return torch.flatten(x, start, end)


def squeeze(x, axis=None):
    return torch.squeeze(x) if axis is None else torch.squeeze(x, axis)


def unsqueeze(x, axis):
    return torch.unsqueeze(x, axis)


def slice(x, axis, start=0, end=None, step=1):
    index = [builtins.slice(None)] * x.dim()
    index[axis] = builtins.slice(start, end, step)
    return x[tuple(index)]


def narrow(x, axis, start, length):
    return torch.narrow(x, axis, start, length)


def select(x, axis, index):
    return torch.select(x, axis, index)


def flip(x, axis):
    return torch.flip(x, _axes(x, axis))


def tril(x, diagonal=0):
    return torch.tril(x, diagonal)


def triu(x, diagonal=0):
    return torch.triu(x, diagonal)


def concat(parts, axis=0):
    return torch.cat(parts, dim=axis)
