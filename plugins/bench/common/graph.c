/* Recursive descent over the graph's text; every length and depth is bounded. */
#include "graph.h"

#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_TEXT = 65536 };

struct named {
    char name[64];
    struct bench_value value;
};

struct reader {
    const struct rung_task *task;
    const int64_t *dims;
    const char *at;
    const char *wrong;
    uint32_t depth, n_named;
    struct named named[BENCH_MAX_NAMES]; /* intermediate results */
    struct bench_graph *graph;
};

static struct bench_value read_sum(struct reader *r);

static struct bench_value wrong(struct reader *r, const char *what)
{
    if (!r->wrong)
        r->wrong = what;
    return (struct bench_value){0};
}

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

static void skip_space(struct reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static int take(struct reader *r, char c)
{
    skip_space(r);
    if (r->wrong || *r->at != c)
        return 0;
    r->at++;
    return 1;
}

static void read_name(struct reader *r, char name[64])
{
    size_t n = 0;
    while (is_name(r->at[n]))
        n++;
    if (!n || n > 63)
        wrong(r, "a name of no letter or more than 63");
    memcpy(name, r->at, n < 63 ? n : 63);
    name[n < 63 ? n : 63] = '\0';
    r->at += n;
}

/* Without underscores, cut to size. */
static void plain(const char *name, char *out, size_t size)
{
    size_t n = 0;
    for (; *name; name++)
        if (*name != '_' && n + 1 < size)
            out[n++] = *name;
    out[n] = '\0';
}

static struct bench_value number(double value)
{
    return (struct bench_value){.kind = BENCH_NUMBER, .number = value};
}

static struct bench_value read_number(struct reader *r)
{
    double value = 0, unit = 1;
    int exponent = 0, negative = 0;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++)
        value = value * 10 + (*r->at - '0');
    if (*r->at == '.')
        for (r->at++; *r->at >= '0' && *r->at <= '9'; r->at++)
            value = value * 10 + (*r->at - '0'), unit *= 10;
    if (*r->at == 'e' || *r->at == 'E') {
        r->at++;
        negative = *r->at == '-';
        r->at += *r->at == '-' || *r->at == '+';
        for (; *r->at >= '0' && *r->at <= '9'; r->at++)
            exponent = exponent > 999 ? exponent : exponent * 10 + (*r->at - '0');
    }
    /* 1e-5 as the nearest double: one division by an exact power of ten. */
    value = negative ? value / (unit * pow(10, exponent)) : value / unit * pow(10, exponent);
    return isfinite(value) ? number(value) : wrong(r, "a number beyond float64");
}

/* What a name stands for: tensor, dim, parameter, an earlier result, or a word. */
static struct bench_value resolve(struct reader *r, const char *name)
{
    const struct rung_task *t = r->task;
    struct bench_value word = {.kind = BENCH_WORD};
    for (uint32_t i = r->n_named; i-- > 0;)
        if (!strcmp(r->named[i].name, name))
            return r->named[i].value;
    for (uint32_t i = 0; i < t->n_tensors; i++)
        if (!strcmp(t->tensors[i].name, name))
            return (struct bench_value){.kind = BENCH_TENSOR, .index = i};
    for (uint32_t i = 0; i < t->n_dims; i++)
        if (!strcmp(t->dims[i].name, name))
            return number((double)r->dims[i]);
    for (uint32_t i = 0; i < t->n_params; i++)
        if (!strcmp(t->params[i].name, name))
            return number(t->params[i].dtype == RUNG_I64 ? (double)t->params[i].i64
                                                         : t->params[i].f64);
    plain(name, word.word, sizeof word.word);
    return word;
}

static int whole(const struct bench_value *v, int64_t *out)
{
    if (v->kind != BENCH_NUMBER || v->inexact || fabs(v->number) > INT32_MAX)
        return 0;
    *out = (int64_t)v->number;
    return v->number == (double)*out;
}

/* A new call; NULL when there are too many. */
static struct bench_call *new_call(struct reader *r, const char *op, struct bench_value *value)
{
    if (r->graph->n_calls == BENCH_MAX_CALLS) {
        wrong(r, "more than 64 operators");
        return NULL;
    }
    *value = (struct bench_value){.kind = BENCH_CALL, .index = r->graph->n_calls};
    struct bench_call *call = &r->graph->calls[r->graph->n_calls++];
    *call = (struct bench_call){0};
    plain(op, call->op, sizeof call->op);
    return call;
}

/* [a, b, ...]: whole numbers. */
static struct bench_value read_list(struct reader *r, char close)
{
    struct bench_value list = {.kind = BENCH_LIST};
    while (!r->wrong) {
        struct bench_value item = read_sum(r);
        if (list.n == RUNG_MAX_DIMS || !whole(&item, &list.list[list.n++]))
            return wrong(r, "a list that is not of at most 8 whole numbers");
        int comma = take(r, ',');
        if (take(r, close))
            return list;
        if (!comma)
            break;
    }
    return wrong(r, "a list that does not end");
}

