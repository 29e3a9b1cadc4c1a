/*
 * An output against the reference, element by element in float64, in one pass.
 *
 * An honest kernel may be off by `bound` and must then round to the output's type. Rounding keeps
 * order, so what it may store is exactly the interval [round(want - bound), round(want + bound)].
 * That asks for the exact bits where the reference is exact and its value is representable, gives
 * the rounding of half a unit where it is not, and lets a float16 overflow where the reference is
 * within its bound of doing so.
 */
#include "session/private.h"

#include "session/conclude.h"
#include "session/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct element {
    uint64_t at;
    double got, want, bound;
    bool poison;
};

static double ratio(double error, double bound)
{
    if (error == 0)
        return 0;
    return bound > 0 ? error / bound : INFINITY;
}

static void mark_bad(struct rung_comparison *c, struct session_sums *sums, const struct element *e,
                     double allowed)
{
    if (c->n_bad++ == 0) {
        c->first_bad = e->at;
        c->first_got = e->got;
        c->first_want = e->want;
        c->first_bound = allowed;
    }
    sums->n_poison += e->poison;
}

static void compare_finite(struct rung_comparison *c, struct session_sums *sums,
                           const struct element *e, uint32_t dtype, double half)
{
    bool rounds = rung_dtype_is_float(dtype);
    double low = e->want - e->bound, high = e->want + e->bound;
    if (rounds) {
        low = rung_convert_round(dtype, low);
        high = rung_convert_round(dtype, high);
    }
    double error = fabs(e->got - e->want);
    double allowed = e->got > e->want ? high - e->want : e->want - low;
    double worst = ratio(error, allowed);
    if (e->got < low || e->got > high)
        mark_bad(c, sums, e, allowed);
    c->worst = fmax(c->worst, worst);
    c->worst_half = fmax(c->worst_half, ratio(error, allowed * half));
    if (error > c->max_abs) {
        c->max_abs = error;
        c->max_abs_at = e->at;
    }
    if (e->want != 0 && error / fabs(e->want) > c->max_rel) {
        c->max_rel = error / fabs(e->want);
        c->max_rel_at = e->at;
    }
    long double g = e->got, w = e->want, d = g - w;
    sums->error2 += d * d;
    sums->got_want += g * w;
    sums->got2 += g * g;
    sums->want2 += w * w;
    sums->n_finite++;
}

/* The reference can't say what is right here (a bound of infinity): whatever was written is. */
static void compare_anything(struct rung_comparison *c, struct session_sums *sums,
                             const struct element *e)
{
    if (!e->poison)
        return;
    mark_bad(c, sums, e, INFINITY);
    c->worst = INFINITY;
    c->worst_half = INFINITY;
}

/* Either side is inf or NaN. */
static void compare_special(struct rung_comparison *c, struct session_sums *sums,
                            const struct element *e, uint32_t dtype)
{
    if (isnan(e->want) ? isnan(e->got) && !e->poison : isinf(e->want) && e->got == e->want)
        return;
    if (isinf(e->bound) && !e->poison)
        return; /* honest arithmetic may come out anywhere there: nothing can be asked */
    if (!isfinite(e->want)) {
        c->n_missing++;
    } else if (isinf(e->got)) {
        double edge = e->got > 0 ? e->want + e->bound : e->want - e->bound;
        if (rung_dtype_is_float(dtype) && rung_convert_round(dtype, edge) == e->got)
            return;
        c->n_inf++;
    } else if (!e->poison) {
        c->n_nan++;
    }
    mark_bad(c, sums, e, isfinite(e->want) ? e->bound : 0);
    c->worst = INFINITY;
    c->worst_half = INFINITY;
}

/* One comparison in progress. */
struct comparing {
    struct run *run;
    struct rung_call *call;
    struct slot *s;
    double half;
    struct session_sums sums;
    struct rung_comparison *c;
};

static void compare_element(struct comparing *k, const struct element *e)
{
    uint32_t dtype = k->s->dtype;
    if (isfinite(e->want))
        k->sums.peak = fmax(k->sums.peak, fabs(e->want));
    if (isfinite(e->want) && isinf(e->bound))
        compare_anything(k->c, &k->sums, e);
    else if (isfinite(e->want) && isfinite(e->got))
        compare_finite(k->c, &k->sums, e, dtype, k->half);
    else
        compare_special(k->c, &k->sums, e, dtype);
}

/* n elements of the output from `first` on: `bytes`, against value[0..n) and bound[0..n). */
static void compare_span(struct comparing *k, uint64_t first, uint64_t n, const uint8_t *bytes,
                         const double *value, const double *bound)
{
    enum { CHUNK = 1024 };
    const struct slot *s = k->s;
    uint64_t size = rung_dtype_bits(s->dtype) / 8;
    double got[CHUNK];
    for (uint64_t done = 0; done < n; done += CHUNK) {
        uint64_t take = n - done < CHUNK ? n - done : CHUNK;
        rung_convert_load(s->dtype, bytes + done * size, take, got);
        for (uint64_t i = 0; i < take; i++) {
            uint64_t at = first + done + i;
            struct element e = {at, got[i], value[done + i], bound[done + i], false};
            if (s->poison)
                e.poison = memcmp(bytes + (done + i) * size, s->poison + at * size % POISON_BYTES,
                                  size) == 0;
            compare_element(k, &e);
        }
    }
}

