/*
 * The blocked product: every innermost loop that the processor can run against plain sums, and
 * tiles of all sizes and threads, which change no bit.
 */
#include "support/support.h"

#include "../../plugins/verify/ops/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double sample(uint64_t i)
{
    return (double)((i * 2654435761u) % 1000003) / 500001.5 - 1;
}

static void every_innermost_loop_multiplies(void **state)
{
    uint32_t n;
    const struct ops_micro *list = ops_micro_list(&n);
    (void)state;
    assert_true(n >= 1);
    assert_string_equal(list[n - 1].name, "generic");
    for (uint32_t m = 0; m < n; m++)
        for (int single = 0; single < 2; single++) {
            enum { K = 131, STRIDE = 20 };
            int64_t rows = single ? 1 : list[m].rows, cols = list[m].columns;
            double a[12 * K], b[16 * K], c[12 * STRIDE];
            for (int64_t i = 0; i < rows * K; i++)
                a[i] = sample((uint64_t)i);
            for (int64_t i = 0; i < cols * K; i++)
                b[i] = sample((uint64_t)i + 7777);
            for (int i = 0; i < 12 * STRIDE; i++)
                c[i] = 1;
            (single ? list[m].single : list[m].full)(K, a, b, c, STRIDE);
            for (int64_t i = 0; i < 12; i++)
                for (int64_t j = 0; j < STRIDE; j++) {
                    long double want = 1;
                    for (int k = 0; k < K && i < rows && j < cols; k++)
                        want += (long double)a[k * rows + i] * b[k * cols + j];
                    if (fabsl(c[i * STRIDE + j] - want) > 1e-13L)
                        fail_msg("%s: [%ld, %ld] is %.17g, not %.17g", list[m].name, (long)i,
                                 (long)j, c[i * STRIDE + j], (double)want);
                }
        }
}

/* A product out of arrays. */
struct arrays {
    int64_t m, n, k;
    double *a, *b, *v, *e;
    double error_a, error_b; /* of every element */
};

static struct ops_run row(const void *ctx, int64_t batch, int64_t i, int64_t k0, int64_t count,
                          double *v, double *e)
{
    const struct arrays *x = ctx;
    for (int64_t k = 0; k < count; k++) {
        v[k] = x->a[(batch * x->m + i) * x->k + k0 + k];
        e[k] = x->error_a;
    }
    return (struct ops_run){v, x->error_a > 0 ? e : NULL};
}

static struct ops_run line(const void *ctx, int64_t batch, int64_t k, int64_t j0, int64_t count,
                           double *v, double *e)
{
    const struct arrays *x = ctx;
    (void)v;
    for (int64_t j = 0; j < count; j++)
        e[j] = x->error_b;
    return (struct ops_run){x->b + (batch * x->k + k) * x->n + j0, x->error_b > 0 ? e : NULL};
}

static void store(const void *ctx, int64_t batch, int64_t i, int64_t j0, int64_t count,
                  const struct ops_num *c)
{
    const struct arrays *x = ctx;
    for (int64_t j = 0; j < count; j++) {
        x->v[(batch * x->m + i) * x->n + j0 + j] = c[j].v;
        x->e[(batch * x->m + i) * x->n + j0 + j] = c[j].e;
    }
}

static double *numbers(int64_t n)
{
    double *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = sample((uint64_t)i * 3 + (uint64_t)n);
    return x;
}

static void check(const struct arrays *x, int64_t batch)
{
    for (int64_t i = 0; i < batch * x->m * x->n; i++) {
        int64_t b = i / x->n / x->m, r = i / x->n, c = i % x->n;
        long double want = 0, size = 0;
        double brought = 0; /* the bound is at least the errors of a and b, and little more */
        for (int64_t k = 0; k < x->k; k++) {
            double left = x->a[r * x->k + k], right = x->b[(b * x->k + k) * x->n + c];
            want += (long double)left * right;
            size += fabs(left * right);
            brought += (fabs(left) + x->error_a) * (fabs(right) + x->error_b) - fabs(left * right);
        }
        if (!(fabsl(x->v[i] - want) <= 1e-14L * (1 + size)))
            fail_msg("[%ld] of %ldx%ldx%ld is %.17g, not %.17g", (long)i, (long)x->m, (long)x->n,
                     (long)x->k, x->v[i], (double)want);
        assert_true(x->e[i] >= 0.999 * brought);
        assert_true(x->e[i] <= 1.001 * brought + 1e-7 * (double)(x->k + 20) * (double)size + 1e-30);
    }
}

static void products_of_all_sizes(void **state)
{
    static const int64_t sizes[][4] = {{1, 1, 1, 1},     {1, 1, 17, 500},  {1, 13, 1, 3},
                                       {3, 12, 16, 5},   {2, 11, 15, 193}, {1, 193, 200, 191},
                                       {1, 30, 400, 385}};
    struct ops_eval ev = {.arith = ops_arith_of(RUNG_PRECISION_FP32)};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int errors = 0; errors < 4; errors++) {
            int64_t batch = sizes[s][0], m = sizes[s][1], n = sizes[s][2], k = sizes[s][3];
            size_t bytes = (size_t)(batch * m * n) * sizeof(double);
            struct arrays x = {.m = m,
                               .n = n,
                               .k = k,
                               .error_a = errors & 1 ? 1e-3 : 0,
                               .error_b = errors & 2 ? 1e-2 : 0};
            x.a = numbers(batch * m * k);
            x.b = numbers(batch * k * n);
            x.v = malloc(bytes);
            x.e = malloc(bytes);
            double *first = malloc(bytes);
            struct ops_gemm g = {batch, m, n, k, errors != 0, &x, row, line, store};
            for (ev.threads = 1; ev.threads < 20; ev.threads += 6) {
                assert_int_equal(ops_gemm_run(&ev, &g), RUNG_OK);
                check(&x, batch);
                if (ev.threads == 1)
                    memcpy(first, x.v, bytes);
                assert_memory_equal(first, x.v, bytes);
            }
            free(x.a);
            free(x.b);
            free(x.v);
            free(x.e);
            free(first);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_innermost_loop_multiplies),
        cmocka_unit_test(products_of_all_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
