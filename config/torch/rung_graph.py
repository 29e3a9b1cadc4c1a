"""From the text of `reference.graph` (docs/operators.md) to the text of a Python function.

The language looks like Python, so Python's own parser reads it. Numbers are folded: what is left
calls functions of rung_ops.py. Nothing of the text is ever evaluated: only names of operators that
stand in the table below come into the result. Needs no torch.
"""
import ast
import math


class GraphError(Exception):
    """The text can't be translated; the message says what and where."""


# Operator: its parameters in order, each with its kind, and how many are required.
# t tensor or number, i whole number, n one whole number or a list, a axes (None: all), b flag, w word.
OPS = {}


def _add(names, required, params):
    for name in names.split():
        OPS[name] = (required, [tuple(p.split(":")) for p in params.split()])


_add("abs sign floor ceil round exp exp2 expm1 log log2 log1p sqrt rsqrt square reciprocal sin cos erf tanh "
     "relu relu6 sigmoid logsigmoid silu softplus softsign mish selu hardswish hardsigmoid", 1, "x:t")
_add("pow", 2, "x:t exponent:t")
_add("maximum minimum gt ge lt le eq ne", 2, "x:t y:t")
_add("clamp hardtanh", 1, "x:t min:t max:t")
_add("leaky_relu", 1, "x:t slope:t")
_add("elu", 1, "x:t alpha:t")
_add("gelu", 1, "x:t approximate:w")
_add("where", 3, "condition:t x:t y:t")
_add("sum mean max min prod logsumexp", 1, "x:t axis:a keepdim:b")
_add("argmax argmin", 1, "x:t axis:a keepdim:b")
_add("var", 1, "x:t axis:a keepdim:b unbiased:b")
_add("norm", 1, "x:t axis:a keepdim:b p:i")
_add("softmax log_softmax cumsum cumprod", 2, "x:t axis:a")
_add("matmul bmm", 2, "a:t b:t transpose_a:b transpose_b:b")
_add("attention", 3, "q:t k:t v:t causal:b scale:t mask:t")
for _n in "123":
    _add(f"conv{_n}d", 2, "x:t w:t bias:t stride:n pad:n dilation:n groups:i")
    _add(f"conv_transpose{_n}d", 2, "x:t w:t bias:t stride:n pad:n dilation:n groups:i output_pad:n")
    _add(f"maxpool{_n}d", 2, "x:t kernel:n stride:n pad:n dilation:n ceil_mode:b")
    _add(f"avgpool{_n}d", 2, "x:t kernel:n stride:n pad:n count_include_pad:b ceil_mode:b")
    _add(f"adaptive_avgpool{_n}d adaptive_maxpool{_n}d", 2, "x:t output_size:n")
_add("layernorm", 1, "x:t weight:t bias:t axis:i eps:t")
_add("rmsnorm", 1, "x:t weight:t axis:i eps:t")
_add("groupnorm", 1, "x:t weight:t bias:t groups:i eps:t")
_add("instancenorm", 1, "x:t weight:t bias:t eps:t")
_add("batchnorm", 1, "x:t weight:t bias:t running_mean:t running_var:t eps:t")
_add("mse_loss l1_loss binary_cross_entropy", 2, "input:t target:t reduction:w")
_add("smooth_l1_loss", 2, "input:t target:t reduction:w beta:t")
_add("huber_loss", 2, "input:t target:t reduction:w delta:t")
_add("kl_div", 2, "input:t target:t reduction:w log_target:b")
_add("nll_loss cross_entropy", 2, "input:t target:t reduction:w ignore_index:i")
_add("transpose", 1, "x:t dim0:i dim1:i")
_add("permute", 2, "x:t axes:n")
_add("reshape", 2, "x:t shape:n")
_add("flatten", 1, "x:t start:i end:i")
_add("squeeze", 1, "x:t axis:a")
_add("unsqueeze", 2, "x:t axis:i")
_add("slice", 2, "x:t axis:i start:i end:i step:i")
_add("narrow", 4, "x:t axis:i start:i length:i")
_add("select", 3, "x:t axis:i index:i")
_add("flip", 2, "x:t axis:a")
_add("tril triu", 1, "x:t diagonal:i")
_add("concat", 0, "axis:i")

