/* Bounds for functions of which nothing is known: see own.h. */
#include "../element.h"
#include "own.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOVED_ULP = 8, VALUE_ULP = 4, ARGUMENT_ULP = 8, USUAL = 4, SAMPLES = 1 << 16 };

int32_t own_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->code = code;
    snprintf(err->symbol, sizeof err->symbol, "%s", symbol);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

static int32_t no_memory(struct rung_call *call)
{
    return own_fail(call->error, RUNG_ENOMEM, "reference.memory", "no room for the reference");
}

/* Unit roundoff; 0 for integers. */
static double roundoff(uint32_t precision)
{
    switch (precision) {
    case RUNG_PRECISION_FP32:
        return 0x1p-24;
    case RUNG_PRECISION_TF32:
    case RUNG_PRECISION_FP16:
        return 0x1p-11;
    case RUNG_PRECISION_BF16:
        return 0x1p-8;
    case RUNG_PRECISION_FP64:
        return 0x1p-53;
    default:
        return 0;
    }
}

static int is_float(uint32_t dtype)
{
    return dtype == RUNG_F64 || dtype == RUNG_F32 || dtype == RUNG_F16 || dtype == RUNG_BF16;
}

static int is_output(const struct rung_tensor_spec *t)
{
    return t->role == RUNG_ROLE_OUTPUT || t->role == RUNG_ROLE_INOUT;
}

/* ---- One estimate in progress: all arrays one a task tensor ---- */

struct estimate {
    const struct own_settings *set;
    struct rung_call *call;
    const struct rung_reference_request *request;
    own_function function;
    void *ctx;
    double u;
    uint64_t *n;
    double **x;             /* inputs as drawn; NULL for pure outputs */
    double **work;          /* what the function sees */
    double **value;         /* outputs at x */
    double **move;          /* largest move; then the bound */
    double moved2, single2; /* sums of squares, for c */
    double largest;         /* magnitude of the floating inputs, at least 1 */
    double usual;           /* median relative error of the float32 form */
};

static void drop(double **list, uint32_t n)
{
    for (uint32_t i = 0; list && i < n; i++)
        free(list[i]);
    free(list);
}

static void estimate_free(struct estimate *e)
{
    uint32_t n = e->request->task->n_tensors;
    drop(e->x, n);
    drop(e->work, n);
    drop(e->value, n);
    drop(e->move, n);
    free(e->n);
}

static int room(double **list, uint32_t i, uint64_t n)
{
    list[i] = calloc(n ? n : 1, sizeof **list);
    return list[i] != NULL;
}

static int32_t estimate_alloc(struct estimate *e)
{
    const struct rung_task *task = e->request->task;
    uint32_t n = task->n_tensors;
    e->n = calloc(n + 1, sizeof *e->n);
    e->x = calloc(n + 1, sizeof *e->x);
    e->work = calloc(n + 1, sizeof *e->work);
    e->value = calloc(n + 1, sizeof *e->value);
    e->move = calloc(n + 1, sizeof *e->move);
    if (!e->n || !e->x || !e->work || !e->value || !e->move)
        return no_memory(e->call);
    for (uint32_t i = 0; i < n; i++) {
        const struct rung_tensor_spec *t = &task->tensors[i];
        e->n[i] = 1;
        for (uint32_t d = 0; d < t->n_dims; d++)
            e->n[i] *= (uint64_t)e->request->tensors[i].dims[d];
        int good = room(e->work, i, e->n[i]);
        if (t->role != RUNG_ROLE_OUTPUT)
            good = good && room(e->x, i, e->n[i]);
        if (is_output(t))
            good = good && room(e->value, i, e->n[i]) && room(e->move, i, e->n[i]);
        if (!good)
            return no_memory(e->call);
    }
    return RUNG_OK;
}

