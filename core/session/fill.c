/*
 * Drawn tensors. Only + - * /, sqrt and integer operations are used, never libm's log or cos: they
 * are exact or correctly rounded everywhere, so a fill has the same bits on every machine (the tree
 * is built with -ffp-contract=off).
 */
#include "session/session.h"

#include "base/philox.h"
#include "session/convert.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum kind {
    NORMAL,
    UNIFORM,
    SIGNED,
    OFFSET,
    LARGE,
    SMALL,
    ZEROS,
    ONES,
    EQUAL_ROWS,
    ONEHOT_ROWS,
    RAMP,
    INTEGERS,
    N_KINDS
};

const char *const rung_fill_kinds[] = {"normal", "uniform",  "signed", "offset",     "large",
                                       "small",  "zeros",    "ones",   "equal_rows", "onehot_rows",
                                       "ramp",   "integers", NULL};

static int kind_of(const char *name)
{
    for (int k = 0; name && k < N_KINDS; k++)
        if (strcmp(name, rung_fill_kinds[k]) == 0)
            return k;
    return -1;
}

bool rung_fill_known(const char *kind)
{
    return kind_of(kind) >= 0;
}

/* One tensor being drawn. Two neighbours share a Philox block; the last one is kept. */
struct draw {
    int kind;
    uint64_t seed, stream;
    uint64_t last;
    uint64_t block, words[2];
    double pair[2];
    bool have_words, have_pair;
};

static void draw_block(struct draw *d, uint64_t block)
{
    if (d->have_words && d->block == block)
        return;
    uint32_t w[4];
    rung_philox4(d->seed, d->stream, block, w);
    d->words[0] = (uint64_t)w[1] << 32 | w[0];
    d->words[1] = (uint64_t)w[3] << 32 | w[2];
    d->block = block;
    d->have_words = true;
    d->have_pair = false;
}

static uint64_t draw_word(struct draw *d, uint64_t i)
{
    draw_block(d, i / 2);
    return d->words[i % 2];
}

/* [0, 1), multiples of 2^-53. */
static double unit(uint64_t word)
{
    return (double)(word >> 11) * 0x1p-53;
}

/* c[0] x^(n-1) + ... + c[n-1] */
static inline double horner(const double *c, int n, double x)
{
    double sum = c[0];
    for (int k = 1; k < n; k++)
        sum = sum * x + c[k];
    return sum;
}

/* ln x, 0 < x <= 1: x = m 2^e, 1/sqrt 2 <= m < sqrt 2, ln m = 2 atanh((m - 1) / (m + 1)). */
static double log_unit(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m >= 0x1.6a09e667f3bcdp0) {
        m *= 0.5;
        e++;
    }
    static const double odd[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
    double s = (m - 1) / (m + 1), sum = horner(odd, sizeof odd / sizeof *odd, s * s);
    return e * 0x1.62e42fefa39efp-1 + 2 * s * sum;
}

/* cos and sin of 2 pi u, 0 <= u < 1: reduced to a quarter turn, then Taylor up to x^16 and x^17. */
static void turn(double u, double *c, double *s)
{
    static const double even[] = {1 / 20922789888000.0,
                                  -1 / 87178291200.0,
                                  1 / 479001600.0,
                                  -1 / 3628800.0,
                                  1 / 40320.0,
                                  -1 / 720.0,
                                  1 / 24.0,
                                  -1 / 2.0,
                                  1};
    static const double odd[] = {1 / 355687428096000.0,
                                 -1 / 1307674368000.0,
                                 1 / 6227020800.0,
                                 -1 / 39916800.0,
                                 1 / 362880.0,
                                 -1 / 5040.0,
                                 1 / 120.0,
                                 -1 / 6.0,
                                 1};
    int quarter = (int)(u * 4 + 0.5);
    double x = (u * 4 - quarter) * 0x1.921fb54442d18p0;
    double cs = horner(even, sizeof even / sizeof *even, x * x);
    double sn = horner(odd, sizeof odd / sizeof *odd, x * x) * x;
    switch (quarter % 4) {
    case 0:
        *c = cs;
        *s = sn;
        break;
    case 1:
        *c = -sn;
        *s = cs;
        break;
    case 2:
        *c = -cs;
        *s = -sn;
        break;
    default:
        *c = sn;
        *s = -cs;
        break;
    }
}

/* Box and Muller, 1958: two N(0,1) from two uniform numbers. */
static double normal(struct draw *d, uint64_t i)
{
    draw_block(d, i / 2);
    if (!d->have_pair) {
        double r = sqrt(-2 * log_unit(1 - unit(d->words[0]))), c, s;
        turn(unit(d->words[1]), &c, &s);
        d->pair[0] = r * c;
        d->pair[1] = r * s;
        d->have_pair = true;
    }
    return d->pair[i % 2];
}

