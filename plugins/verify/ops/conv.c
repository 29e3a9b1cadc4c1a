/*
 * Convolutions and transposed convolutions of any rank as matrix products: rows are output
 * channels, columns output positions, and k runs over input channels and taps of the kernel. A
 * transposed convolution is split into phases of output positions that meet the same taps, so that
 * no product with a zero between the strides is computed.
 */
#include "attr.h"
#include "gemm.h"

#include <stdlib.h>
#include <string.h>

/* One phase: input position = q * in_step + offset of the tap, output = q * out_step + out_at. */
struct phase {
    const struct ops_tensor *x, *w;
    struct ops_tensor *out;
    const struct ops_box *box, *x_box;
    const struct ops_conv_attr *attr;
    int64_t n_taps;
    int64_t *flat;                  /* element of the kernel, one a tap */
    int64_t *offset[OPS_MAX_SPACE]; /* one a tap */
    int64_t q0[OPS_MAX_SPACE], q[OPS_MAX_SPACE], out_at[OPS_MAX_SPACE];
    int64_t in_step[OPS_MAX_SPACE], out_step[OPS_MAX_SPACE];
    int64_t group0, n_groups; /* that the box meets */
    int64_t row0, rows;       /* output channels of a group */
    int64_t group_in, volume; /* input channels of a group, elements of a kernel */
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return -floor_div(-a, b);
}

/* ---- operands of the product ---- */

static struct ops_run row(const void *ctx, int64_t batch, int64_t i, int64_t k0, int64_t count,
                          double *v, double *e)
{
    const struct phase *p = ctx;
    int64_t group = batch % p->n_groups, channel = k0 / p->n_taps, tap = k0 % p->n_taps;
    int64_t width = p->w->dims[1];
    for (int64_t k = 0; k < count; k++) {
        int64_t at = p->attr->transposed ? (group * p->group_in + channel) * width + i
                                         : (group * p->rows + i) * width + channel;
        at = at * p->volume + p->flat[tap];
        v[k] = p->w->v[at];
        if (p->w->e)
            e[k] = p->w->e[at];
        if (++tap == p->n_taps) {
            tap = 0;
            channel++;
        }
    }
    return (struct ops_run){v, p->w->e ? e : NULL};
}

/* Copies `count` elements `step` apart from place `at` on, of a row of `extent`; zeros outside. */
static void windowed(const double *from, int64_t extent, int64_t at, int64_t step, int64_t count,
                     double *to)
{
    int64_t first = at < 0 ? ceil_div(-at, step) : 0, end = ceil_div(extent - at, step);
    first = first > count ? count : first;
    end = end > count ? count : end < first ? first : end;
    if (!from)
        first = end = 0;
    memset(to, 0, (size_t)first * sizeof *to);
    if (step == 1 && end > first)
        memcpy(to + first, from + at + first, (size_t)(end - first) * sizeof *to);
    for (int64_t x = first; step != 1 && x < end; x++)
        to[x] = from[at + x * step];
    memset(to + end, 0, (size_t)(count - end) * sizeof *to);
}

/* Position q (relative) of the dimensions before the last: where its row of x starts, or -1 when
 * the tap falls outside. */
static int64_t row_of(const struct phase *p, int64_t tap, int64_t plane, const int64_t *q)
{
    uint32_t last = p->attr->win.n - 1;
    for (uint32_t d = 0; d < last; d++) {
        int64_t extent = p->x_box->count[2 + d];
        int64_t in = (p->q0[d] + q[d]) * p->in_step[d] + p->offset[d][tap] - p->x_box->start[2 + d];
        if (in < 0 || in >= extent)
            return -1;
        plane = plane * extent + in;
    }
    return plane * p->x_box->count[2 + last];
}

/* Relative position of column j. */
static void unfold(const struct phase *p, int64_t j, int64_t *q)
{
    for (uint32_t d = p->attr->win.n; d-- > 0; j /= p->q[d])
        q[d] = j % p->q[d];
}