static void load_inputs(struct estimate *e)
{
    const struct rung_task *task = e->request->task;
    for (uint32_t i = 0; i < task->n_tensors; i++)
        for (uint64_t k = 0; e->x[i] && k < e->n[i]; k++) {
            double x = verify_element(task->tensors[i].dtype, e->request->tensors[i].data, k);
            e->x[i][k] = x;
            if (is_float(task->tensors[i].dtype) && isfinite(x))
                e->largest = fmax(e->largest, fabs(x));
        }
}

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014) of a counter. */
static uint64_t mix(uint64_t z)
{
    z = (z + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* trial 0: as drawn; else every floating input is moved. Outputs start as NaN: unwritten is seen.
 */
static void fill_work(struct estimate *e, uint64_t trial)
{
    const struct rung_task *task = e->request->task;
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        int moves = trial && is_float(task->tensors[i].dtype);
        for (uint64_t k = 0; k < e->n[i]; k++) {
            double by =
                moves ? (mix(trial << 48 ^ (uint64_t)i << 40 ^ k) & 1 ? 1 : -1) * MOVED_ULP * e->u
                      : 0;
            e->work[i][k] = e->x[i] ? e->x[i][k] * (1 + by) : (double)NAN;
        }
    }
}

static int32_t compute(struct estimate *e, uint64_t trial, int single)
{
    const struct own_io io = {.task = e->request->task,
                              .dims = e->request->dims,
                              .n = e->n,
                              .v = e->work,
                              .views = e->request->tensors};
    fill_work(e, trial);
    return e->function(e->ctx, e->call, &io, single);
}

/* Both NaN, or the same: no move. One of them NaN or inf: anything may come out there. */
static double distance(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : (double)INFINITY;
}

static void take_value(struct estimate *e)
{
    for (uint32_t i = 0; i < e->request->task->n_tensors; i++)
        if (e->value[i])
            memcpy(e->value[i], e->work[i], e->n[i] * sizeof(double));
}

static void take_move(struct estimate *e)
{
    for (uint32_t i = 0; i < e->request->task->n_tensors; i++)
        for (uint64_t k = 0; e->value[i] && k < e->n[i]; k++)
            e->move[i][k] = fmax(e->move[i][k], distance(e->work[i][k], e->value[i][k]));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Relative errors of at most SAMPLES elements of an output, spread over it. Returns how many. */
static uint32_t relative_errors(const struct estimate *e, uint32_t i, double *out)
{
    uint64_t step = e->n[i] / SAMPLES + 1;
    uint32_t n = 0;
    for (uint64_t k = 0; k < e->n[i]; k += step) {
        double size = fabs(e->value[i][k]), off = distance(e->work[i][k], e->value[i][k]);
        if (isfinite(size) && size > 0 && isfinite(off))
            out[n++] = off / size;
    }
    return n;
}

static void add_squares(struct estimate *e, uint32_t i)
{
    for (uint64_t k = 0; k < e->n[i]; k++) {
        double off = distance(e->work[i][k], e->value[i][k]), move = e->move[i][k];
        if (!isfinite(off) || !isfinite(move))
            continue;
        e->single2 += off * off;
        e->moved2 += move * move;
    }
}

static int32_t take_single(struct estimate *e)
{
    const struct rung_task *task = e->request->task;
    double *errors = malloc((size_t)SAMPLES * sizeof *errors);
    if (!errors)
        return no_memory(e->call);
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        if (!e->value[i] || !is_float(task->tensors[i].dtype))
            continue;
        add_squares(e, i);
        uint32_t n = relative_errors(e, i, errors);
        qsort(errors, n, sizeof *errors, ascending);
        if (n)
            e->usual = fmax(e->usual, errors[n / 2]);
    }
    free(errors);
    return RUNG_OK;
}

static int32_t observe(struct estimate *e)
{
    int32_t status = compute(e, 0, 0);
    if (status != RUNG_OK)
        return status;
    take_value(e);
    for (int64_t t = 1; e->u > 0 && t <= e->set->trials && status == RUNG_OK; t++) {
        status = compute(e, (uint64_t)t, 0);
        if (status == RUNG_OK)
            take_move(e);
    }
    if (status != RUNG_OK || e->u < 0x1p-30)
        return status;
    status = compute(e, 0, 1);
    if (status == RUNG_OK)
        return take_single(e);
    if (status == RUNG_EUNSUPPORTED)
        e->call->error->code = status = RUNG_OK;
    return status;
}

/* How much worse float32 arithmetic was than moved inputs, both brought to the task's precision. */
static double factor(const struct estimate *e)
{
    double c = e->moved2 > 0 ? sqrt(e->single2 / e->moved2) * (e->u / 0x1p-24) : 1;
    return c > 1 ? c : 1;
}

static void make_bounds(struct estimate *e, uint32_t tensor)
{
    uint32_t dtype = e->request->task->tensors[tensor].dtype;
    double c = e->set->safety * factor(e), least = e->u > 0x1p-50 ? 0x1p-126 : 0x1p-1022;
    double relative = (VALUE_ULP + ARGUMENT_ULP * e->largest) * e->u +
                      USUAL * e->set->safety * e->usual * (e->u / 0x1p-24) + e->set->rtol;
    for (uint64_t k = 0; k < e->n[tensor]; k++) {
        double *b = &e->move[tensor][k], size = fabs(e->value[tensor][k]);
        if (!is_float(dtype))
            *b = *b > 0 ? (double)INFINITY : 0;
        else if (isfinite(size))
            *b = c * *b + relative * size + e->set->atol + least;
        else
            *b = *b > 0 ? (double)INFINITY : 0; /* to be matched exactly, unless it moves */
    }
}

void own_forget(struct own_memory *memory)
{
    drop(memory->kept, memory->n_kept);
    *memory = (struct own_memory){NULL, 0};
}

static int32_t hand_out(struct estimate *e, struct own_memory *memory,
                        struct rung_reference_output *outputs, uint32_t n_outputs)
{
    uint32_t o = 0, n = e->request->task->n_tensors;
    memory->kept = calloc(2 * (size_t)n + 1, sizeof *memory->kept);
    if (!memory->kept)
        return no_memory(e->call);
    for (uint32_t i = 0; i < n; i++) {
        if (!e->value[i])
            continue;
        if (o == n_outputs)
            return own_fail(e->call->error, RUNG_EINVAL, "reference.outputs",
                            "the task has more than %u outputs", n_outputs);
        make_bounds(e, i);
        outputs[o++] = (struct rung_reference_output){.struct_size = sizeof *outputs,
                                                      .tensor = i,
                                                      .n = e->n[i],
                                                      .value = e->value[i],
                                                      .bound = e->move[i]};
        memory->kept[memory->n_kept++] = e->value[i];
        memory->kept[memory->n_kept++] = e->move[i];
        e->value[i] = e->move[i] = NULL;
    }
    return RUNG_OK;
}

int32_t own_evaluate(const struct own_settings *settings, struct own_memory *memory,
                     struct rung_call *call, const struct rung_reference_request *request,
                     own_function function, void *ctx, struct rung_reference_output *outputs,
                     uint32_t n_outputs)
{
    struct estimate e = {.set = settings,
                         .call = call,
                         .request = request,
                         .function = function,
                         .ctx = ctx,
                         .u = roundoff(request->task->precision),
                         .largest = 1};
    own_forget(memory);
    if (RUNG_HAS(request, regions) && request->regions)
        return own_fail(call->error, RUNG_EUNSUPPORTED, "reference.regions",
                        "this reference computes whole outputs only");
    int32_t status = estimate_alloc(&e);
    if (status == RUNG_OK) {
        load_inputs(&e);
        status = observe(&e);
    }
    if (status == RUNG_OK)
        status = hand_out(&e, memory, outputs, n_outputs);
    estimate_free(&e);
    return status;
}

int32_t own_work(void *self, struct rung_call *call, const struct rung_task *task,
                 const int64_t *dims, struct rung_work *out)
{
    (void)self, (void)call, (void)task, (void)dims;
    out->flops = out->min_bytes = 0;
    return RUNG_OK;
}

/* ---- Options ---- */

const struct rung_option own_option_trials = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "trials",
    .default_text = "8",
    .summary = "Evaluations at inputs moved by 8 units in the last place, for the error bounds.",
    .min = 1,
    .max = 1000};