static void read_arg(struct reader *r, struct bench_call *call)
{
    char name[64] = "";
    const char *start = r->at;
    if (call->n_args == BENCH_MAX_ARGS) {
        wrong(r, "more than 10 arguments");
        return;
    }
    uint32_t i = call->n_args++;
    if (is_name(*r->at) && !(*r->at >= '0' && *r->at <= '9')) {
        read_name(r, name);
        if (!take(r, '=')) {
            r->at = start;
            name[0] = '\0';
        }
    }
    plain(name, call->args[i].name, sizeof call->args[i].name);
    struct bench_value value = read_sum(r);
    call->args[i].value = value;
}

static struct bench_value whole_call(struct reader *r, const char *name, struct bench_value *args)
{
    double a = args[0].number, b = args[1].number;
    if (!strcmp(name, "min"))
        return number(fmin(a, b));
    if (!strcmp(name, "max"))
        return number(fmax(a, b));
    return b > 0 ? number(ceil(a / b)) : wrong(r, "ceil_div by nothing");
}

static struct bench_value read_call(struct reader *r, const char *name)
{
    struct bench_value value = {0};
    struct bench_call call = {0};
    skip_space(r);
    if (!take(r, ')')) {
        do {
            skip_space(r);
            read_arg(r, &call);
        } while (take(r, ','));
        if (!take(r, ')'))
            return wrong(r, "a call that does not end");
    }
    int numbers = call.n_args == 2 && call.args[0].value.kind == BENCH_NUMBER &&
                  call.args[1].value.kind == BENCH_NUMBER;
    if (numbers && (!strcmp(name, "min") || !strcmp(name, "max") || !strcmp(name, "ceil_div"))) {
        struct bench_value args[2] = {call.args[0].value, call.args[1].value};
        return whole_call(r, name, args);
    }
    struct bench_call *made = new_call(r, name, &value);
    if (made) {
        made->n_args = call.n_args;
        memcpy(made->args, call.args, sizeof call.args);
    }
    return value;
}

static struct bench_value read_primary(struct reader *r)
{
    char name[64];
    skip_space(r);
    if ((*r->at >= '0' && *r->at <= '9') || *r->at == '.')
        return read_number(r);
    if (take(r, '['))
        return read_list(r, ']');
    if (take(r, '(')) {
        struct bench_value value = read_sum(r);
        if (take(r, ')'))
            return value;
        if (!take(r, ','))
            return wrong(r, "brackets that don't close");
        struct bench_value list = {.kind = BENCH_LIST, .n = 1};
        if (!whole(&value, &list.list[0]))
            return wrong(r, "a list that is not of whole numbers");
        if (take(r, ')'))
            return list;
        struct bench_value rest = read_list(r, ')');
        for (uint32_t i = 0; i < rest.n && list.n < RUNG_MAX_DIMS; i++)
            list.list[list.n++] = rest.list[i];
        return list;
    }
    if (!is_name(*r->at))
        return wrong(r, "something that is no expression");
    read_name(r, name);
    return take(r, '(') ? read_call(r, name) : resolve(r, name);
}

static struct bench_value binary(struct reader *r, const char *op, struct bench_value a,
                                 struct bench_value b)
{
    struct bench_value value = {0};
    if (a.kind == BENCH_NUMBER && b.kind == BENCH_NUMBER) {
        double x = a.number, y = b.number;
        double z = op[0] == 'a'   ? x + y
                   : op[0] == 's' ? x - y
                   : op[0] == 'm' ? x * y
                   : op[0] == 'd' ? x / y
                   : op[0] == 'r' ? fmod(x, y)
                                  : pow(x, y);
        if (!isfinite(z))
            return wrong(r, "a number beyond float64");
        value = number(z);
        value.inexact = a.inexact || b.inexact || z != floor(z);
        return value;
    }
    struct bench_call *call = new_call(r, op, &value);
    if (call) {
        call->n_args = 2;
        call->args[0].value = a;
        call->args[1].value = b;
    }
    return value;
}

static struct bench_value read_unary(struct reader *r);

static struct bench_value read_power(struct reader *r)
{
    struct bench_value a = read_primary(r);
    skip_space(r);
    if (r->wrong || r->at[0] != '*' || r->at[1] != '*')
        return a;
    r->at += 2;
    return binary(r, "pow", a, read_unary(r));
}

static struct bench_value read_unary(struct reader *r)
{
    struct bench_value value;
    if (++r->depth > MAX_DEPTH)
        return wrong(r, "nested deeper than 64");
    if (take(r, '-'))
        value = binary(r, "mul", number(-1), read_unary(r));
    else if (take(r, '+'))
        value = read_unary(r);
    else
        value = read_power(r);
    r->depth--;
    return value;
}

static struct bench_value read_product(struct reader *r)
{
    struct bench_value a = read_unary(r);
    for (skip_space(r); !r->wrong && *r->at && strchr("*/%", *r->at); skip_space(r)) {
        const char *op = *r->at == '*' ? "mul" : *r->at == '/' ? "div" : "rest";
        r->at++;
        a = binary(r, op, a, read_unary(r));
    }
    return a;
}

