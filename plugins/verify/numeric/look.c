/*
 * What a finished run left in one output: the comparison with the reference, the reference's values
 * and bounds, and the memory. Of a dear case only boxes are compared, unless the session compares
 * outputs where they lie; the whole is looked through for what was never written (poison is NaN at
 * even seeds) or is not finite.
 */
#include "numeric.h"

#include "../element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t elements(const struct rung_tensor_view *view)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < view->n_dims; d++)
        n *= (uint64_t)view->dims[d];
    return n;
}

/* Adds what was found in another part; rmse, psnr and cosine follow from the sample. */
static void merge(struct rung_comparison *to, const struct rung_comparison *part)
{
    if (part->n_bad && part->first_bad < to->first_bad) {
        to->first_bad = part->first_bad;
        to->first_got = part->first_got;
        to->first_want = part->first_want;
        to->first_bound = part->first_bound;
    }
    if (part->max_abs > to->max_abs) {
        to->max_abs = part->max_abs;
        to->max_abs_at = part->max_abs_at;
    }
    if (part->max_rel > to->max_rel) {
        to->max_rel = part->max_rel;
        to->max_rel_at = part->max_rel_at;
    }
    to->n += part->n;
    to->n_bad += part->n_bad;
    to->n_unwritten += part->n_unwritten;
    to->n_nan += part->n_nan;
    to->n_inf += part->n_inf;
    to->n_missing += part->n_missing;
    to->worst = fmax(to->worst, part->worst);
    to->worst_half = fmax(to->worst_half, part->worst_half);
}

static void conclude(struct numeric_output *o)
{
    double error = 0, both = 0, got2 = 0, want2 = 0, peak = 0;
    uint64_t finite = 0;
    for (uint64_t i = 0; i < o->c.n; i++) {
        double got = numeric_got(o, i), want = o->want.value[i];
        if (!isfinite(got) || !isfinite(want))
            continue;
        finite++;
        error += (got - want) * (got - want);
        both += got * want;
        got2 += got * got;
        want2 += want * want;
        peak = fmax(peak, fabs(want));
    }
    o->c.rmse = finite ? sqrt(error / (double)finite) : 0;
    o->c.psnr = o->c.rmse == 0 ? INFINITY : 20 * log10(peak / o->c.rmse);
    o->c.cosine = got2 == 0 || want2 == 0 ? got2 == want2 : both / (sqrt(got2) * sqrt(want2));
    o->c.fraction_out = o->c.n ? (double)o->c.n_bad / (double)o->c.n : 0;
}

/* Room for n more elements of the sample. */
static int grow(struct numeric_output *o, uint64_t n)
{
    uint64_t total = o->want.n + n;
    uint64_t *at = realloc(o->at, total * sizeof *at);
    o->at = at ? at : o->at;
    double *value = at ? realloc(o->value, total * sizeof *value) : NULL;
    o->value = value ? value : o->value;
    double *bound = value ? realloc(o->bound, total * sizeof *bound) : NULL;
    o->bound = bound ? bound : o->bound;
    return bound != NULL;
}

/* Flat indices of a box's elements, in its order. */
static void list_elements(const struct rung_tensor_view *view, const struct rung_region *box,
                          uint64_t n, uint64_t *at)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i, stride = 1;
        at[i] = 0;
        for (uint32_t d = view->n_dims; d-- > 0;) {
            uint64_t count = (uint64_t)box->count[d];
            at[i] += ((uint64_t)box->start[d] + rest % count) * stride;
            rest /= count;
            stride *= (uint64_t)view->dims[d];
        }
    }
}

static int32_t add_box(struct numeric_check *k, struct rung_run *run, uint32_t tensor,
                       const struct rung_region *box, struct numeric_output *o)
{
    struct rung_comparison c = {.struct_size = sizeof c};
    struct rung_reference_output want = {.struct_size = sizeof want};
    int32_t status = k->session->compare_region(k->session, k->call, run, tensor, box, &c);
    if (!status)
        status = k->session->expected_region(k->session, k->call, run, tensor, box, &want);
    if (status)
        return status;
    if (!grow(o, want.n))
        return numeric_out_of_memory(k);
    list_elements(&o->got, box, want.n, o->at + o->want.n);
    memcpy(o->value + o->want.n, want.value, want.n * sizeof *want.value);
    memcpy(o->bound + o->want.n, want.bound, want.n * sizeof *want.bound);
    o->want.n += want.n;
    merge(&o->c, &c);
    return RUNG_OK;
}

