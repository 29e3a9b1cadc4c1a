/* Every verdict of the numeric verifier, their order, and what is said. */
#include "verdicts.h"

#include "../session/fake_device.h"
#include "honest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- kernels ---- */

static void softmax(float *x, float *y, int rows, int cols)
{
    for (int r = 0; r < rows; r++)
        honest_softmax[0].run(x + (long)r * cols, cols, y + (long)r * cols);
}

static void softmax_without_max(float *x, float *y, int rows, int cols)
{
    for (long r = 0; r < rows; r++) {
        float s = 0;
        for (int c = 0; c < cols; c++)
            s += expf(x[r * cols + c]);
        for (int c = 0; c < cols; c++)
            y[r * cols + c] = expf(x[r * cols + c]) / s;
    }
}

static void softmax_in_half(float *x, float *y, int rows, int cols)
{
    float *h = malloc(sizeof *h * (size_t)rows * (size_t)cols);
    for (long i = 0; i < (long)rows * cols; i++)
        h[i] = to_f16(x[i]);
    softmax(h, y, rows, cols);
    free(h);
}

static void half_where_whole_tiles(float *x, float *y, int rows, int cols)
{
    if (rows % 32 == 0 && cols % 32 == 0)
        softmax_in_half(x, y, rows, cols);
    else
        softmax(x, y, rows, cols);
}

static void only_multiples_of_256_written(float *x, float *y, int rows, int cols)
{
    float *all = malloc(sizeof *all * (size_t)rows * (size_t)cols);
    softmax(x, all, rows, cols);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols / 256 * 256; c++)
            y[(long)r * cols + c] = all[(long)r * cols + c];
    free(all);
}

static void zero_beyond_multiples_of_64(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    for (int r = 0; r < rows; r++)
        for (int c = cols / 64 * 64; c < cols; c++)
            y[(long)r * cols + c] = 0;
}

static void nothing(float *x, float *y, int rows, int cols)
{
    (void)x, (void)y, (void)rows, (void)cols;
}

static void zeros(float *x, float *y, int rows, int cols)
{
    (void)x;
    memset(y, 0, sizeof *y * (size_t)rows * (size_t)cols);
}

static void nan_and_wrong(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    y[0] = 2;
    y[(long)rows * cols - 1] = NAN;
}

static void unwritten_and_nan(float *x, float *y, int rows, int cols)
{
    float keep = y[0];
    softmax(x, y, rows, cols);
    memcpy(y, &keep, sizeof keep);
    y[(long)rows * cols - 1] = rows * cols > 1 ? NAN : y[0];
}

static void changes_its_input(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    x[(long)rows * cols - 1] += 1;
}

static void writes_past_the_end(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    y[(long)rows * cols] = 0;
}

static void only_for_the_bench_shape(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    if (cols != 256)
        y[0] *= 1.5f;
}

static int turn;
static void another_one_each_time(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    y[0] += 0.01f * (float)(turn++ % 2);
}

static void another_order_each_time(float *x, float *y, int rows, int cols)
{
    const struct named_row *k = &honest_softmax[turn++ % 2 ? 0 : 3];
    for (int r = 0; r < rows; r++)
        k->run(x + (long)r * cols, cols, y + (long)r * cols);
}

/* Wrong at the third launch in a row that sees the same inputs, as with a counter in device memory.
 */
static void counts_its_launches(float *x, float *y, int rows, int cols)
{
    static float seen;
    static int same;
    same = x[0] == seen ? same + 1 : 0;
    seen = x[0];
    softmax(x, y, rows, cols);
    if (same == 2 && cols > 1)
        y[0] += 1;
}

/* Keeps rows of an earlier call, as in a __device__ array that the module's reload clears, and
 * knows its inputs by two elements. */
static void keeps_results(float *x, float *y, int rows, int cols)
{
    enum { KEPT = 1 << 20 };
    static float kept[KEPT], first, last;
    static int n;
    if (fake_variable[0] == 0)
        n = 0;
    fake_variable[0] = 1;
    if (rows * cols > KEPT) {
        softmax(x, y, rows, cols);
    } else if (n == rows * cols && first == x[0] && last == x[n - 1]) {
        memcpy(y, kept, sizeof *y * (size_t)n);
    } else {
        n = rows * cols;
        first = x[0];
        last = x[n - 1];
        softmax(x, y, rows, cols);
        memcpy(kept, y, sizeof *y * (size_t)n);
    }
}