static int32_t compare_all(struct comparing *k, const struct rung_reference_output *want)
{
    const void *memory;
    int32_t status = slot_after(k->run, k->call, k->s, &memory);
    if (status == RUNG_OK)
        compare_span(k, 0, want->n, memory, want->value, want->bound);
    return status;
}

/* Line by line: of a huge output only the box is read. */
static int32_t compare_box(struct comparing *k, const struct rung_region *region,
                           const struct rung_reference_output *want)
{
    struct slot *s = k->s;
    struct rung_open_session *session = k->run->session;
    uint64_t lines = region_lines(region), width = want->n / lines;
    uint64_t size = rung_dtype_bits(s->dtype) / 8;
    const char *memory = s->strided ? NULL : device_map(session, s->buffer);
    memory = memory ? memory + s->offset : s->after;
    int32_t status = RUNG_OK;
    if (s->strided) { /* gathered once */
        const void *all;
        status = slot_after(k->run, k->call, s, &all);
        memory = all;
    }
    if (status != RUNG_OK)
        return status;
    char *line = memory ? NULL : malloc(width * size);
    if (!memory && !line)
        return rung_fail(k->call->error, RUNG_ENOMEM, "session.host_memory",
                         "no room for a line of %s", s->name);
    for (uint64_t i = 0; i < lines && status == RUNG_OK; i++) {
        uint64_t first = region_line(s, region, i);
        if (line)
            status = device_read(session, k->call, s->buffer, s->offset + first * size, line,
                                 width * size);
        if (status == RUNG_OK)
            compare_span(k, first, width, (const uint8_t *)(memory ? memory + first * size : line),
                         want->value + i * width, want->bound + i * width);
    }
    free(line);
    return status;
}

/* Compares all of an output (region NULL) or a box of it with `want`. */
static int32_t compare(struct rung_call *call, struct rung_run *pub, uint32_t tensor,
                       const struct rung_region *region, const struct rung_reference_output *want,
                       struct rung_comparison *out)
{
    struct run *run = pub->ctx;
    struct slot *s = &run->slots[tensor];
    struct comparing k = {.run = run,
                          .call = call,
                          .s = s,
                          .half = session_half_over(run->session->spec.task->precision),
                          .c = out};
    *out = (struct rung_comparison){
        .struct_size = sizeof *out, .tensor = tensor, .n = want->n, .first_bad = s->elements};
    int32_t status = region ? compare_box(&k, region, want) : compare_all(&k, want);
    session_conclude(out, &k.sums, s->dtype);
    return status;
}

/* Of an output that the device can compare; see session_compare_fast. */
static int32_t compare_there(struct run *run, struct rung_call *call, uint32_t tensor,
                             struct rung_comparison *out)
{
    if (!whole_is_possible(run->session))
        return rung_fail(call->error, RUNG_EUNSUPPORTED, "session.host_reference",
                         "the reference is computed on the host");
    int32_t status = whole_compare(run, call);
    if (status == RUNG_OK)
        *out = run->compared[tensor];
    return status;
}

int32_t session_compare_fast(const struct rung_session *table, struct rung_call *call,
                             struct rung_run *pub, uint32_t tensor, struct rung_comparison *out)
{
    struct run *run = NULL;
    (void)table;
    int32_t status = run_output(pub, call, tensor, &run);
    return status == RUNG_OK ? compare_there(run, call, tensor, out) : status;
}

int32_t session_compare(const struct rung_session *table, struct rung_call *call,
                        struct rung_run *pub, uint32_t tensor, struct rung_comparison *out)
{
    struct rung_reference_output want;
    struct run *run = NULL;
    int32_t status = run_output(pub, call, tensor, &run);
    if (status != RUNG_OK)
        return status;
    if (!run->expected) {
        status = compare_there(run, call, tensor, out);
        if (status != RUNG_EUNSUPPORTED && status != RUNG_ENOMEM)
            return status;
        *call->error = rung_error_init();
    }
    status = session_expected(table, call, pub, tensor, &want);
    return status == RUNG_OK ? compare(call, pub, tensor, NULL, &want, out) : status;
}

int32_t session_compare_region(const struct rung_session *table, struct rung_call *call,
                               struct rung_run *pub, uint32_t tensor,
                               const struct rung_region *region, struct rung_comparison *out)
{
    struct rung_reference_output want;
    int32_t status = session_expected_region(table, call, pub, tensor, region, &want);
    return status == RUNG_OK ? compare(call, pub, tensor, region, &want, out) : status;
}
