/*
 * Elements of values: memory, decoding of inputs, and rounding of outputs to their dtype.
 */
#include "ops.h"

#include "../element.h"
#include "finish.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* n doubles, counted; NULL with the call's error filled in when they can't be had. */
static double *take_memory(struct ops_eval *ev, struct ops_tensor *t, int zeros)
{
    struct ops_memory *m = ev->memory;
    uint64_t bytes = t->n * sizeof(double);
    if (t->n > UINT64_MAX / sizeof(double) || bytes > m->limit || m->used > m->limit - bytes) {
        ops_fail(&ev->who, RUNG_ENOMEM, 0,
                 "the evaluation needs more than %llu MiB; ask for smaller shapes or raise memory",
                 (unsigned long long)(m->limit >> 20));
        return NULL;
    }
    double *p = zeros ? calloc(t->n, sizeof *p) : malloc(bytes);
    if (p)
        m->used += bytes;
    else
        ops_no_memory(&ev->who);
    return p;
}

int32_t ops_tensor_new(struct ops_eval *ev, uint32_t n_dims, const int64_t *dims, int with_errors,
                       struct ops_tensor **out)
{
    struct ops_tensor *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return ops_no_memory(&ev->who);
    t->refs = 1;
    t->n_dims = n_dims;
    t->n = 1;
    t->memory = ev->memory;
    for (uint32_t i = 0; i < n_dims; i++) {
        t->dims[i] = dims[i];
        t->n *= (uint64_t)dims[i];
    }
    t->v = take_memory(ev, t, 0);
    t->e = t->v && with_errors ? take_memory(ev, t, 0) : NULL;
    if (t->v && (t->e || !with_errors)) {
        *out = t;
        return RUNG_OK;
    }
    ops_tensor_drop(t);
    return RUNG_ENOMEM;
}

int32_t ops_tensor_need_errors(struct ops_eval *ev, struct ops_tensor *t)
{
    if (!t->e)
        t->e = take_memory(ev, t, 1);
    return t->e ? RUNG_OK : RUNG_ENOMEM;
}

void ops_strides(uint32_t n_dims, const int64_t *dims, int64_t *strides)
{
    int64_t stride = 1;
    for (uint32_t d = n_dims; d-- > 0; stride *= dims[d])
        strides[d] = stride;
}

void ops_tensor_drop_errors(struct ops_tensor *t)
{
    if (t->e)
        t->memory->used -= t->n * sizeof *t->e;
    free(t->e);
    t->e = NULL;
}

void ops_tensor_drop(struct ops_tensor *t)
{
    if (!t || --t->refs)
        return;
    ops_tensor_drop_errors(t);
    if (t->v)
        t->memory->used -= t->n * sizeof *t->v;
    free(t->v);
    free(t);
}

/* ---- decoding ---- */

/* Reads n elements, `step` elements apart, starting at element `at`. */
#define READ(type, convert)                                                                        \
    do {                                                                                           \
        const type *p = (const type *)data + at;                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            v[i] = convert(p[i * step]);                                                           \
    } while (0)

static void read_run(uint32_t dtype, const void *data, int64_t at, int64_t step, int64_t n,
                     double *v)
{
    switch (dtype) {
    case RUNG_F64:
        READ(double, );
        break;
    case RUNG_F32:
        READ(float, );
        break;
    case RUNG_F16:
        READ(uint16_t, verify_from_half);
        break;
    case RUNG_BF16:
        READ(uint16_t, verify_from_bfloat);
        break;
    case RUNG_I8:
        READ(int8_t, );
        break;
    case RUNG_U8:
        READ(uint8_t, );
        break;
    case RUNG_I32:
        READ(int32_t, );
        break;
    case RUNG_I64:
        READ(int64_t, (double));
        break;
    default:
        READ(uint8_t, 0 !=);
        break;
    }
}

static int32_t input_errors(struct ops_eval *ev, uint32_t dtype, struct ops_tensor *t)
{
    const struct ops_arith *ar = &ev->arith;
    for (uint64_t i = 0; ops_input_errs(dtype, ar) && i < t->n; i++) {
        double e = ops_input_error(dtype, t->v[i], ar);
        if (e == 0)
            continue;
        int32_t status = ops_tensor_need_errors(ev, t);
        if (status)
            return status;
        t->e[i] = e;
    }
    return RUNG_OK;
}

/* Rows of the box (runs along the last dimension), read in parts at once. */
struct decode_job {
    const struct rung_tensor_view *view;
    const struct ops_box *box;
    double *v;
    uint64_t run;
};

/* Offset in the view of row `row` of the box. */
static int64_t row_offset(const struct decode_job *j, uint64_t row)
{
    const struct rung_tensor_view *view = j->view;
    uint32_t last = view->n_dims - 1;
    int64_t at = view->offset + j->box->start[last] * view->strides[last];
    for (uint32_t d = last; d-- > 0; row /= (uint64_t)j->box->count[d])
        at += (j->box->start[d] + (int64_t)(row % (uint64_t)j->box->count[d])) * view->strides[d];
    return at;
}

static void decode_rows(void *ctx, uint64_t first, uint64_t end)
{
    const struct decode_job *j = ctx;
    const struct rung_tensor_view *view = j->view;
    for (uint64_t row = first; row < end; row++)
        read_run(view->dtype, view->data, row_offset(j, row), view->strides[view->n_dims - 1],
                 (int64_t)j->run, j->v + row * j->run);
}

int32_t ops_decode(struct ops_eval *ev, const struct rung_tensor_view *view,
                   const struct ops_box *box, struct ops_tensor **out)
{
    int32_t status = ops_tensor_new(ev, view->n_dims, box->count, 0, out);
    if (status)
        return status;
    struct decode_job job = {view, box, (*out)->v, 1};
    if (view->n_dims) {
        job.run = (uint64_t)box->count[view->n_dims - 1];
        ops_parallel(ev->threads, (*out)->n / job.run, OPS_GRAIN / job.run + 1, decode_rows, &job);
    } else {
        read_run(view->dtype, view->data, view->offset, 1, 1, job.v);
    }
    status = input_errors(ev, view->dtype, *out);
    if (status) {
        ops_tensor_drop(*out);
        *out = NULL;
    }
    return status;
}

/* ---- outputs ---- */

struct finish_job {
    struct ops_tensor *t;
    uint32_t dtype;
    const struct ops_arith *ar;
};

static void finish_part(void *ctx, uint64_t first, uint64_t end)
{
    const struct finish_job *j = ctx;
    struct ops_format f = ops_format_of(j->dtype);
    double *v = j->t->v, *e = j->t->e;
    for (uint64_t i = first; i < end; i++)
        ops_finish_element((struct ops_num){v[i], e[i]}, j->dtype, &f, j->ar, &v[i], &e[i]);
}

void ops_finish(const struct ops_eval *ev, struct ops_tensor *t, uint32_t dtype)
{
    struct finish_job job = {t, dtype, &ev->arith};
    ops_parallel(ev->threads, t->n, OPS_GRAIN, finish_part, &job);
}