static struct bench_value read_sum(struct reader *r)
{
    struct bench_value a = read_product(r);
    for (skip_space(r); !r->wrong && (*r->at == '+' || *r->at == '-'); skip_space(r)) {
        const char *op = *r->at == '+' ? "add" : "sub";
        r->at++;
        a = binary(r, op, a, read_product(r));
    }
    return a;
}

/* Names keep their last value; what a task tensor is assigned is an output. */
static void assign(struct reader *r, const char *name, struct bench_value value)
{
    if (r->n_named == BENCH_MAX_NAMES) {
        wrong(r, "more than 64 statements");
        return;
    }
    struct named *n = &r->named[r->n_named++];
    memcpy(n->name, name, sizeof n->name);
    n->value = value;
    for (uint32_t i = 0; i < r->task->n_tensors; i++)
        if (!strcmp(r->task->tensors[i].name, name))
            r->graph->outputs[i] = value;
}

const char *bench_graph_read(const struct rung_task *task, const int64_t *dims,
                             struct bench_graph *out)
{
    struct reader r = {.task = task, .dims = dims, .at = task->graph, .graph = out};
    char name[64];
    *out = (struct bench_graph){0};
    if (!task->graph)
        return "the task has no graph";
    if (task->n_tensors > BENCH_MAX_NAMES || strnlen(task->graph, MAX_TEXT + 1) > MAX_TEXT)
        return "the task is too large";
    for (skip_space(&r); !r.wrong && *r.at; skip_space(&r)) {
        read_name(&r, name);
        if (!take(&r, '='))
            wrong(&r, "a statement without '='");
        struct bench_value value = read_sum(&r);
        if (!r.wrong)
            assign(&r, name, value);
        if (!take(&r, ';') && *r.at)
            wrong(&r, "something behind a statement");
    }
    return r.wrong;
}

/* ---- Arguments ---- */

/* PyTorch's names, without underscores, for those of docs/operators.md. */
static const char *const others[][2] = {
    {"axis", "dim"},         {"pad", "padding"},         {"kernel", "kernelsize"},
    {"causal", "iscausal"},  {"mask", "attnmask"},       {"bias", "b"},
    {"groups", "numgroups"}, {"slope", "negativeslope"}, {"outputpad", "outputpadding"},
};

static int means(const char *given, const char *name)
{
    if (!strcmp(given, name))
        return 1;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(name, others[i][0]) && !strcmp(given, others[i][1]))
            return 1;
    return 0;
}

const struct bench_value *bench_arg(const struct bench_call *call, const char *name,
                                    uint32_t position)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < call->n_args; i++) {
        const struct bench_arg *arg = &call->args[i];
        if (arg->name[0] ? means(arg->name, name) : at == position)
            return &arg->value;
        at += !arg->name[0];
    }
    return NULL;
}

int bench_int(const struct bench_call *call, const char *name, uint32_t position, int64_t standard,
              int64_t *out)
{
    const struct bench_value *v = bench_arg(call, name, position);
    *out = standard;
    return !v || whole(v, out);
}

int bench_ints(const struct bench_call *call, const char *name, uint32_t position, uint32_t n,
               int64_t standard, int64_t *out)
{
    const struct bench_value *v = bench_arg(call, name, position);
    int64_t one = standard;
    if (v && v->kind == BENCH_LIST && v->n == n) {
        memcpy(out, v->list, n * sizeof *out);
        return 1;
    }
    if (v && v->kind == BENCH_LIST && v->n == 1)
        one = v->list[0];
    else if (v && !whole(v, &one))
        return 0;
    for (uint32_t i = 0; i < n; i++)
        out[i] = one;
    return 1;
}

int bench_flag(const struct bench_call *call, const char *name, uint32_t position, int standard,
               int *out)
{
    const struct bench_value *v = bench_arg(call, name, position);
    int64_t value = standard;
    if (v && v->kind == BENCH_WORD)
        value = !strcmp(v->word, "true") || !strcmp(v->word, "True");
    else if (v && !whole(v, &value))
        return 0;
    *out = value != 0;
    return 1;
}

double bench_number(const struct bench_call *call, const char *name, uint32_t position,
                    double standard)
{
    const struct bench_value *v = bench_arg(call, name, position);
    return v ? v->kind == BENCH_NUMBER ? v->number : NAN : standard;
}

int bench_tensor_arg(const struct bench_call *call, const char *name, uint32_t position)
{
    const struct bench_value *v = bench_arg(call, name, position);
    return v && v->kind == BENCH_TENSOR ? (int)v->index : -1;
}

const struct bench_call *bench_call_of(const struct bench_graph *graph,
                                       const struct bench_value *value, const char *op)
{
    if (!value || value->kind != BENCH_CALL || value->index >= graph->n_calls ||
        strcmp(graph->calls[value->index].op, op) != 0)
        return NULL;
    return &graph->calls[value->index];
}