/* The element that is known to be wrong, unless it lies in a box already. */
static int32_t add_bad(struct numeric_check *k, struct rung_run *run, uint32_t tensor,
                       uint64_t total, struct numeric_output *o)
{
    if (!k->bad || k->bad > total)
        return RUNG_OK;
    for (uint64_t i = 0; i < o->want.n; i++)
        if (o->at[i] == k->bad - 1)
            return RUNG_OK;
    struct rung_region bad = numeric_box_at(&o->got, k->bad - 1);
    return add_box(k, run, tensor, &bad, o);
}

static int32_t look_at_boxes(struct numeric_check *k, const struct numeric_case *c,
                             struct rung_run *run, uint32_t tensor, struct numeric_output *o)
{
    struct rung_region boxes[NUMERIC_BOXES], finds[NUMERIC_FINDS];
    uint64_t total = elements(&o->got);
    uint32_t n = numeric_boxes(o->got.dims, o->got.n_dims, c->seed ^ tensor, boxes);
    uint32_t n_finds = numeric_scan(&o->got, total, finds);
    int32_t status = RUNG_OK;
    o->c.tensor = o->want.tensor = tensor;
    o->c.first_bad = total;
    for (uint32_t i = 0; i < n && !status; i++)
        status = add_box(k, run, tensor, &boxes[i], o);
    for (uint32_t i = 0; i < n_finds && !status; i++)
        status = add_box(k, run, tensor, &finds[i], o);
    if (!status)
        status = add_bad(k, run, tensor, total, o);
    if (status)
        return status;
    o->want.value = o->value;
    o->want.bound = o->bound;
    conclude(o);
    double share = (double)o->c.n / (double)total;
    k->share = share < k->share ? share : k->share;
    return RUNG_OK;
}

static int32_t look_at_all(struct numeric_check *k, struct rung_run *run, uint32_t tensor,
                           struct numeric_output *o)
{
    int32_t status = k->session->compare(k->session, k->call, run, tensor, &o->c);
    return status ? status : k->session->expected(k->session, k->call, run, tensor, &o->want);
}

int32_t numeric_look(struct numeric_check *k, const struct numeric_case *c, struct rung_run *run,
                     uint32_t tensor, struct numeric_output *o)
{
    *o = (struct numeric_output){.c.struct_size = sizeof o->c,
                                 .want.struct_size = sizeof o->want,
                                 .got.struct_size = sizeof o->got};
    int32_t status = k->session->map(k->session, k->call, run, tensor, &o->got);
    if (!status && c->part)
        status = look_at_boxes(k, c, run, tensor, o);
    else if (!status)
        status = look_at_all(k, run, tensor, o);
    if (status)
        numeric_forget(o);
    return status;
}

int32_t numeric_glance(struct numeric_check *k, struct rung_run *run, uint32_t tensor,
                       struct rung_comparison *out, int *seen)
{
    const struct rung_session *session = k->session;
    *seen = 0;
    *out = (struct rung_comparison){.struct_size = sizeof *out};
    if (!(session->flags & RUNG_SESSION_FAST_COMPARE))
        return RUNG_OK;
    int32_t status = session->compare_fast(session, k->call, run, tensor, out);
    *seen = status == RUNG_OK;
    if (status != RUNG_EUNSUPPORTED && status != RUNG_ENOMEM)
        return status;
    k->call->error->code = RUNG_OK;
    return RUNG_OK;
}

void numeric_forget(struct numeric_output *o)
{
    free(o->at);
    free(o->value);
    free(o->bound);
    o->at = NULL;
    o->value = o->bound = NULL;
}

double numeric_got(const struct numeric_output *o, uint64_t i)
{
    return verify_element(o->got.dtype, o->got.data, o->at ? o->at[i] : i);
}
