/*
 * From an elementwise graph to CUDA C in fp32. Formulas are PyTorch's; where a plain one loses
 * range (softplus, sigmoid) the form is one that stays accurate for every finite argument. NaN goes
 * through.
 */
#include "signature.h"
#include "target.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_EXPR = 1 << 16 /* bytes */ };

struct function {
    const char *name;
    const char *call;      /* C function */
    uint32_t n_args;       /* with those that have a default */
    uint32_t helper;       /* index into helpers; 0: none, it is CUDA's own */
    const char *params[3]; /* keywords */
    const char *absent[3]; /* C text of an argument that is not given; NULL: it is required */
};

struct helper {
    uint32_t needs; /* a helper that it calls; 0: none */
    const char *text;
};

#define HEAD "static __device__ __forceinline__ float "
enum {
    H_NONE,
    H_RELU,
    H_LEAKY,
    H_SIGMOID,
    H_GELU,
    H_GELU_TANH,
    H_SILU,
    H_SOFTPLUS,
    H_MISH,
    H_HARDSWISH,
    H_CLAMP,
    H_SQUARE,
    H_MAXIMUM,
    H_MINIMUM,
    N_HELPERS
};

static const struct helper helpers[N_HELPERS] = {
    [H_RELU] = {0, HEAD "op_relu(float v) { return v < 0.0f ? 0.0f : v; }\n"},
    [H_LEAKY] = {0,
                 HEAD "op_leaky_relu(float v, float slope) { return v < 0.0f ? v * slope : v; }\n"},
    [H_SIGMOID] = {0, HEAD "op_sigmoid(float v)\n{\n    const float e = expf(-fabsf(v));\n"
                           "    return (v < 0.0f ? e : 1.0f) / (1.0f + e);\n}\n"},
    [H_GELU] = {0,
                HEAD "op_gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.707106781f)); }\n"},
    [H_GELU_TANH] =
        {0, HEAD
         "op_gelu_tanh(float v)\n{\n"
         "    return 0.5f * v * (1.0f + tanhf(0.797884561f * (v + 0.044715f * v * v * v)));\n}\n"},
    [H_SILU] = {H_SIGMOID, HEAD "op_silu(float v) { return v * op_sigmoid(v); }\n"},
    [H_SOFTPLUS] = {0, HEAD "op_softplus(float v)\n{\n"
                            "    return (v < 0.0f ? 0.0f : v) + log1pf(expf(-fabsf(v)));\n}\n"},
    [H_MISH] = {H_SOFTPLUS, HEAD "op_mish(float v) { return v * tanhf(op_softplus(v)); }\n"},
    [H_HARDSWISH] =
        {H_CLAMP,
         HEAD "op_hardswish(float v) { return v * (op_clamp(v + 3.0f, 0.0f, 6.0f) / 6.0f); }\n"},
    [H_CLAMP] = {0, HEAD "op_clamp(float v, float low, float high) { return v < low ? low : v > "
                         "high ? high : v; }\n"},
    [H_MAXIMUM] = {0, HEAD "op_maximum(float a, float b) { return a > b || a != a ? a : b; }\n"},
    [H_MINIMUM] = {0, HEAD "op_minimum(float a, float b) { return a < b || a != a ? a : b; }\n"},
    [H_SQUARE] = {0, HEAD "op_square(float v) { return v * v; }\n"},
};

/* Order in which they are written: what others need comes first. */
static const uint8_t helper_order[] = {H_CLAMP,  H_SIGMOID,   H_SOFTPLUS, H_RELU, H_LEAKY,
                                       H_GELU,   H_GELU_TANH, H_SILU,     H_MISH, H_HARDSWISH,
                                       H_SQUARE, H_MAXIMUM,   H_MINIMUM};

#define UNARY(name, call, helper)                                                                  \
    {                                                                                              \
        name, call, 1, helper, {"x"},                                                              \
        {                                                                                          \
            NULL                                                                                   \
        }                                                                                          \
    }