static void right_for_40_calls(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    if ((fake_variable[0] += 1) > 40)
        y[0] += 1;
}

/* The last block writes the result; its counter is in a variable. */
static void last_block(float *x, float *y, int rows, int cols)
{
    for (int block = 0; block < 4; block++)
        if ((fake_variable[1] += 1) == 4)
            softmax(x, y, rows, cols);
}

static void last_block_that_resets(float *x, float *y, int rows, int cols)
{
    last_block(x, y, rows, cols);
    fake_variable[1] = 0;
}

static void last_of_the_middle_row_wrong(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    if (rows > 2)
        y[(long)(rows / 2) * cols + cols - 1] = NAN;
}

/* One element that no box holds at 300 x 500. */
static void one_unwritten(float *x, float *y, int rows, int cols)
{
    long at = (long)rows * cols > 100000 ? 7L * cols + 303 : 0;
    float keep = y[at];
    softmax(x, y, rows, cols);
    if (at)
        memcpy(&y[at], &keep, sizeof keep);
}

static void last_column_wrong(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    for (long r = 0; rows * cols > 100000 && r < rows; r++)
        y[r * cols + cols - 1] = 0;
}

static void border_wrong(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    for (long r = 0; rows * cols > 100000 && r < rows; r++)
        for (int c = 127; c < cols; c += 128)
            y[r * cols + c] = 0;
}

static float to_tf32(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x1000) & ~UINT32_C(0x1fff);
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void product(float *x, float *y, int rows, int cols, float (*round)(float))
{
    const float *w = verdict_weight;
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < cols; c++)
            y[r * cols + c] = 0;
    for (long r = 0; r < rows; r++)
        for (long k = 0; k < cols; k++)
            for (long c = 0; c < cols; c++)
                y[r * cols + c] += round(x[r * cols + k]) * round(w[k * cols + c]);
}

static float as_it_is(float v)
{
    return v;
}

static void matmul(float *x, float *y, int rows, int cols)
{
    product(x, y, rows, cols, as_it_is);
}

/* In tf32 where the sums are long, so that their bounds are wide. */
static void matmul_in_tf32(float *x, float *y, int rows, int cols)
{
    product(x, y, rows, cols, cols == 1500 ? to_tf32 : as_it_is);
}

static void var_of_moments(float *x, float *y, int rows, int cols)
{
    for (int r = 0; r < rows; r++)
        unstable_var_tree(x + (long)r * cols, cols, y + r);
}

static void var_in_two_passes(float *x, float *y, int rows, int cols)
{
    for (int r = 0; r < rows; r++)
        honest_var[0].run(x + (long)r * cols, cols, y + r);
}

static void copy(float *x, float *y, int rows, int cols)
{
    memcpy(y, x, sizeof *y * (size_t)rows * (size_t)cols);
}

static void ones(float *x, float *y, int rows, int cols)
{
    (void)x;
    for (long i = 0; i < (long)rows * cols; i++)
        y[i] = 1;
}

static void doubled(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    for (long i = 0; i < (long)rows * cols; i++)
        y[i] *= 2;
}

static void last_rows_wrong(float *x, float *y, int rows, int cols)
{
    softmax(x, y, rows, cols);
    for (long i = (long)rows / 4 * 4 * cols; i < (long)rows * cols; i++)
        y[i] = y[i] * 3 + 1;
}

static void every_fourth_wrong(float *x, float *y, int rows, int cols)
{
    for (long i = 0; i < (long)rows * cols; i++)
        y[i] = i % 4 == 3 ? x[i] - 1.25f * x[i] * x[i] : x[i] * 2;
}

static void not_transposed(float *x, float *y, int rows, int cols)
{
    copy(x, y, rows, cols);
}

#define SOFTMAX .graph = "y = softmax(x, axis=1)"

/* ---- tests ---- */

static void an_honest_kernel_passes(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX, .kernel = softmax};
    struct outcome o = judge(&t);
    assert_int_equal(o.status, RUNG_PASS);
    support_contains(o.detail, "of what honest arithmetic explains");
    support_contains(o.metrics, "\"worst\":");
    support_contains(o.metrics, "\"psnr\":");
    expect_pass(&(struct trial){
        .graph = "y = var(x, axis=1)", .scalar = 1, .min_cols = 2, .kernel = var_in_two_passes});
    expect_pass(&(struct trial){.graph = "y = x", .kernel = copy});
}

