/*
 * Operators that only move elements: permutations, reshapes, slices.
 */
#include "attr.h"

#include <string.h>

/* Copies elements one by one where a strided source gives them: out[i] = in[base + i . strides]. */
struct strided {
    const struct ops_tensor *in;
    struct ops_tensor *out;
    int64_t base, strides[RUNG_MAX_DIMS];
};

static void copy_strided(void *ctx, uint64_t first, uint64_t end)
{
    const struct strided *s = ctx;
    const struct ops_tensor *out = s->out;
    int64_t index[RUNG_MAX_DIMS] = {0}, at = s->base;
    uint64_t rest = first;
    for (uint32_t d = out->n_dims; d-- > 0; rest /= (uint64_t)out->dims[d]) {
        index[d] = (int64_t)(rest % (uint64_t)out->dims[d]);
        at += index[d] * s->strides[d];
    }
    for (uint64_t i = first; i < end; i++) {
        out->v[i] = s->in->v[at];
        out->e[i] = s->in->e ? s->in->e[at] : 0;
        ops_advance(out->n_dims, out->dims, s->strides, index, &at);
    }
}

/*
 * The same where neighbours of the input lie along dimension `d` of the result, not the last: in
 * blocks, so that lines of the cache are used up. Items are rows of blocks.
 */
enum { BLOCK = 32 };

struct blocked {
    struct strided s;
    uint32_t d;
};

static void copy_block(const struct blocked *b, int64_t from, int64_t to, int64_t rows)
{
    const struct ops_tensor *in = b->s.in;
    struct ops_tensor *out = b->s.out;
    uint32_t last = out->n_dims - 1;
    int64_t columns = out->dims[last], step = b->s.strides[last], strides[RUNG_MAX_DIMS];
    ops_strides(out->n_dims, out->dims, strides);
    for (int64_t c0 = 0; c0 < columns; c0 += BLOCK)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = c0; c < c0 + BLOCK && c < columns; c++) {
                int64_t at = from + r + c * step, place = to + r * strides[b->d] + c;
                out->v[place] = in->v[at];
                out->e[place] = in->e ? in->e[at] : 0;
            }
}

static void copy_blocks(void *ctx, uint64_t first, uint64_t end)
{
    const struct blocked *b = ctx;
    const struct ops_tensor *out = b->s.out;
    int64_t strides[RUNG_MAX_DIMS], dims[RUNG_MAX_DIMS];
    ops_strides(out->n_dims, out->dims, strides);
    memcpy(dims, out->dims, sizeof dims);
    dims[b->d] = (out->dims[b->d] + BLOCK - 1) / BLOCK;
    for (uint64_t item = first; item < end; item++) {
        int64_t rest = (int64_t)item, from = 0, to = 0, rows = 0;
        for (uint32_t d = out->n_dims - 1; d-- > 0; rest /= dims[d]) {
            int64_t i = d == b->d ? rest % dims[d] * BLOCK : rest % dims[d];
            from += i * b->s.strides[d];
            to += i * strides[d];
            if (d == b->d)
                rows = out->dims[d] - i < BLOCK ? out->dims[d] - i : BLOCK;
        }
        copy_block(b, from, to, rows);
    }
}

static int32_t run_blocked(const struct ops_step *step, const struct strided *s, uint32_t d)
{
    struct blocked b = {*s, d};
    b.s.in = step->in[0];
    b.s.out = step->out;
    uint64_t columns = (uint64_t)step->out->dims[step->out->n_dims - 1];
    uint64_t rows = (uint64_t)step->out->dims[d];
    uint64_t items = step->out->n / columns / rows * ((rows + BLOCK - 1) / BLOCK);
    ops_parallel(step->ev->threads, items, OPS_GRAIN / BLOCK / columns + 1, copy_blocks, &b);
    return RUNG_OK;
}

static int32_t run_strided(const struct ops_step *step, struct strided *s)
{
    s->in = step->in[0];
    s->out = step->out;
    ops_parallel(step->ev->threads, step->out->n, OPS_GRAIN, copy_strided, s);
    return RUNG_OK;
}

/* ---- permutations ---- */

static int32_t run_permute(const struct ops_step *step)
{
    const uint32_t *perm = step->value->attr;
    struct strided s = {.base = 0};
    int64_t strides[RUNG_MAX_DIMS];
    ops_strides(step->in[0]->n_dims, step->in[0]->dims, strides);
    for (uint32_t d = 0; d < step->out->n_dims; d++)
        s.strides[d] = strides[perm[d]];
    for (uint32_t d = 0; d + 1 < step->out->n_dims; d++)
        if (perm[d] + 1 == step->out->n_dims)
            return run_blocked(step, &s, d);
    return run_strided(step, &s);
}

static void need_permute(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                         struct ops_box *out)
{
    const uint32_t *perm = v->attr;
    (void)input;
    for (uint32_t d = 0; d < v->n_dims; d++) {
        out->start[perm[d]] = want->start[d];
        out->count[perm[d]] = want->count[d];
    }
}

const struct ops_kernel ops_permute_kernel = {need_permute, run_permute, 0};

struct ops_value *ops_permute(struct ops_eval *ev, const uint32_t *perm, struct ops_value *a)
{
    int64_t dims[RUNG_MAX_DIMS];
    for (uint32_t d = 0; a && d < a->n_dims; d++)
        dims[d] = a->dims[perm[d]];
    struct ops_value *v = a ? ops_value_new(ev, 0, &ops_permute_kernel, a->n_dims, dims, &a, 1,
                                            perm, a->n_dims * sizeof *perm)
                            : NULL;
    if (v)
        v->terms = a->terms;
    return v;
}

