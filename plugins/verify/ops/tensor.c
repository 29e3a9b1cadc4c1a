/*
 * Elements of values: memory, decoding of inputs, and rounding of outputs to their dtype.
 */
#include "ops.h"

#include "../element.h"

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

/* Bits of the significand that values of a dtype need. */
static int significand_bits(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_F32:
        return 24;
    case RUNG_F16:
        return 11;
    case RUNG_BF16:
        return 8;
    case RUNG_I8:
    case RUNG_U8:
    case RUNG_BOOL:
        return 8;
    case RUNG_I32:
        return 31;
    default:
        return 53;
    }
}

/* Rounding to a narrower precision, and float32 subnormals that an honest kernel reads as zero. */
static int32_t input_errors(struct ops_eval *ev, uint32_t dtype, struct ops_tensor *t)
{
    const struct ops_arith *ar = &ev->arith;
    int narrower = significand_bits(dtype) > ar->bits;
    int flushes = ar->tiny > 0 && (dtype == RUNG_F32 || dtype == RUNG_BF16 || dtype == RUNG_F64);
    for (uint64_t i = 0; (narrower || flushes) && i < t->n; i++) {
        double size = fabs(t->v[i]);
        double e = narrower ? ops_constant(t->v[i], ar).e : 0;
        if (flushes && size < ar->tiny)
            e = size;
        if (e == 0 || !isfinite(e))
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

struct format {
    double u;      /* rounding */
    double limit;  /* at and beyond it, rounding gives infinity */
    double normal; /* below it, `under` is the absolute error */
    double under;
    int bits;
};

static struct format format_of(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_F64:
        return (struct format){0x1p-53, INFINITY, DBL_MIN, DBL_MIN, 53};
    case RUNG_F16: /* conversions keep half subnormals */
        return (struct format){0x1p-11, 65520, 0x1p-14, 0x1p-25, 11};
    case RUNG_BF16:
        return (struct format){0x1p-8, 0x1.ffp127, FLT_MIN, FLT_MIN, 8};
    default:
        return (struct format){0x1p-24, 0x1.ffffffp127, FLT_MIN, FLT_MIN, 24};
    }
}

static void finish_float(struct ops_num x, const struct format *f, const struct ops_arith *ar,
                         double *value, double *bound)
{
    double size = fabs(x.v);
    int exact = ops_fits(x.v, f->bits);
    *value = x.v;
    *bound = x.e;
    if (size - x.e >= f->limit) {
        *value = copysign(INFINITY, x.v);
        *bound = 0;
        return;
    }
    if (!exact)
        *bound += f->u * (size + x.e);
    if (size - x.e < f->normal && (x.e > 0 || x.v != 0) && (ar->tiny > 0 || !exact))
        *bound += f->under;
}

/* Conversions to integers truncate, and keep the low bits of what does not fit. */
static double to_integer(double v, uint32_t dtype)
{
    double t = trunc(v), range = dtype == RUNG_I32 ? 0x1p32 : 0x1p8;
    if (dtype == RUNG_BOOL)
        return v != 0;
    if (dtype == RUNG_I64 || fabs(t) >= 0x1p63)
        return t;
    t = fmod(t, range);
    if (dtype == RUNG_U8)
        return t < 0 ? t + range : t;
    return t >= range / 2 ? t - range : t < -range / 2 ? t + range : t;
}

static void finish_integer(struct ops_num x, uint32_t dtype, double *value, double *bound)
{
    *value = to_integer(x.v, dtype);
    *bound = fabs(x.v) > 0x1p53 ? fabs(x.v) * 0x1p-52 : 0;
    if (x.e > 0)
        *bound += fmax(fabs(to_integer(x.v + x.e, dtype) - *value),
                       fabs(to_integer(x.v - x.e, dtype) - *value));
    if (dtype == RUNG_BOOL && fabs(x.v) <= x.e)
        *bound = x.e > 0;
}

static void finish_element(struct ops_num x, uint32_t dtype, const struct format *f,
                           const struct ops_arith *ar, double *value, double *bound)
{
    int integer = dtype >= RUNG_I8;
    if (isinf(x.e) || (integer && !isfinite(x.v))) { /* nothing to ask for */
        *value = isfinite(x.v) ? x.v : 0;
        *bound = INFINITY;
    } else if (!isfinite(x.v)) {
        *value = x.v;
        *bound = 0;
    } else if (integer) {
        finish_integer(x, dtype, value, bound);
    } else {
        finish_float(x, f, ar, value, bound);
    }
}

struct finish_job {
    struct ops_tensor *t;
    uint32_t dtype;
    const struct ops_arith *ar;
};

static void finish_part(void *ctx, uint64_t first, uint64_t end)
{
    const struct finish_job *j = ctx;
    struct format f = format_of(j->dtype);
    double *v = j->t->v, *e = j->t->e;
    for (uint64_t i = first; i < end; i++)
        finish_element((struct ops_num){v[i], e[i]}, j->dtype, &f, j->ar, &v[i], &e[i]);
}

void ops_finish(const struct ops_eval *ev, struct ops_tensor *t, uint32_t dtype)
{
    struct finish_job job = {t, dtype, &ev->arith};
    ops_parallel(ev->threads, t->n, OPS_GRAIN, finish_part, &job);
}