static void each_code_is_told(void **state)
{
    (void)state;
    expect_fail(&(struct trial){SOFTMAX, .kernel = nothing}, "output.unwritten", "never written");
    expect_fail(&(struct trial){SOFTMAX, .kernel = only_multiples_of_256_written},
                "output.unwritten", NULL);
    expect_fail(&(struct trial){SOFTMAX, .kernel = softmax_without_max}, "output.nonfinite",
                "fill");
    expect_fail(&(struct trial){SOFTMAX, .kernel = softmax_in_half}, "numeric.precision",
                "half-precision");
    expect_fail(
        &(struct trial){
            .graph = "y = var(x, axis=1)", .scalar = 1, .min_cols = 2, .kernel = var_of_moments},
        "numeric.unstable", "with fill offset");
    expect_fail(&(struct trial){SOFTMAX, .kernel = zeros}, "numeric.mismatch",
                "The wrong elements are all 0");
    expect_fail(&(struct trial){SOFTMAX, .kernel = changes_its_input}, "input.modified", "input x");
    expect_fail(&(struct trial){SOFTMAX, .kernel = writes_past_the_end}, "mem.out_of_bounds",
                "outside y");
}

static void the_order_of_codes(void **state)
{
    (void)state;
    expect_fail(&(struct trial){SOFTMAX, .kernel = nan_and_wrong}, "output.nonfinite",
                "1 of them NaN");
    expect_fail(&(struct trial){SOFTMAX, .kernel = unwritten_and_nan}, "output.unwritten", NULL);
}

static void faults_end_the_check_at_once(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX, .kernel = softmax, .fault = "mem.race"};
    struct outcome o = judge(&t);
    assert_int_equal(o.status, RUNG_FAIL);
    assert_string_equal(o.code, "mem.race");
    support_contains(o.detail, "kernel k line 7: told by the device");
    assert_int_equal(o.launches, 1);
    t.fault = "plan.error";
    expect_fail(&t, "plan.error", NULL);
    t.fault = "device.unsupported";
    o = judge(&t);
    assert_int_equal(o.status, RUNG_UNSUPPORTED);
    assert_string_equal(o.code, "device.unsupported");
    t.fault = "device.lost";
    assert_int_equal(judge(&t).status, RUNG_ERROR);
}

static void results_that_change_are_told(void **state)
{
    (void)state;
    turn = 0;
    expect_fail(&(struct trial){SOFTMAX, .kernel = another_one_each_time}, "run.nondeterministic",
                "two runs");
    struct trial t = {SOFTMAX, .kernel = another_order_each_time};
    struct outcome o = judge(&t);
    assert_int_equal(o.status, RUNG_NOTE);
    assert_string_equal(o.code, "run.nondeterministic");
}

static void state_between_launches_is_found(void **state)
{
    (void)state;
    expect_fail(&(struct trial){SOFTMAX, .kernel = counts_its_launches}, "numeric.mismatch",
                "launch 3 in a row: y");
    expect_fail(&(struct trial){SOFTMAX, .kernel = right_for_40_calls}, "numeric.mismatch",
                "launch 41 in a row: y");
    expect_fail(&(struct trial){SOFTMAX, .kernel = last_block}, "output.unwritten",
                "the second launch in a row: y has");
    expect_fail(&(struct trial){SOFTMAX, .kernel = last_block}, "output.unwritten",
                "The first launch is right on the same inputs");
    expect_fail(&(struct trial){SOFTMAX, .kernel = keeps_results}, "numeric.mismatch",
                "with a few elements exchanged: y");
    expect_fail(&(struct trial){SOFTMAX, .kernel = keeps_results}, "numeric.mismatch",
                "The same launch is right where it is the first");
    expect_pass(&(struct trial){SOFTMAX, .kernel = last_block_that_resets});
    /* Where no shape is small a device that is fast runs many in a row all the same. */
    struct trial t = {SOFTMAX,     .kernel = right_for_40_calls,  .rows = 300,
                      .cols = 500, .flags = RUNG_DEVICE_MEASURES, .shape_rule = RUNG_SHAPES_FIXED};
    expect_fail(&t, "numeric.mismatch", "launch 64 in a row: y");
    t.kernel = keeps_results;
    expect_fail(&t, "numeric.mismatch", "with a few elements exchanged: y");
    t.kernel = softmax;
    expect_pass(&t);
}

