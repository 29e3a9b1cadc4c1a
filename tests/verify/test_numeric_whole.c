/* The numeric verifier where the session compares whole outputs at no cost. */
#include "verdicts.h"

#include "honest.h"

#include <string.h>

#define SOFTMAX .graph = "y = softmax(x, axis=1)"

static void softmax(float *x, float *y, int rows, int cols)
{
    for (int r = 0; r < rows; r++)
        honest_softmax[0].run(x + (long)r * cols, cols, y + (long)r * cols);
}

static void last_column_wrong(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    for (long r = 0; rows * cols > 100000 && r < rows; r++)
        y[r * cols + cols - 1] = 0;
}

static void one_unwritten(float *x, float *y, int rows, int cols)
{
    long at = (long)rows * cols > 100000 ? 7L * cols + 303 : 0;
    float keep = y[at];
    softmax(x, y, rows, cols);
    if (at)
        memcpy(&y[at], &keep, sizeof keep);
}

static void zeros(float *x, float *y, int rows, int cols)
{
    (void)x;
    memset(y, 0, sizeof *y * (size_t)rows * (size_t)cols);
}

/* An element that lies in none of the boxes. */
static void one_of_many_wrong(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    if (rows == 300 && cols == 500)
        y[157 * 500 + 333] += 0.5f;
}

static void dear_outputs_are_compared_whole_where_that_costs_nothing(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX,     .kernel = one_of_many_wrong, .rows = 300,
                      .cols = 500, .option = "whole",           .value = 1000000};
    expect_pass(&t);
    t.fast = 1;
    expect_fail(&t, "numeric.mismatch", "y[157,333]");
    t.kernel = softmax;
    verdict_whole = 0;
    struct outcome o = judge(&t);
    if (o.status != RUNG_PASS)
        fail_msg("%s: %s", o.code, o.detail);
    assert_true(verdict_whole > 0);
    assert_null(strstr(o.detail, "rows and tiles"));
    t.kernel = last_column_wrong;
    expect_fail(&t, "numeric.mismatch", "compared elements out");
    t.kernel = one_unwritten;
    expect_fail(&t, "output.unwritten", "y has 1 of");
    t = (struct trial){.graph = "y = x * 0",
                       .kernel = zeros,
                       .option = "whole",
                       .value = 0,
                       .fast = 1,
                       .shape_rule = RUNG_SHAPES_FIXED};
    expect_fail(&t, "task.weak", "y = 0 everywhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dear_outputs_are_compared_whole_where_that_costs_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