static double draw_value(struct draw *d, uint64_t i)
{
    switch (d->kind) {
    case NORMAL:
        return normal(d, i);
    case UNIFORM:
        return unit(draw_word(d, i));
    case SIGNED:
        return 2 * unit(draw_word(d, i)) - 1;
    case OFFSET:
        return 1000 + normal(d, i);
    case LARGE:
        return 1e4 * normal(d, i);
    case SMALL:
        return 1e-6 * normal(d, i);
    case ZEROS:
        return 0;
    case ONES:
        return 1;
    case EQUAL_ROWS:
        return normal(d, i / d->last);
    case ONEHOT_ROWS:
        return draw_word(d, i / d->last) % d->last == i % d->last ? 30 : 0;
    case RAMP:
        return ((double)(i % 97) - 48) / 16;
    case INTEGERS:
        return (double)(int64_t)(draw_word(d, i) % 17) - 8;
    default:
        return NAN;
    }
}

/* Random kinds give a fair bit; the others say whether the value is not zero. */
static double draw_bool(struct draw *d, uint64_t i)
{
    switch (d->kind) {
    case ZEROS:
    case ONES:
    case ONEHOT_ROWS:
    case RAMP:
        return draw_value(d, i) != 0;
    case EQUAL_ROWS:
        return (double)(draw_word(d, i / d->last) & 1);
    default:
        return (double)(draw_word(d, i) & 1);
    }
}

static struct draw draw_new(const char *kind, uint64_t seed, uint32_t tensor, int64_t last)
{
    return (struct draw){.kind = kind_of(kind),
                         .seed = seed,
                         .stream = tensor,
                         .last = last > 0 ? (uint64_t)last : 1};
}

double rung_fill_value(const char *kind, uint64_t seed, uint32_t tensor, uint64_t i, int64_t last)
{
    struct draw d = draw_new(kind, seed, tensor, last);
    return draw_value(&d, i);
}

static int32_t draw_bytes(const struct rung_fill *fill, uint64_t size, uint64_t first, uint64_t n,
                          void *out)
{
    if (first > fill->n_bytes / size || n > fill->n_bytes / size - first)
        return RUNG_EINVAL;
    memcpy(out, (const char *)fill->bytes + first * size, n * size);
    return RUNG_OK;
}

/* A range of a draw; each element follows from its index, so ranges may be drawn side by side. */
struct range {
    const struct rung_fill *fill;
    uint32_t dtype;
    struct draw draw;
    uint64_t first, n;
    char *out;
    bool good;
};

static void *draw_range(void *arg)
{
    enum { CHUNK = 1024 };
    struct range *r = arg;
    uint64_t size = rung_dtype_bits(r->dtype) / 8;
    double scale = r->fill->scale == 0 ? 1 : r->fill->scale, chunk[CHUNK];
    r->good = true;
    for (uint64_t done = 0; done < r->n && r->good;) {
        uint64_t take = r->n - done < CHUNK ? r->n - done : CHUNK;
        for (uint64_t k = 0; k < take; k++) {
            uint64_t i = r->first + done + k;
            double v = r->dtype == RUNG_BOOL ? draw_bool(&r->draw, i) : draw_value(&r->draw, i);
            chunk[k] = v * scale + r->fill->shift;
        }
        r->good = rung_convert_store(r->dtype, chunk, take, r->out + done * size);
        done += take;
    }
    return NULL;
}

/* The whole in one range a processor, where it is worth their start. */
static bool draw_ranges(const struct range *whole)
{
    enum { MOST = 32, WORTH = 1 << 18 };
    struct range ranges[MOST];
    pthread_t threads[MOST];
    bool runs[MOST], good = true;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t n = whole->n / WORTH + 1, size = rung_dtype_bits(whole->dtype) / 8;
    if (n > (uint64_t)(processors > 1 ? processors : 1))
        n = (uint64_t)(processors > 1 ? processors : 1);
    n = n < MOST ? n : MOST;
    for (uint64_t t = 0; t < n; t++) {
        uint64_t from = whole->n / n * t, to = t + 1 == n ? whole->n : whole->n / n * (t + 1);
        ranges[t] = *whole;
        ranges[t].first += from;
        ranges[t].n = to - from;
        ranges[t].out += from * size;
        runs[t] = t + 1 < n && pthread_create(&threads[t], NULL, draw_range, &ranges[t]) == 0;
        if (!runs[t])
            draw_range(&ranges[t]);
    }
    for (uint64_t t = 0; t < n; t++) {
        if (runs[t])
            pthread_join(threads[t], NULL);
        good &= ranges[t].good;
    }
    return good;
}

int32_t rung_fill_draw(const struct rung_fill *fill, uint32_t dtype, uint64_t seed, uint64_t first,
                       uint64_t n, int64_t last, void *out)
{
    uint64_t size = rung_dtype_bits(dtype) / 8;
    if (!size)
        return RUNG_EINVAL;
    if (fill->bytes)
        return draw_bytes(fill, size, first, n, out);
    const struct range whole = {.fill = fill,
                                .dtype = dtype,
                                .draw = draw_new(fill->kind, seed, fill->tensor, last),
                                .first = first,
                                .n = n,
                                .out = out};
    return whole.draw.kind >= 0 && draw_ranges(&whole) ? RUNG_OK : RUNG_EINVAL;
}