ALIASES = {"cat": "concat", "huber": "huber_loss", "smoothl1": "smooth_l1_loss",
           "scaleddotproductattention": "attention"}
PARAM_ALIASES = {"dim": "axis", "dims": "axes", "kernelsize": "kernel", "padding": "pad",
                 "outputpadding": "output_pad", "numgroups": "groups", "negativeslope": "slope",
                 "iscausal": "causal", "attnmask": "mask", "b": "bias"}
COMPARISONS = ("gt", "ge", "lt", "le", "eq", "ne")
BY_PLAIN_NAME = {name.replace("_", ""): name for name in OPS}
MAX_TEXT, MAX_DEPTH = 65536, 64


def _operator(name):
    plain = name.replace("_", "")
    return ALIASES.get(plain) or BY_PLAIN_NAME.get(plain)


def _parameter(given, params):
    plain = given.replace("_", "")
    names = {p.replace("_", ""): p for p, _ in params}
    return names.get(plain) or next((p for p, _ in params if p == PARAM_ALIASES.get(plain)), None)


class Value:
    """One expression: Python text, and whether it is a number (then `number` holds it) or a truth value."""

    def __init__(self, text, number=None, truth=False):
        self.text, self.number, self.truth = text, number, truth

    @staticmethod
    def of(number):
        if isinstance(number, float) and not math.isfinite(number):
            raise GraphError("a number beyond the range of float64")
        return Value(repr(number), number)

    def operand(self):
        """The text where arithmetic wants it: truth values count 0 and 1."""
        return f"R.as_number({self.text})" if self.truth else self.text


