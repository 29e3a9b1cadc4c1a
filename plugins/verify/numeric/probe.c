/*
 * Arithmetic of too few bits where bounds are too wide to show it: the bound of a sum of 4096
 * products explains what tf32 does. With one element of each row of an input at 30 and the others
 * zero, many a task only selects: every result is 30 times an element of another input, and honest
 * arithmetic is exact but for one rounding (2^-24). tf32 is off by 2^-12, three passes of it by
 * 2^-22. Where the reference shows that results are no such products, nothing is asked.
 */
#include "numeric.h"

#include <math.h>

static const double ONE = 30;       /* of the fill "onehot_rows" */
static const double MOST = 0x1p-20; /* of the result, or of a usual one where that is larger */
enum { FEWEST = 16 };               /* results that must be such products */

/* How far the results are from the products that they should be. */
struct products {
    uint64_t n, n_nonzero; /* products; results other than 0 */
    double worst;          /* largest error over the scale */
    uint64_t at;           /* element of want */
};

static double scale_of(const struct numeric_output *o)
{
    double sum = 0;
    uint64_t n = 0;
    for (uint64_t i = 0; i < o->want.n; i++)
        if (o->want.value[i] != 0 && isfinite(o->want.value[i])) {
            sum += o->want.value[i] * o->want.value[i];
            n++;
        }
    return n ? sqrt(sum / (double)n) : 0;
}

static struct products measure(const struct numeric_output *o)
{
    struct products p = {0};
    double usual = scale_of(o);
    for (uint64_t i = 0; i < o->want.n; i++) {
        double want = o->want.value[i];
        if (want == 0)
            continue;
        p.n_nonzero++;
        if (!isfinite(want) || ONE * (double)(float)(want / ONE) != want)
            continue;
        double off = fabs(numeric_got(o, i) - want) / fmax(fabs(want), usual);
        p.n++;
        if (off > p.worst) {
            p.worst = off;
            p.at = i;
        }
    }
    return p;
}

static int32_t judge_products(struct numeric_check *k, const struct numeric_case *c,
                              struct rung_run *run, uint32_t tensor, int *ended)
{
    struct numeric_text text = {.at = 0};
    struct numeric_output o;
    int32_t status = numeric_look(k, c, run, tensor, &o);
    if (status)
        return status;
    struct products p = measure(&o);
    if (p.n >= FEWEST && p.n * 10 >= p.n_nonzero * 9 && p.worst > MOST) {
        numeric_say_where(k, c, &text);
        numeric_say(&text,
                    ": %s holds %.9g where %.9g is exact, one product of an input's element and "
                    "30: an error of 2^%.1f. Inputs lose bits before they are multiplied, as "
                    "with tf32, bf16 or half-precision arithmetic; the task asks for fp32.",
                    k->session->task->tensors[tensor].name, numeric_got(&o, p.at),
                    o.want.value[p.at], log2(p.worst));
        *ended = 1;
        status = numeric_verdict(k, RUNG_FAIL, "numeric.precision", text.buf,
                                 numeric_metrics(k, c, &o.c));
    }
    numeric_forget(&o);
    return status;
}

/* The first floating input of two axes or more; n_tensors when there is none. */
static uint32_t probed(const struct rung_task *task)
{
    uint32_t i = 0;
    while (i < task->n_tensors &&
           !(task->tensors[i].role == RUNG_ROLE_INPUT && task->tensors[i].n_dims >= 2 &&
             task->tensors[i].dtype < RUNG_I8))
        i++;
    return i;
}

static int32_t probe(struct numeric_check *k, const struct numeric_case *from,
                     const struct rung_fill *fill, int *ended)
{
    const struct rung_task *task = k->session->task;
    struct numeric_case c = *from;
    struct numeric_stage s = {0};
    struct rung_run *run;
    c.exact = fill;
    c.n_exact = 1;
    c.says = " with one element a row of the first input";
    int32_t status = numeric_start(k, &c, &run);
    if (!status)
        status = numeric_judge_run(k, &c, run, &s, NULL, ended);
    for (uint32_t i = 0; i < task->n_tensors && !status && !*ended; i++)
        if (task->tensors[i].role == RUNG_ROLE_OUTPUT && task->tensors[i].dtype == RUNG_F32)
            status = judge_products(k, &c, run, i, ended);
    k->session->end(k->session, run);
    if (status || *ended || !s.n_failed)
        return status;
    *ended = 1;
    return numeric_tell(k, &s, "");
}

int32_t numeric_probe(struct numeric_check *k, const struct numeric_cases *cases, int *ended)
{
    const struct rung_task *task = k->session->task;
    const struct rung_fill fill = {
        .struct_size = sizeof fill, .tensor = probed(task), .kind = "onehot_rows"};
    const int64_t *dims = NULL;
    uint32_t n_inputs = 0;
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < task->n_tensors; i++)
        n_inputs += task->tensors[i].role != RUNG_ROLE_OUTPUT;
    if (task->precision != RUNG_PRECISION_FP32 || fill.tensor == task->n_tensors || n_inputs < 2)
        return RUNG_OK;
    for (uint32_t i = 0; i < cases->n_own && !status && !*ended; i++) {
        if (!cases->own[i].of_task || cases->own[i].dims == dims)
            continue;
        dims = cases->own[i].dims; /* once a shape */
        status = probe(k, &cases->own[i], &fill, ended);
    }
    return status;
}