static const struct function functions[] = {
    UNARY("exp", "expf", H_NONE),
    UNARY("log", "logf", H_NONE),
    UNARY("sqrt", "sqrtf", H_NONE),
    UNARY("abs", "fabsf", H_NONE),
    UNARY("sin", "sinf", H_NONE),
    UNARY("cos", "cosf", H_NONE),
    UNARY("erf", "erff", H_NONE),
    UNARY("tanh", "tanhf", H_NONE),
    UNARY("relu", "op_relu", H_RELU),
    UNARY("sigmoid", "op_sigmoid", H_SIGMOID),
    UNARY("gelu", "op_gelu", H_GELU),
    UNARY("silu", "op_silu", H_SILU),
    UNARY("softplus", "op_softplus", H_SOFTPLUS),
    UNARY("mish", "op_mish", H_MISH),
    UNARY("hardswish", "op_hardswish", H_HARDSWISH),
    {"leaky_relu", "op_leaky_relu", 2, H_LEAKY, {"x", "slope"}, {NULL, "0.01f"}},
    {"pow", "powf", 2, H_NONE, {"x", "exponent"}, {NULL}},
    {"maximum", "op_maximum", 2, H_MAXIMUM, {"x", "y"}, {NULL}},
    {"minimum", "op_minimum", 2, H_MINIMUM, {"x", "y"}, {NULL}},
    {"clamp",
     "op_clamp",
     3,
     H_CLAMP,
     {"x", "min", "max"},
     {NULL, "__int_as_float(0xff800000)", "__int_as_float(0x7f800000)"}},
};
static const struct function gelu_tanh = UNARY("gelu", "op_gelu_tanh", H_GELU_TANH);

struct emitter {
    const struct prompt *prompt;
    const struct graph *graph;
    const struct graph_node *core; /* v0, or NULL */
    struct target *target;
    uint32_t statement; /* names of earlier statements are t0, t1, ... */
    uint32_t used;      /* bit a helper */
};

static bool emit(struct emitter *e, const struct graph_node *node, struct llm_text *out);