const struct rung_option own_option_safety = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_FLOAT,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "safety",
    .default_text = "8",
    .summary = "What the errors seen in the trials are multiplied by.",
    .min = 1,
    .max = 1e6};
const struct rung_option own_option_rtol = {.struct_size = sizeof(struct rung_option),
                                            .type = RUNG_OPT_FLOAT,
                                            .flags = RUNG_OPT_AFFECTS_RESULT,
                                            .name = "rtol",
                                            .default_text = "0",
                                            .summary =
                                                "Further error allowed, relative to each value.",
                                            .min = 0,
                                            .max = 1};
const struct rung_option own_option_atol = {.struct_size = sizeof(struct rung_option),
                                            .type = RUNG_OPT_FLOAT,
                                            .flags = RUNG_OPT_AFFECTS_RESULT,
                                            .name = "atol",
                                            .default_text = "0",
                                            .summary = "Further error allowed, absolute.",
                                            .min = 0,
                                            .max = 1e30};

struct own_settings own_settings_read(const struct rung_host *host,
                                      const struct rung_options *options)
{
    return (struct own_settings){.host = host,
                                 .trials = host->opt_int(host, options, "trials"),
                                 .safety = host->opt_float(host, options, "safety"),
                                 .rtol = host->opt_float(host, options, "rtol"),
                                 .atol = host->opt_float(host, options, "atol")};
}