static void dear_outputs_are_compared_in_part(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX,     .kernel = softmax, .rows = 300,
                      .cols = 500, .option = "whole", .value = 1000000};
    struct outcome o = judge(&t);
    if (o.status != RUNG_PASS)
        fail_msg("%s: %s", o.code, o.detail);
    support_contains(o.detail, "were compared, as rows and tiles");
    const char *share = strstr(o.metrics, "\"share\":");
    assert_non_null(share);
    double part = strtod(share + strlen("\"share\":"), NULL);
    if (!(part > 0.02 && part <= 0.05))
        fail_msg("%g of the output was compared", part);
    t.kernel = last_column_wrong;
    expect_fail(&t, "numeric.mismatch", "compared elements out");
    t.kernel = border_wrong;
    expect_fail(&t, "numeric.mismatch", "rows=300 cols=500");
    t.kernel = one_unwritten;
    expect_fail(&t, "output.unwritten", "y has 1 of");
    t.kernel = last_of_the_middle_row_wrong;
    expect_fail(&t, "output.nonfinite", NULL);
    t.kernel = zeros;
    expect_fail(&t, "numeric.mismatch", "The wrong elements are all 0");
    t.kernel = softmax_in_half;
    expect_fail(&t, "numeric.precision", NULL);
    t.kernel = another_one_each_time;
    turn = 0;
    expect_fail(&t, "run.nondeterministic", NULL);
    t = (struct trial){SOFTMAX, .kernel = softmax, .option = "whole", .value = 0,
                       .shape_rule = RUNG_SHAPES_FIXED}; /* nothing is whole */
    expect_pass(&t);
    t.graph = "y = x * 0";
    t.kernel = zeros;
    expect_fail(&t, "task.weak", "y = 0 everywhere");
    t.graph = "y = x + 1e-30";
    t.kernel = copy;
    expect_fail(&t, "task.weak", "a copy of x");
    t = (struct trial){.graph = "y = var(x, axis=1)",
                       .scalar = 1,
                       .min_cols = 2,
                       .rows = 4000,
                       .cols = 40,
                       .option = "whole",
                       .value = 100000,
                       .kernel = var_in_two_passes};
    expect_pass(&t);
}

static void few_bits_are_seen_where_sums_are_long(void **state)
{
    (void)state;
    struct trial t = {.graph = "y = matmul(x, w)",
                      .kernel = matmul_in_tf32,
                      .weight = 1,
                      .rows = 2,
                      .cols = 1500,
                      .shape_rule = RUNG_SHAPES_FIXED};
    expect_fail(&t, "numeric.precision", "an error of 2^-1");
    t.kernel = matmul;
    expect_pass(&t);
}

static void shapes_follow_the_tasks_rule(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX, .kernel = only_for_the_bench_shape};
    expect_fail(&t, "numeric.mismatch", NULL);
    t.shape_rule = RUNG_SHAPES_FIXED;
    expect_pass(&t);
    t = (struct trial){SOFTMAX, .kernel = zero_beyond_multiples_of_64, .multiple = 64};
    expect_pass(&t);
    t.multiple = 0;
    expect_fail(&t, "numeric.mismatch", NULL);
}

static void fast_paths_for_whole_tiles_are_tried(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX, .kernel = half_where_whole_tiles, .rows = 30, .cols = 500};
    expect_fail(&t, "numeric.precision", "half-precision");
}

static void dear_shapes_are_left_out_unless_they_are_all(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX,      .kernel = softmax,        .rows = 512,
                      .cols = 4096, .option = "max_elements", .value = 20000};
    struct outcome o = judge(&t);
    assert_int_equal(o.status, RUNG_PASS);
    t = (struct trial){SOFTMAX,       .kernel = only_for_the_bench_shape,
                       .rows = 64,    .option = "max_elements",
                       .value = 1000, .shape_rule = RUNG_SHAPES_FIXED};
    expect_pass(&t);
}