static bool same(struct llm_span a, struct llm_span b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static void use(struct emitter *e, uint32_t helper)
{
    for (; helper; helper = helpers[helper].needs)
        e->used |= 1u << helper;
}

static bool emit_number(const struct graph_node *node, struct llm_text *out)
{
    char digits[64];
    snprintf(digits, sizeof digits, "%.9g", node->number);
    llm_text_printf(out, strpbrk(digits, ".e") ? "%sf" : "%s.0f", digits);
    return true;
}

/* Index of a name in a list that grows by it; -1 when the list is full. */
static int index_of(struct llm_span *list, uint32_t *n, uint32_t limit, struct llm_span name)
{
    for (uint32_t i = 0; i < *n; ++i)
        if (same(list[i], name))
            return (int)i;
    if (*n == limit)
        return -1;
    list[*n] = name;
    return (int)(*n)++;
}

/* A tensor of the chain; beside a core only what lies along the output's last dimension. */
static bool emit_tensor(struct emitter *e, const struct prompt_tensor *tensor, struct llm_text *out)
{
    struct target *target = e->target;
    const struct graph *graph = e->graph;
    const struct prompt_tensor *output =
        target_tensor(e->prompt, graph->statements[graph->n_statements - 1].target);
    const bool column = tensor->n_dims == 1 && output && output->n_dims > 0 &&
                        same(tensor->dims[0], output->dims[output->n_dims - 1]) &&
                        same(tensor->dtype, output->dtype);
    if (e->core && !column)
        return target_refuse(target, "It has no kernel that reads %.*s afterwards.",
                             (int)tensor->name.len, tensor->name.ptr);
    llm_text_printf(out, e->core ? "c%d" : "v%d",
                    index_of(target->inputs, &target->n_inputs, PROMPT_MAX_TENSORS, tensor->name));
    return true;
}

static bool emit_name(struct emitter *e, struct llm_span name, struct llm_text *out)
{
    struct target *target = e->target;
    for (uint32_t i = e->statement; i-- > 0;) {
        if (same(e->graph->statements[i].target, name)) {
            llm_text_printf(out, "t%u", i);
            return true;
        }
    }
    const struct prompt_tensor *tensor = target_tensor(e->prompt, name);
    if (tensor && (llm_span_is(tensor->role, "input") || llm_span_is(tensor->role, "weight")))
        return emit_tensor(e, tensor, out);
    for (uint32_t i = 0; i < e->prompt->n_params; ++i) {
        if (same(e->prompt->params[i], name)) {
            llm_text_printf(out, "s%d",
                            index_of(target->scalars, &target->n_scalars, PROMPT_MAX_PARAMS, name));
            return true;
        }
    }
    return target_refuse(target, "It does not know the name %.*s of the graph.", (int)name.len,
                         name.ptr);
}

/* x ** 2 is a product, x ** 0.5 a root, anything else powf. */
static bool emit_power(struct emitter *e, const struct graph_node *node, struct llm_text *out)
{
    const struct graph_node *base = &e->graph->nodes[node->args[0]];
    const struct graph_node *exponent = &e->graph->nodes[node->args[1]];
    const double power = exponent->kind == GRAPH_NUMBER ? exponent->number : 0.0;
    if (power == 2.0)
        use(e, H_SQUARE);
    llm_text_puts(out, power == 2.0 ? "op_square(" : power == 0.5 ? "sqrtf(" : "powf(");
    if (!emit(e, base, out))
        return false;
    if (power != 2.0 && power != 0.5) {
        llm_text_puts(out, ", ");
        if (!emit(e, exponent, out))
            return false;
    }
    llm_text_puts(out, ")");
    return true;
}

static bool emit_binary(struct emitter *e, const struct graph_node *node, struct llm_text *out)
{
    if (node->op == '^')
        return emit_power(e, node, out);
    llm_text_puts(out, "(");
    if (!emit(e, &e->graph->nodes[node->args[0]], out))
        return false;
    llm_text_printf(out, " %c ", node->op);
    if (!emit(e, &e->graph->nodes[node->args[1]], out))
        return false;
    llm_text_puts(out, ")");
    return true;
}

/* gelu(x, approximate=tanh) is a function of its own; *node_args is what remains to be checked. */
static const struct function *find_function(const struct graph *graph,
                                            const struct graph_node *call, uint32_t *n_args)
{
    *n_args = call->n_args;
    if (llm_span_is(call->name, "gelu")) {
        const struct graph_node *form = graph_arg(graph, call, -1, "approximate");
        if (form && form->kind == GRAPH_NAME &&
            (llm_span_is(form->name, "tanh") || llm_span_is(form->name, "none")))
            --*n_args;
        if (form && form->kind == GRAPH_NAME && llm_span_is(form->name, "tanh"))
            return &gelu_tanh;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
        if (signature_means(call->name, functions[i].name))
            return &functions[i];
    return NULL;
}

static bool emit_call(struct emitter *e, const struct graph_node *call, struct llm_text *out)
{
    uint32_t left = 0;
    const struct function *f = find_function(e->graph, call, &left);
    if (!f)
        return target_refuse(e->target, "It has no kernel with %.*s.", (int)call->name.len,
                             call->name.ptr);
    use(e, f->helper);
    llm_text_printf(out, "%s(", f->call);
    for (uint32_t i = 0; i < f->n_args; ++i) {
        const struct graph_node *arg = graph_arg(e->graph, call, (int)i, f->params[i]);
        llm_text_puts(out, i ? ", " : "");
        if (arg && !emit(e, arg, out))
            return false;
        if (!arg && !f->absent[i])
            return target_refuse(e->target, "It has %s only with all its arguments.", f->name);
        if (!arg)
            llm_text_puts(out, f->absent[i]);
        left -= arg != NULL;
    }
    llm_text_puts(out, ")");
    if (left)
        return target_refuse(e->target, "It has %s only without the further arguments here.",
                             f->name);
    return true;
}

static bool emit(struct emitter *e, const struct graph_node *node, struct llm_text *out)
{
    if (out->len > MAX_EXPR)
        return target_refuse(e->target, "The chain is too long for it.");
    if (node == e->core) {
        llm_text_puts(out, "v0");
        return true;
    }
    switch (node->kind) {
    case GRAPH_NUMBER:
        return emit_number(node, out);
    case GRAPH_NAME:
        return emit_name(e, node->name, out);
    case GRAPH_CALL:
        return emit_call(e, node, out);
    case GRAPH_BINARY:
        return emit_binary(e, node, out);
    case GRAPH_MINUS:
        llm_text_puts(out, "(-");
        if (!emit(e, &e->graph->nodes[node->args[0]], out))
            return false;
        llm_text_puts(out, ")");
        return true;
    case GRAPH_LIST:
        return target_refuse(e->target, "It has no chain with a list.");
    }
    return false;
}

bool target_is_function(struct llm_span name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
        if (signature_means(name, functions[i].name))
            return true;
    return false;
}

bool target_emit(const struct prompt *prompt, const struct graph *graph,
                 const struct graph_node *core, struct target *target)
{
    struct emitter e = {.prompt = prompt, .graph = graph, .core = core, .target = target};
    for (; e.statement < graph->n_statements; ++e.statement) {
        const bool last = e.statement + 1 == graph->n_statements;
        struct llm_text *out = last ? &target->expr : &target->lets;
        if (!last)
            llm_text_printf(out, "    const float t%u = ", e.statement);
        if (!emit(&e, &graph->nodes[graph->statements[e.statement].root], out))
            return false;
        if (!last)
            llm_text_puts(out, ";\n");
    }
    for (size_t i = 0; i < sizeof helper_order; ++i)
        if (e.used >> helper_order[i] & 1)
            llm_text_puts(&target->helpers, helpers[helper_order[i]].text);
    if (!core && target->n_inputs == 0)
        return target_refuse(target, "It has chains only of input tensors.");
    return true;
}