static void next_row(const struct phase *p, int64_t *q)
{
    uint32_t last = p->attr->win.n - 1;
    q[last] = 0;
    for (uint32_t d = last; d-- > 0;) {
        if (++q[d] < p->q[d])
            return;
        q[d] = 0;
    }
}

static struct ops_run line(const void *ctx, int64_t batch, int64_t k, int64_t j0, int64_t count,
                           double *v, double *e)
{
    const struct phase *p = ctx;
    uint32_t last = p->attr->win.n - 1;
    int64_t tap = k % p->n_taps, channel = batch % p->n_groups * p->group_in + k / p->n_taps;
    int64_t plane = batch / p->n_groups * p->x->dims[1] + channel, q[OPS_MAX_SPACE], run;
    unfold(p, j0, q);
    for (int64_t done = 0; done < count; done += run, next_row(p, q)) {
        int64_t from = row_of(p, tap, plane, q), extent = p->x_box->count[2 + last];
        int64_t at = (p->q0[last] + q[last]) * p->in_step[last] + p->offset[last][tap] -
                     p->x_box->start[2 + last];
        run = p->q[last] - q[last] < count - done ? p->q[last] - q[last] : count - done;
        windowed(from < 0 ? NULL : p->x->v + from, extent, at, p->in_step[last], run, v + done);
        if (p->x->e)
            windowed(from < 0 ? NULL : p->x->e + from, extent, at, p->in_step[last], run, e + done);
    }
    return (struct ops_run){v, p->x->e ? e : NULL};
}

static void store(const void *ctx, int64_t batch, int64_t i, int64_t j0, int64_t count,
                  const struct ops_num *c)
{
    const struct phase *p = ctx;
    int64_t channel = (p->group0 + batch % p->n_groups) * p->rows + p->row0 + i - p->box->start[1];
    int64_t q[OPS_MAX_SPACE], run;
    uint32_t n = p->attr->win.n;
    if (channel < 0 || channel >= p->box->count[1])
        return;
    unfold(p, j0, q);
    for (int64_t done = 0; done < count; done += run, next_row(p, q)) {
        int64_t at = batch / p->n_groups * p->box->count[1] + channel;
        for (uint32_t d = 0; d < n; d++)
            at = at * p->box->count[2 + d] + (p->q0[d] + q[d]) * p->out_step[d] + p->out_at[d] -
                 p->box->start[2 + d];
        run = p->q[n - 1] - q[n - 1] < count - done ? p->q[n - 1] - q[n - 1] : count - done;
        for (int64_t x = 0; x < run; x++, at += p->out_step[n - 1]) {
            p->out->v[at] = c[done + x].v;
            p->out->e[at] = c[done + x].e;
        }
    }
}

/* ---- phases ---- */

/* Taps of dimension d at output positions `at` modulo the stride: kernel elements and offsets. */
static int64_t taps_of(const struct ops_conv_attr *attr, uint32_t d, int64_t at, int64_t *taps,
                       int64_t *offsets)
{
    const struct ops_window *w = &attr->win;
    int64_t n = 0;
    for (int64_t k = 0; k < w->kernel[d]; k++) {
        int64_t to = at + w->before[d] - k * w->dilation[d];
        if (attr->transposed && to % w->stride[d])
            continue;
        taps[n] = k;
        offsets[n++] = attr->transposed ? to / w->stride[d] : k * w->dilation[d] - w->before[d];
    }
    return n;
}