struct ops_value *ops_swap_axes(struct ops_eval *ev, uint32_t d0, uint32_t d1, struct ops_value *a)
{
    uint32_t perm[RUNG_MAX_DIMS];
    for (uint32_t d = 0; d < RUNG_MAX_DIMS; d++)
        perm[d] = d == d0 ? d1 : d == d1 ? d0 : d;
    return ops_permute(ev, perm, a);
}

/* ---- reshapes ---- */

static int64_t flat_of(const struct ops_box *box, const struct ops_value *v, int last)
{
    int64_t flat = 0;
    for (uint32_t d = 0; d < v->n_dims; d++)
        flat = flat * v->dims[d] + box->start[d] + (last ? box->count[d] - 1 : 0);
    return flat;
}

/* The box around all elements between the first and the last that are wanted. */
static void need_reshape(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                         struct ops_box *out)
{
    const struct ops_value *x = v->in[input];
    int64_t first = flat_of(want, v, 0), last = flat_of(want, v, 1), strides[RUNG_MAX_DIMS];
    ops_strides(x->n_dims, x->dims, strides);
    for (uint32_t d = 0; d < x->n_dims; d++) {
        int64_t a = first / strides[d], b = last / strides[d];
        out->start[d] = a;
        out->count[d] = b - a + 1;
        if (a != b)
            return;
        first %= strides[d];
        last %= strides[d];
    }
}

/* Where flat index `flat` of x lies in its box. */
static int64_t place_of(int64_t flat, const struct ops_value *x, const struct ops_box *box)
{
    int64_t at = 0, stride = 1;
    for (uint32_t d = x->n_dims; d-- > 0; flat /= x->dims[d]) {
        at += (flat % x->dims[d] - box->start[d]) * stride;
        stride *= box->count[d];
    }
    return at;
}

static void reshape_part(void *ctx, uint64_t first, uint64_t end)
{
    const struct ops_step *step = ctx;
    const struct ops_value *v = step->value;
    const struct ops_tensor *in = step->in[0];
    struct ops_tensor *out = step->out;
    int direct = out->n == v->n && in->n == v->n;
    for (uint64_t i = first; i < end; i++) {
        int64_t at = (int64_t)i;
        if (!direct) {
            struct ops_box one = {{0}, {0}};
            uint64_t rest = i;
            for (uint32_t d = v->n_dims; d-- > 0; rest /= (uint64_t)out->dims[d]) {
                one.start[d] = step->box->start[d] + (int64_t)(rest % (uint64_t)out->dims[d]);
                one.count[d] = 1;
            }
            at = place_of(flat_of(&one, v, 0), v->in[0], step->from);
        }
        out->v[i] = in->v[at];
        out->e[i] = in->e ? in->e[at] : 0;
    }
}

static int32_t run_reshape(const struct ops_step *step)
{
    struct ops_step job = *step;
    ops_parallel(step->ev->threads, step->out->n, OPS_GRAIN, reshape_part, &job);
    return RUNG_OK;
}

const struct ops_kernel ops_reshape_kernel = {need_reshape, run_reshape, 0};

struct ops_value *ops_reshape(struct ops_eval *ev, uint32_t column, uint32_t n_dims,
                              const int64_t *dims, struct ops_value *a)
{
    char from[256], to[256];
    struct ops_value *v =
        ops_value_new(ev, column, &ops_reshape_kernel, n_dims, dims, &a, 1, NULL, 0);
    if (v && v->n != a->n)
        return ops_stop(ev, column, "%s of %llu elements can't become %s of %llu",
                        ops_shape_text(a->n_dims, a->dims, from, sizeof from),
                        (unsigned long long)a->n, ops_shape_text(n_dims, dims, to, sizeof to),
                        (unsigned long long)v->n);
    if (v)
        v->terms = a->terms;
    return v;
}

/* ---- slices ---- */

static int32_t run_slice(const struct ops_step *step)
{
    const struct ops_slice_attr *c = step->value->attr;
    struct strided s = {.base = 0};
    ops_strides(step->in[0]->n_dims, step->in[0]->dims, s.strides);
    if (c->step < 0)
        s.base = (step->box->count[c->axis] - 1) * -c->step * s.strides[c->axis];
    s.strides[c->axis] *= c->step;
    return run_strided(step, &s);
}

static void need_slice(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                       struct ops_box *out)
{
    const struct ops_slice_attr *c = v->attr;
    int64_t first = c->start + want->start[c->axis] * c->step;
    int64_t last = first + (want->count[c->axis] - 1) * c->step;
    (void)input;
    *out = *want;
    out->start[c->axis] = first < last ? first : last;
    out->count[c->axis] = (first < last ? last - first : first - last) + 1;
}

const struct ops_kernel ops_slice_kernel = {need_slice, run_slice, 0};

struct ops_value *ops_slice(struct ops_eval *ev, uint32_t axis, int64_t start, int64_t step,
                            int64_t count, struct ops_value *a)
{
    struct ops_slice_attr attr = {axis, start, step};
    int64_t dims[RUNG_MAX_DIMS];
    if (!a)
        return NULL;
    memcpy(dims, a->dims, sizeof dims);
    dims[axis] = count;
    return ops_value_new(ev, 0, &ops_slice_kernel, a->n_dims, dims, &a, 1, &attr, sizeof attr);
}