class Translator:
    """tensors: names of input tensors; numbers: dims and parameters by name."""

    def __init__(self, tensors, numbers):
        self.tensors, self.numbers = set(tensors), dict(numbers)
        self.lines, self.depth = [], 0

    # ---- whole numbers: C's division ----

    def integer(self, node):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            if node.value == int(node.value):
                return int(node.value)
        elif isinstance(node, ast.Name) and isinstance(self.numbers.get(node.id), int):
            return self.numbers[node.id]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            value = self.integer(node.operand)
            return -value if isinstance(node.op, ast.USub) else value
        elif isinstance(node, ast.BinOp):
            return self.integer_binary(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            args = [self.integer(a) for a in node.args]
            if node.func.id == "ceil_div" and len(args) == 2 and args[1]:
                return -(-args[0] // args[1])
            if node.func.id in ("min", "max") and args:
                return (min if node.func.id == "min" else max)(args)
        raise GraphError(f"no whole number at column {getattr(node, 'col_offset', 0) + 1}")

    def integer_binary(self, node):
        a, b = self.integer(node.left), self.integer(node.right)
        if isinstance(node.op, ast.Add):
            return a + b
        if isinstance(node.op, ast.Sub):
            return a - b
        if isinstance(node.op, ast.Mult):
            return a * b
        if isinstance(node.op, (ast.Div, ast.Mod)) and b:
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if isinstance(node.op, ast.Div) else a - quotient * b
        raise GraphError("an operator that whole numbers don't have")

    def integers(self, node):
        """A number or a tuple."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self.integer(e) for e in node.elts)
        return self.integer(node)

    # ---- arguments ----

    def argument(self, kind, node):
        if kind == "t":
            return self.value(node).operand()
        if kind == "i":
            return repr(self.integer(node))
        if kind in "na":
            if isinstance(node, ast.Name) and node.id == "same":
                return repr("same")
            return repr(self.integers(node))
        if kind == "b":
            if isinstance(node, ast.Name) and node.id in ("true", "false"):
                return repr(node.id == "true")
            if isinstance(node, ast.Constant) and isinstance(node.value, bool):
                return repr(node.value)
            return repr(bool(self.integer(node)))
        if isinstance(node, ast.Name):
            return repr(node.id)
        raise GraphError("a word is wanted")

    def call(self, node):
        if not isinstance(node.func, ast.Name):
            raise GraphError("an operator must be a name")
        name = _operator(node.func.id)
        if not name:
            raise GraphError(f"PyTorch form of the operator '{node.func.id}' is not known")
        if name == "concat":
            return self.concat(node)
        required, params = OPS[name]
        bound = {}
        for (param, kind), arg in zip(params, node.args):
            bound[param] = self.bind(name, param, kind, arg)
        if len(node.args) > len(params):
            raise GraphError(f"{name} takes {len(params)} arguments at most")
        for keyword in node.keywords:
            param = _parameter(keyword.arg or "", params)
            if not param or param in bound:
                raise GraphError(f"{name}: '{keyword.arg}' is unknown or given twice")
            bound[param] = self.bind(name, param, dict(params)[param], keyword.value)
        missing = [p for p, _ in params[:required] if p not in bound]
        if missing:
            raise GraphError(f"{name}: {missing[0]} is missing")
        given = ", ".join(f"{p}={text}" for p, text in bound.items())
        return Value(f"R.{name}({given})", truth=name in COMPARISONS)

    def bind(self, name, param, kind, node):
        if name == "where" and param == "condition":
            return self.value(node).text
        return self.argument(kind, node)

    def concat(self, node):
        parts, axis = node.args, 0
        if len(parts) == 1 and isinstance(parts[0], (ast.Tuple, ast.List)):
            parts = parts[0].elts
        for keyword in node.keywords:
            if _parameter(keyword.arg or "", OPS["concat"][1]) != "axis":
                raise GraphError(f"concat: '{keyword.arg}' is unknown")
            axis = self.integer(keyword.value)
        texts = ", ".join(self.value(p).operand() for p in parts)
        return Value(f"R.concat([{texts}], axis={axis})")

    # ---- expressions ----

    def value(self, node):
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise GraphError(f"nested deeper than {MAX_DEPTH}")
        try:
            return self.expression(node)
        finally:
            self.depth -= 1

    def expression(self, node):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return Value.of(node.value)
        if isinstance(node, ast.Name):
            if node.id in self.tensors:
                return Value(f"t_{node.id}")
            if node.id in self.numbers:
                return Value.of(self.numbers[node.id])
            raise GraphError(f"the name '{node.id}' is not known")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            x = self.value(node.operand)
            if isinstance(node.op, ast.UAdd):
                return x
            return Value.of(-x.number) if x.number is not None else Value(f"(-{x.operand()})")
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        raise GraphError(f"not understood at column {getattr(node, 'col_offset', 0) + 1}")

    def binary(self, node):
        signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
        sign = signs.get(type(node.op))
        if not sign:
            raise GraphError("an operator that tensors don't have")
        a, b = self.value(node.left), self.value(node.right)
        if a.number is None or b.number is None:
            return Value(f"({a.operand()} {sign} {b.operand()})")
        x, y = float(a.number), float(b.number)
        try:
            return Value.of({"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y,
                             "/": lambda: x / y, "**": lambda: math.pow(x, y)}[sign]())
        except (ArithmeticError, ValueError) as why:
            raise GraphError(f"numbers: {why}") from None

    def statement(self, text):
        try:
            tree = ast.parse(" ".join(text.split()))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
            raise GraphError(f"'{text.strip()[:80]}': {why}") from None
        if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Assign):
            raise GraphError(f"'{text.strip()[:80]}' is no assignment")
        targets = tree.body[0].targets
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            raise GraphError(f"'{text.strip()[:80]}' does not assign to one name")
        value = self.value(tree.body[0].value)
        self.tensors.add(targets[0].id)
        self.lines.append(f"    t_{targets[0].id} = {value.operand()}")


def translate(graph, inputs, outputs, numbers):
    """Text of `def graph(t_INPUT...)` that returns a tuple of the outputs, in order.

    inputs, outputs: names of tensors. numbers: dims and i64 parameters as int, f64 parameters as
    float. GraphError when the text is beyond the language.
    """
    if len(graph) > MAX_TEXT:
        raise GraphError(f"the text is longer than {MAX_TEXT} bytes")
    translator = Translator(inputs, numbers)
    for text in graph.split(";"):
        if text.strip():
            translator.statement(text)
    missing = [name for name in outputs if name not in translator.tensors]
    if missing:
        raise GraphError(f"the output {missing[0]} is not assigned")
    head = f"def graph({', '.join('t_' + name for name in inputs)}):"
    tail = f"    return ({', '.join('t_' + name for name in outputs)},)"
    return "\n".join([head, *translator.lines, tail, ""])
