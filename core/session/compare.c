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

#include "session/convert.h"

#include <math.h>
#include <string.h>

/* Sums of one comparison; long double, so that squares of float64 extremes stay finite. */
struct sums {
    long double error2, got_want, got2, want2;
    double peak;
    uint64_t n_finite;
    uint64_t n_poison; /* bad elements whose bits are poison */
};

struct element {
    uint64_t at;
    double got, want, bound;
    bool poison;
};

/* Unit roundoff of float16 over that of the task's precision: 2^-11 / 2^-24 for fp32. */
static double half_over(uint32_t precision)
{
    switch (precision) {
    case RUNG_PRECISION_FP32:
        return 0x1p13;
    case RUNG_PRECISION_BF16:
        return 0x1p-3;
    case RUNG_PRECISION_FP64:
        return 0x1p42;
    default:
        return 1; /* tf32 and fp16 have 11 significant bits; integers have no rounding */
    }
}

static double ratio(double error, double bound)
{
    if (error == 0)
        return 0;
    return bound > 0 ? error / bound : INFINITY;
}

static void mark_bad(struct rung_comparison *c, struct sums *sums, const struct element *e,
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

static void compare_finite(struct rung_comparison *c, struct sums *sums, const struct element *e,
                           uint32_t dtype, double half)
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
static void compare_anything(struct rung_comparison *c, struct sums *sums, const struct element *e)
{
    if (!e->poison)
        return;
    mark_bad(c, sums, e, INFINITY);
    c->worst = INFINITY;
    c->worst_half = INFINITY;
}

/* Either side is inf or NaN. */
static void compare_special(struct rung_comparison *c, struct sums *sums, const struct element *e,
                            uint32_t dtype)
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

/*
 * How many bad elements are counted as never written. Bytes equal their poison by chance once in
 * 256 wrong ones, so for 8-bit integers it takes more than that explains.
 */
static uint64_t unwritten(uint32_t dtype, uint64_t n_poison, uint64_t n_bad)
{
    if (dtype != RUNG_I8 && dtype != RUNG_U8)
        return n_poison;
    double chance = (double)n_bad / 256;
    return (double)n_poison > chance + 4 * sqrt(chance) ? n_poison : 0;
}

static void conclude(struct rung_comparison *c, const struct sums *sums, uint32_t dtype)
{
    c->n_unwritten = unwritten(dtype, sums->n_poison, c->n_bad);
    c->fraction_out = c->n ? (double)c->n_bad / (double)c->n : 0;
    if (sums->n_finite)
        c->rmse = (double)sqrtl(sums->error2 / sums->n_finite);
    c->psnr = c->rmse == 0 ? INFINITY : 20 * log10(sums->peak / c->rmse);
    if (sums->got2 == 0 || sums->want2 == 0)
        c->cosine = sums->got2 == sums->want2 ? 1 : 0;
    else
        c->cosine = (double)(sums->got_want / (sqrtl(sums->got2) * sqrtl(sums->want2)));
}

/* One comparison in progress. */
struct comparing {
    const struct slot *s;
    const void *memory; /* of the whole output */
    double half;
    struct sums sums;
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

/* n elements of the output from `first` on, against value[0..n) and bound[0..n). */
static void compare_span(struct comparing *k, uint64_t first, uint64_t n, const double *value,
                         const double *bound)
{
    enum { CHUNK = 1024 };
    const struct slot *s = k->s;
    uint64_t size = rung_dtype_bits(s->dtype) / 8;
    double got[CHUNK];
    for (uint64_t done = 0; done < n; done += CHUNK) {
        uint64_t take = n - done < CHUNK ? n - done : CHUNK;
        const uint8_t *bytes = (const uint8_t *)k->memory + (first + done) * size;
        rung_convert_load(s->dtype, bytes, take, got);
        for (uint64_t i = 0; i < take; i++) {
            uint64_t at = first + done + i;
            struct element e = {at, got[i], value[done + i], bound[done + i], false};
            if (s->poison)
                e.poison =
                    memcmp(bytes + i * size, s->poison + at * size % POISON_BYTES, size) == 0;
            compare_element(k, &e);
        }
    }
}

/* Compares all of an output (region NULL) or a box of it with `want`. */
static int32_t compare(struct rung_call *call, struct rung_run *pub, uint32_t tensor,
                       const struct rung_region *region, const struct rung_reference_output *want,
                       struct rung_comparison *out)
{
    struct run *run = pub->ctx;
    struct slot *s = &run->slots[tensor];
    struct comparing k = {.s = s, .half = half_over(run->session->spec.task->precision), .c = out};
    int32_t status = slot_after(run, call, s, &k.memory);
    if (status != RUNG_OK)
        return status;
    *out = (struct rung_comparison){
        .struct_size = sizeof *out, .tensor = tensor, .n = want->n, .first_bad = s->elements};
    uint64_t lines = region ? region_lines(region) : 1, width = want->n / lines;
    for (uint64_t i = 0; i < lines; i++)
        compare_span(&k, region ? region_line(s, region, i) : 0, width, want->value + i * width,
                     want->bound + i * width);
    conclude(out, &k.sums, s->dtype);
    return RUNG_OK;
}

int32_t session_compare(const struct rung_session *table, struct rung_call *call,
                        struct rung_run *pub, uint32_t tensor, struct rung_comparison *out)
{
    struct rung_reference_output want;
    int32_t status = session_expected(table, call, pub, tensor, &want);
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