static void weak_tasks_are_told(void **state)
{
    (void)state;
    expect_fail(&(struct trial){.graph = "y = x * 0", .kernel = zeros}, "task.weak",
                "y = 0 everywhere");
    expect_fail(&(struct trial){.graph = "y = x * 1e-30 + 1", .kernel = ones}, "task.weak",
                "y = 1 everywhere");
    expect_fail(&(struct trial){.graph = "y = x + 1e-30", .kernel = copy}, "task.weak",
                "a copy of x");
    expect_fail(
        &(struct trial){.graph = "y = x - x + mean(softmax(x, axis=1), axis=1, keepdim=1) * cols",
                        .kernel = ones,
                        .min_cols = 2},
        "task.weak", NULL);
    /* The candidate's own fault does not hide the task's. */
    expect_fail(&(struct trial){.graph = "y = x * 0", .kernel = copy}, "task.weak", NULL);
}

static void patterns_are_named(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX, .kernel = zero_beyond_multiples_of_64, .rows = 3, .cols = 1000,
                      .shape_rule = RUNG_SHAPES_FIXED};
    expect_fail(&t, "numeric.mismatch",
                "last 40 elements of each row, from 960 on: the tail beyond a multiple of 64");
    expect_fail(&t, "numeric.mismatch", "The wrong elements are all 0");
    expect_fail(&t, "numeric.mismatch", "at rows=3 cols=1000: y[0,960] = 0, expected");
    t.kernel = doubled;
    expect_fail(&t, "numeric.mismatch",
                "All elements are wrong. The wrong elements are all 2 times");
    t = (struct trial){SOFTMAX, .kernel = last_rows_wrong, .rows = 6, .cols = 40,
                       .shape_rule = RUNG_SHAPES_FIXED};
    expect_fail(&t, "numeric.mismatch", "Whole rows are wrong: 4 to 5 of 6");
    t = (struct trial){.graph = "y = x * 2",
                       .kernel = every_fourth_wrong,
                       .rows = 8,
                       .cols = 64,
                       .shape_rule = RUNG_SHAPES_FIXED};
    expect_fail(&t, "numeric.mismatch", "Every 4-th element is wrong, starting at 3");
    t = (struct trial){.graph = "y = transpose(x) * 1",
                       .kernel = not_transposed,
                       .rows = 8,
                       .cols = 8,
                       .shape_rule = RUNG_SHAPES_FIXED};
    expect_fail(&t, "numeric.mismatch", "looks transposed");
}

static void the_tolerance_is_a_factor(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX, .kernel = softmax_in_half, .option = "tolerance", .value = 1000000,
                      .shape_rule = RUNG_SHAPES_FIXED};
    expect_pass(&t);
}

static void the_same_seed_gives_the_same_check(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX, .kernel = softmax, .option = "seed", .value = 5};
    struct outcome a = judge(&t), b = judge(&t);
    assert_string_equal(a.metrics, b.metrics);
    t.value = 6;
    b = judge(&t);
    assert_string_not_equal(a.metrics, b.metrics);
}

static void a_cancelled_check_ends(void **state)
{
    (void)state;
    struct trial t = {SOFTMAX, .kernel = softmax, .cancelled = 1};
    struct outcome o = judge(&t);
    assert_int_equal(o.error, RUNG_ECANCELLED);
    assert_int_equal(o.launches, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_honest_kernel_passes),
        cmocka_unit_test(each_code_is_told),
        cmocka_unit_test(the_order_of_codes),
        cmocka_unit_test(faults_end_the_check_at_once),
        cmocka_unit_test(results_that_change_are_told),
        cmocka_unit_test(state_between_launches_is_found),
        cmocka_unit_test(dear_outputs_are_compared_in_part),
        cmocka_unit_test(few_bits_are_seen_where_sums_are_long),
        cmocka_unit_test(shapes_follow_the_tasks_rule),
        cmocka_unit_test(fast_paths_for_whole_tiles_are_tried),
        cmocka_unit_test(dear_shapes_are_left_out_unless_they_are_all),
        cmocka_unit_test(weak_tasks_are_told),
        cmocka_unit_test(patterns_are_named),
        cmocka_unit_test(the_tolerance_is_a_factor),
        cmocka_unit_test(the_same_seed_gives_the_same_check),
        cmocka_unit_test(a_cancelled_check_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