/* The taps of all dimensions combined, in row-major order. memory: 2 + 2 n lists of `volume`. */
static void combine_taps(struct phase *p, int64_t *memory)
{
    const struct ops_window *w = &p->attr->win;
    int64_t n[OPS_MAX_SPACE], *taps = memory, *offsets = memory + p->volume;
    p->flat = memory + 2 * p->volume;
    p->n_taps = 1;
    p->flat[0] = 0;
    for (uint32_t d = 0; d < w->n; d++)
        p->offset[d] = memory + (3 + (int64_t)d) * p->volume;
    for (uint32_t d = 0; d < w->n; d++) {
        n[d] = taps_of(p->attr, d, p->out_at[d], taps, offsets);
        for (int64_t t = p->n_taps; t-- > 0;) /* backwards: entry t becomes n[d] entries */
            for (int64_t k = n[d]; k-- > 0;) {
                for (uint32_t e = 0; e < d; e++)
                    p->offset[e][t * n[d] + k] = p->offset[e][t];
                p->offset[d][t * n[d] + k] = offsets[k];
                p->flat[t * n[d] + k] = p->flat[t] * w->kernel[d] + taps[k];
            }
        p->n_taps *= n[d];
    }
}

/* Output positions of a phase that lie in the box; 0 when there are none. */
static int positions(struct phase *p)
{
    const struct ops_window *w = &p->attr->win;
    for (uint32_t d = 0; d < w->n; d++) {
        int64_t first = p->box->start[2 + d], end = first + p->box->count[2 + d];
        p->in_step[d] = p->attr->transposed ? 1 : w->stride[d];
        p->out_step[d] = p->attr->transposed ? w->stride[d] : 1;
        p->q0[d] = ceil_div(first - p->out_at[d], p->out_step[d]);
        p->q[d] = ceil_div(end - p->out_at[d], p->out_step[d]) - p->q0[d];
        if (p->q[d] < 1)
            return 0;
    }
    return 1;
}

static int32_t run_phase(struct ops_eval *ev, struct phase *p, int64_t *memory)
{
    struct ops_gemm g = {.batch = p->box->count[0] * p->n_groups,
                         .m = p->attr->groups == 1 ? p->box->count[1] : p->rows,
                         .n = 1,
                         .with_errors = p->x->e || p->w->e,
                         .ctx = p,
                         .row = row,
                         .line = line,
                         .store = store};
    if (!positions(p))
        return RUNG_OK;
    combine_taps(p, memory);
    for (uint32_t d = 0; d < p->attr->win.n; d++)
        g.n *= p->q[d];
    g.k = p->group_in * p->n_taps;
    return ops_gemm_run(ev, &g);
}

/* The groups that the channels of a box meet. */
static void groups_of(const struct ops_value *v, const struct ops_box *box, int64_t *first,
                      int64_t *count)
{
    const struct ops_conv_attr *attr = v->attr;
    int64_t rows = v->dims[1] / attr->groups;
    *first = box->start[1] / rows;
    *count = (box->start[1] + box->count[1] - 1) / rows - *first + 1;
}

/* Phases along a dimension: no more than there are output positions. */
static int64_t phases_of(const struct ops_conv_attr *attr, uint32_t d)
{
    const struct ops_window *w = &attr->win;
    return !attr->transposed ? 1 : w->stride[d] < w->out[d] ? w->stride[d] : w->out[d];
}

static int32_t run_conv(const struct ops_step *step)
{
    const struct ops_conv_attr *attr = step->value->attr;
    const struct ops_value *x = step->value->in[0];
    struct phase p = {.x = step->in[0],
                      .w = step->in[1],
                      .out = step->out,
                      .box = step->box,
                      .x_box = &step->from[0],
                      .attr = attr,
                      .rows = step->value->dims[1] / attr->groups,
                      .row0 = attr->groups == 1 ? step->box->start[1] : 0,
                      .group_in = x->dims[1] / attr->groups,
                      .volume = 1};
    int64_t phases = 1;
    int32_t status = RUNG_OK;
    groups_of(step->value, step->box, &p.group0, &p.n_groups);
    for (uint32_t d = 0; d < attr->win.n; d++) {
        p.volume *= attr->win.kernel[d];
        phases *= phases_of(attr, d);
    }
    int64_t *memory = malloc((size_t)(p.volume * (3 + attr->win.n)) * sizeof *memory);
    if (!memory)
        return ops_no_memory(&step->ev->who);
    for (int64_t i = 0; i < phases && !status; i++) {
        int64_t rest = i;
        for (uint32_t d = attr->win.n; d-- > 0; rest /= phases_of(attr, d))
            p.out_at[d] = rest % phases_of(attr, d);
        status = run_phase(step->ev, &p, memory);
    }
    free(memory);
    return status;
}

