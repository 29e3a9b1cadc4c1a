/*
 * What the pattern of wrong elements suggests. Hints are guesses for the model that wrote the
 * kernel; each is only given when at least nine tenths of the elements fit it.
 */
#include "numeric.h"

#include <math.h>
#include <stdlib.h>

/* One output as rows of its last dimension, with a mark on every wrong element. */
struct pattern {
    const struct numeric_output *o;
    uint64_t n, cols, rows, n_bad;
    unsigned char *bad;
};

static double got_at(const struct pattern *p, uint64_t i)
{
    return numeric_got(p->o, i);
}

/* Wrong beyond doubt: outside the bound and the rounding of float32. */
static int is_bad(const struct pattern *p, uint64_t i)
{
    double got = got_at(p, i), want = p->o->want.value[i];
    if (!isfinite(want))
        return isnan(want) ? !isnan(got) : got != want;
    return !(fabs(got - want) <= p->o->want.bound[i] + 0x1p-24 * fabs(want));
}

static int pattern_open(struct pattern *p, const struct numeric_output *o)
{
    *p = (struct pattern){.o = o, .n = o->c.n, .cols = 1};
    if (o->got.n_dims && !o->at)
        p->cols = (uint64_t)o->got.dims[o->got.n_dims - 1];
    if (!p->cols || !p->n || !o->got.data || p->n % p->cols)
        return 0;
    p->rows = p->n / p->cols;
    p->bad = malloc(p->n);
    for (uint64_t i = 0; p->bad && i < p->n; i++) {
        p->bad[i] = (unsigned char)is_bad(p, i);
        p->n_bad += p->bad[i];
    }
    if (p->bad && p->n_bad)
        return 1;
    free(p->bad);
    return 0;
}

static int most(uint64_t part, uint64_t whole)
{
    return whole && part * 10 >= whole * 9;
}

/* The largest power of two that divides n. */
static uint64_t two_part(uint64_t n)
{
    return n & (~n + 1);
}

/* Wrong from some column on, in every row. */
static int hint_tail(const struct pattern *p, struct numeric_text *text)
{
    uint64_t first = p->cols;
    for (uint64_t i = 0; i < p->n; i++)
        if (p->bad[i] && i % p->cols < first)
            first = i % p->cols;
    uint64_t tail = p->cols - first;
    if (first == 0 || !most(p->n_bad, tail * p->rows))
        return 0;
    numeric_say(text, " The errors are in the last %llu elements of each row, from %llu on",
                (unsigned long long)tail, (unsigned long long)first);
    if (two_part(first) >= 4)
        numeric_say(text, ": the tail beyond a multiple of %llu looks unhandled",
                    (unsigned long long)two_part(first));
    numeric_say(text, ".");
    return 1;
}

/* Some rows wrong throughout, the others right. */
static int hint_rows(const struct pattern *p, struct numeric_text *text)
{
    uint64_t wrong = 0, first = p->rows, last = 0;
    for (uint64_t r = 0; r < p->rows; r++) {
        uint64_t n = 0;
        for (uint64_t c = 0; c < p->cols; c++)
            n += p->bad[r * p->cols + c];
        if (!n)
            continue;
        wrong++;
        first = r < first ? r : first;
        last = r;
    }
    if (p->cols < 2 || wrong == p->rows || !most(p->n_bad, wrong * p->cols))
        return 0;
    if (wrong == last - first + 1)
        numeric_say(text, " Whole rows are wrong: %llu to %llu of %llu, the others are right.",
                    (unsigned long long)first, (unsigned long long)last,
                    (unsigned long long)p->rows);
    else
        numeric_say(text, " Whole rows are wrong: %llu of %llu, the first is %llu.",
                    (unsigned long long)wrong, (unsigned long long)p->rows,
                    (unsigned long long)first);
    return 1;
}

/* Everything from one place of memory on. */
static int hint_end(const struct pattern *p, struct numeric_text *text)
{
    uint64_t first = 0;
    while (!p->bad[first])
        first++;
    if (first == 0 || !most(p->n_bad, p->n - first))
        return 0;
    numeric_say(text, " Everything from element %llu of %llu on is wrong, as if too few blocks ran",
                (unsigned long long)first, (unsigned long long)p->n);
    if (two_part(first) >= 4)
        numeric_say(text, " (%llu is a multiple of %llu)", (unsigned long long)first,
                    (unsigned long long)two_part(first));
    numeric_say(text, ".");
    return 1;
}

/* Every k-th element. */
static int hint_stride(const struct pattern *p, struct numeric_text *text)
{
    uint64_t first = 0;
    while (!p->bad[first])
        first++;
    for (uint64_t k = 64; k >= 2; k--) {
        uint64_t fit = 0, of = 0;
        for (uint64_t i = first % k; i < p->n; i += k, of++)
            fit += p->bad[i];
        if (of >= 3 && fit == p->n_bad && most(fit, of)) {
            numeric_say(text, " Every %llu-th element is wrong, starting at %llu.",
                        (unsigned long long)k, (unsigned long long)(first % k));
            return 1;
        }
    }
    return 0;
}

/* Wrong values that are all the same, or all one multiple of what they should be. */
static int hint_values(const struct pattern *p, struct numeric_text *text)
{
    uint64_t equal = 0, scaled = 0, first = 0;
    while (!p->bad[first])
        first++;
    double value = got_at(p, first), ratio = value / p->o->want.value[first];
    for (uint64_t i = first; i < p->n; i++) {
        double got = got_at(p, i), want = p->o->want.value[i];
        equal += p->bad[i] && got == value;
        scaled += p->bad[i] && fabs(got - ratio * want) <= 1e-3 * fabs(ratio * want);
    }
    if (p->n_bad < 3)
        return 0;
    if (most(equal, p->n_bad) && isfinite(value)) {
        numeric_say(text, " The wrong elements are all %.9g.", value);
        return 1;
    }
    if (most(scaled, p->n_bad) && isfinite(ratio) && fabs(ratio - 1) > 4e-3) {
        numeric_say(text, " The wrong elements are all %.4g times what they should be.", ratio);
        return 1;
    }
    return 0;
}

/* A square matrix that holds its transpose. */
static int hint_transposed(const struct pattern *p, struct numeric_text *text)
{
    uint64_t fit = 0;
    if (p->o->got.n_dims != 2 || p->rows != p->cols || p->rows < 3)
        return 0;
    for (uint64_t i = 0; i < p->n; i++) {
        uint64_t j = i % p->cols * p->cols + i / p->cols;
        double want = p->o->want.value[j];
        fit += p->bad[i] && fabs(got_at(p, i) - want) <= p->o->want.bound[j] + 0x1p-23 * fabs(want);
    }
    if (!most(fit, p->n_bad))
        return 0;
    numeric_say(text, " The result looks transposed.");
    return 1;
}

void numeric_hint(const struct numeric_output *o, struct numeric_text *text)
{
    struct pattern p;
    if (!pattern_open(&p, o))
        return;
    if (p.n_bad == p.n && p.n > 1)
        numeric_say(text, " All %selements are wrong.", o->at ? "compared " : "");
    else if (!o->at && !hint_tail(&p, text) && !hint_rows(&p, text) && !hint_end(&p, text))
        hint_stride(&p, text);
    if (!hint_values(&p, text) && !o->at)
        hint_transposed(&p, text);
    free(p.bad);
}