/* Input positions between first and last that exist; one at the edge when none does. */
static void clip(int64_t first, int64_t last, int64_t extent, int64_t *start, int64_t *count)
{
    first = first < 0 ? 0 : first >= extent ? extent - 1 : first;
    last = last >= extent ? extent - 1 : last < first ? first : last;
    *start = first;
    *count = last - first + 1;
}

static void need_input(const struct ops_value *v, const struct ops_box *want, struct ops_box *out)
{
    const struct ops_conv_attr *attr = v->attr;
    const struct ops_window *w = &attr->win;
    out->start[0] = want->start[0];
    out->count[0] = want->count[0];
    for (uint32_t d = 0; d < w->n; d++) {
        int64_t a = want->start[2 + d], b = a + want->count[2 + d] - 1;
        int64_t reach = (w->kernel[d] - 1) * w->dilation[d];
        if (attr->transposed)
            clip(ceil_div(a + w->before[d] - reach, w->stride[d]),
                 floor_div(b + w->before[d], w->stride[d]), v->in[0]->dims[2 + d],
                 &out->start[2 + d], &out->count[2 + d]);
        else
            clip(a * w->stride[d] - w->before[d], b * w->stride[d] - w->before[d] + reach,
                 v->in[0]->dims[2 + d], &out->start[2 + d], &out->count[2 + d]);
    }
}

/* Groups that are met with all their channels; without groups, the wanted output channels. */
static void need_conv(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                      struct ops_box *out)
{
    const struct ops_conv_attr *attr = v->attr;
    int64_t first, count, group_in = v->in[0]->dims[1] / attr->groups;
    int64_t group_out = v->dims[1] / attr->groups;
    groups_of(v, want, &first, &count);
    if (input == 0)
        need_input(v, want, out);
    uint32_t side = input == 0 ? 1 : attr->transposed && attr->groups == 1;
    int64_t width = input == 0 || (attr->transposed && attr->groups > 1) ? group_in : group_out;
    if (input == 1 && attr->groups == 1) {
        out->start[side] = want->start[1];
        out->count[side] = want->count[1];
    } else {
        out->start[side] = first * width;
        out->count[side] = count * width;
    }
}

const struct ops_kernel ops_conv_kernel = {need_conv, run_conv, 0};

struct ops_value *ops_conv(struct ops_eval *ev, const struct ops_window *win, int64_t groups,
                           int transposed, struct ops_value *x, struct ops_value *w)
{
    struct ops_conv_attr attr = {*win, groups, transposed};
    struct ops_value *in[] = {x, w};
    int64_t dims[RUNG_MAX_DIMS] = {0};
    double each = 1;
    if (!x || !w)
        return NULL;
    dims[0] = x->dims[0];
    dims[1] = transposed ? w->dims[1] * groups : w->dims[0];
    for (uint32_t d = 0; d < win->n; d++) {
        dims[2 + d] = win->out[d];
        each *= (double)win->kernel[d];
    }
    struct ops_value *v =
        ops_value_new(ev, 0, &ops_conv_kernel, 2 + win->n, dims, in, 2, &attr, sizeof attr);
    if (v) {
        ev->flops += transposed ? 2 * each * (double)x->n * (double)w->dims[1]
                                : 2 * each * (double)v->n * (double)w->dims[1];
        v->terms = (uint64_t)each * (uint64_t)(transposed ? x->dims[1] / groups : w->dims[1]);
    }
    return v;
}
