/* Plans at dims and points: launches, limits, and properties over many random dims. */
#include "task/task_common.h"

#include "base/philox.h"
#include "task/plan.h"

#include <string.h>

static struct rung_arena *arena;
static const struct rung_task *task;

static int setup(void **state)
{
    (void)state;
    arena = rung_arena_new();
    task = softmax_task(arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rung_arena_free(arena);
    return 0;
}

static const struct rung_plan *parse(const char *source)
{
    const char *problem;
    const struct rung_plan *p =
        rung_plan_parse(arena, task, "k.cu", rung_text_of(source), &problem);
    if (!p)
        fail_msg("%s", problem);
    return p;
}

static const struct rung_resolved_plan *resolve(const char *source, int64_t rows, int64_t cols,
                                                const char **problem)
{
    const struct rung_plan *p = parse(source);
    struct rung_point point = rung_plan_default_point(p);
    int64_t dims[3] = {rows, cols, cols / 4};
    return rung_plan_resolve(arena, p, task, dims, &point, 132, problem);
}

static void everything_is_evaluated(void **state)
{
    (void)state;
    const char *problem;
    const struct rung_resolved_plan *r =
        resolve("//@ tune T = 128, 256\n//@ temp part f16 [rows * 2]\n//@ zero part\n"
                "//@ launch a<T> grid=(ceil_div(rows, T), 2) block=(T, 2) shared=T*4 \\\n"
                "//@   args=(x, y + cols, part + rows, rows, scale / 2, shift, sm_count)\n"
                "//@ launch b grid=(rows / T) block=(32) args=(x)\n"
                "//@ launch c grid=(1) block=(32) args=(x) when=(cols > 1000)\n",
                100, 64, &problem);
    if (!r)
        fail_msg("%s", problem);
    assert_int_equal(r->temp_elements[0], 200);
    assert_int_equal(r->n_steps, 2); /* b has no blocks, c's condition is false */
    assert_int_equal(r->steps[0].kind, RUNG_STEP_SET);
    const struct rung_resolved_step *s = &r->steps[1];
    assert_string_equal(s->expression, "a<128>");
    assert_int_equal(s->grid.x, 1);
    assert_int_equal(s->grid.y, 2);
    assert_int_equal(s->grid.z, 1);
    assert_int_equal(s->block.y, 2);
    assert_int_equal(s->shared, 512);
    assert_int_equal(s->args[1].i, 64);
    assert_int_equal(s->args[2].i, 100);
    assert_int_equal(s->args[3].i, 100);
    assert_true(s->args[4].f == 0.75);
    assert_int_equal(s->args[5].i, 3);
    assert_int_equal(s->args[6].i, 132);
}

static void symbols_and_clusters_are_evaluated(void **state)
{
    (void)state;
    const char *problem;
    const struct rung_resolved_plan *r =
        resolve("//@ temp t f16 [rows]\n//@ symbol c = t\n//@ symbol c = x + cols count 8\n"
                "//@ symbol d = t when=(rows < 0)\n"
                "//@ launch k grid=(rows, 4) block=(32) cluster=(2, 4) cooperative args=()\n"
                "//@ launch k grid=(rows - 100) block=(32) cluster=(2) args=()\n",
                100, 64, &problem);
    if (!r)
        fail_msg("%s", problem);
    assert_int_equal(r->n_steps, 3);
    assert_int_equal(r->steps[0].kind, RUNG_STEP_SYMBOL);
    assert_string_equal(r->steps[0].symbol, "c");
    assert_int_equal(r->steps[0].count, 100);
    assert_int_equal(r->steps[1].offset, 64);
    assert_int_equal(r->steps[1].count, 8);
    assert_int_equal(r->steps[1].target_kind, RUNG_ARG_TENSOR);
    assert_int_equal(r->steps[2].cluster.x, 2);
    assert_int_equal(r->steps[2].cluster.y, 4);
    assert_int_equal(r->steps[2].cluster.z, 1);
    assert_int_equal(r->steps[2].flags, RUNG_STEP_COOPERATIVE);
    r = resolve("//@ launch k grid=(rows) block=(32) args=()\n", 100, 64, &problem);
    assert_int_equal(r->steps[0].cluster.x + r->steps[0].cluster.y + r->steps[0].cluster.z, 0);
}

static void tensormaps_are_evaluated_where_a_launch_takes_them(void **state)
{
    (void)state;
    const char *problem;
    const struct rung_resolved_plan *r =
        resolve("//@ tune T = 8, 16\n//@ temp t f16 [rows * 64]\n"
                "//@ tensormap a = x box=(T * 4, 8)\n"
                "//@ tensormap unused = x box=(1 / (rows - 100), 1)\n"
                "//@ tensormap b = t + 16 dims=(32, rows / 2, 2) strides=(64, cols * 2) \\\n"
                "//@   box=(T, 4, 1) elements=(1, 2, 1) swizzle=T * 4 l2=128 oob=nan\n"
                "//@ launch k grid=(1) block=(1) args=(unused) when=(rows < 0)\n"
                "//@ launch k grid=(1) block=(1) args=(b, x, b)\n"
                "//@ launch k grid=(1) block=(1) args=(a, rows)\n",
                100, 64, &problem);
    if (!r)
        fail_msg("%s", problem);
    assert_int_equal(r->n_steps, 2);
    assert_int_equal(r->n_maps, 2);
    const struct rung_resolved_map *b = &r->maps[0], *a = &r->maps[1];
    assert_int_equal(r->steps[0].args[0].kind, RUNG_ARG_TENSORMAP);
    assert_int_equal(r->steps[0].args[0].index, 2); /* the plan's number */
    assert_int_equal(r->steps[1].args[0].index, 0);
    assert_int_equal(b->index, 2);
    assert_int_equal(b->line, 5);
    assert_int_equal(b->target_kind, RUNG_ARG_TEMP);
    assert_int_equal(b->offset, 32);
    assert_int_equal(b->map.dtype, RUNG_F16);
    assert_int_equal(b->map.n_dims, 3);
    assert_int_equal(b->map.dims[1], 50);
    assert_int_equal(b->map.strides[1], 64);
    assert_int_equal(b->map.strides[2], 128);
    assert_int_equal(b->map.box[0], 8);
    assert_int_equal(b->map.elements[0], 1);
    assert_int_equal(b->map.elements[1], 2);
    assert_int_equal(b->map.swizzle, 32);
    assert_int_equal(b->map.l2_promotion, 128);
    assert_int_equal(b->map.fill_nan, 1);
    assert_int_equal(b->map.address, 0);
    assert_int_equal(a->index, 0);
    assert_int_equal(a->target_kind, RUNG_ARG_TENSOR);
    assert_int_equal(a->map.dims[0], 64); /* the last axis is the fastest */
    assert_int_equal(a->map.dims[1], 100);
    assert_int_equal(a->map.strides[1], 256);
    assert_int_equal(a->map.box[0], 32);
    assert_int_equal(a->map.elements[1], 1);
    assert_int_equal(a->map.swizzle, 0);
}

/* A tensor with strides is as long as its extent, and a map of it has its strides. */
static void strides_count(void **state)
{
    static const char map[] = "//@ tensormap m = x box=(4, 4)\n"
                              "//@ launch k grid=(1) block=(1) args=(m, x + rows * 68 - 4)\n";
    const char *problem, *faults;
    (void)state;
    task = task_of_json(arena,
                        softmax_with(arena, "\"role\": \"input\"",
                                     "\"role\": \"input\", \"strides\": \"cols + 4, 1\""),
                        &faults);
    assert_non_null(task);
    const struct rung_resolved_plan *r = resolve(map, 100, 64, &problem);
    if (!r)
        fail_msg("%s", problem);
    assert_int_equal(r->maps[0].map.dims[0], 64);
    assert_int_equal(r->maps[0].map.strides[1], 68 * 4);
    assert_null(
        resolve("//@ launch k grid=(1) block=(1) args=(x + rows * 68 - 3)\n", 100, 64, &problem));
    support_contains(problem, "outside the 6796 elements");
    r = resolve("//@ tensormap m = x dims=(cols, 2) box=(4, 4)\n"
                "//@ launch k grid=(1) block=(1) args=(m)\n",
                100, 64, &problem);
    assert_non_null(r);
    assert_int_equal(r->maps[0].map.strides[1], 64 * 4); /* another view: dense */
    task = task_of_json(
        arena,
        softmax_with(arena, "\"role\": \"input\"", "\"role\": \"input\", \"strides\": \"1, rows\""),
        &faults);
    assert_non_null(task);
    assert_null(resolve("//@ tensormap m = x box=(4, 4)\n"
                        "//@ launch k grid=(1) block=(1) args=(m)\n",
                        100, 64, &problem));
    support_contains(problem, "last axis lie 100 apart");
}

static void limits_are_told_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *source, *want;
    } cases[] = {
        {"\n//@ launch k grid=(rows - 101) block=(1) args=(x)\n",
         "line 2: grid.x = \"rows - 101\" is -1"},
        {"//@ launch k grid=(2147483648) block=(1) args=(x)\n", "2147483647"},
        {"//@ launch k grid=(1, 65536) block=(1) args=(x)\n", "65535"},
        {"//@ launch k grid=(1) block=(0) args=(x)\n", "1 to 1024"},
        {"//@ launch k grid=(1) block=(64, 32) args=(x)\n", "2048 threads"},
        {"//@ launch k grid=(1) block=(1, 1, 65) args=(x)\n", "block.z"},
        {"//@ launch k grid=(1) block=(1025) args=(x)\n", "block.x"},
        {"//@ launch k grid=(1) block=(1) shared=0-1 args=(x)\n", "shared is -1"},
        {"//@ launch k grid=(1) block=(1) shared=99999999999 args=(x)\n", "2^24"},
        {"//@ launch k grid=(1 / (rows - 100)) block=(1) args=(x)\n",
         "line 1: grid \"1 / (rows - 100)\""},
        {"//@ launch k grid=(1) block=(1) args=(1 / (rows - 100))\n", "division by zero"},
        {"//@ launch k grid=(1) block=(1) args=(x + 6401)\n", "outside the 6400 elements"},
        {"//@ launch k grid=(1) block=(1) args=(x + (0 - 1))\n", "outside the 6400 elements"},
        {"//@ launch k grid=(1) block=(1) args=(x) when=(1 / (rows - 100))\n", "when"},
        {"//@ temp t f32 [0 - rows]\n//@ launch k grid=(1) block=(1) args=(x)\n",
         "can't be negative"},
        {"//@ temp t f32 [rows * 1000000000]\n//@ launch k grid=(1) block=(1) args=(x)\n",
         "2^38 bytes"},
        {"//@ temp t f64 [9223372036854775807]\n//@ launch k grid=(1) block=(1) args=(x)\n",
         "2^38 bytes"},
        {"//@ launch k grid=(16) block=(1) cluster=(0) args=(x)\n", "has 0 blocks"},
        {"//@ launch k grid=(32) block=(1) cluster=(32) args=(x)\n", "cluster.x"},
        {"//@ launch k grid=(32, 2) block=(1) cluster=(16, 2) args=(x)\n", "has 32 blocks"},
        {"//@ launch k grid=(rows + 1) block=(1) cluster=(2) args=(x)\n",
         "the grid (101, 1, 1) is no multiple of the cluster (2, 1, 1)"},
        {"//@ symbol c = x + 6401\n//@ launch k grid=(1) block=(1) args=(x)\n",
         "symbol c: offset \"6401\" is 6401, outside the 6400 elements"},
        {"//@ symbol c = x + (0 - 1)\n//@ launch k grid=(1) block=(1) args=(x)\n", "outside"},
        {"//@ symbol c = x + 6400 count 1\n//@ launch k grid=(1) block=(1) args=(x)\n",
         "count \"1\" is 1, but 0 of the 6400"},
        {"//@ symbol c = x count 0 - 1\n//@ launch k grid=(1) block=(1) args=(x)\n", "is -1"},
        {"//@ symbol c = x count 1 / (rows - 100)\n//@ launch k grid=(1) block=(1) args=(x)\n",
         "line 1: count \"1 / (rows - 100)\""},
        {"//@ tune T = 0\n//@ launch k<1 / T> grid=(1) block=(1) args=(x)\n", "template argument"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *problem = NULL;
        if (resolve(cases[i].source, 100, 64, &problem))
            fail_msg("accepted: %s", cases[i].source);
        assert_memory_equal(problem, "line ", 5);
        support_contains(problem, cases[i].want);
    }
}

#define MAP(keys) "//@ tensormap m = x " keys "\n//@ launch k grid=(1) block=(1) args=(m)\n"

static void a_tensormap_lies_in_its_tensor(void **state)
{
    (void)state;
    static const struct {
        const char *source, *want;
    } cases[] = {
        {MAP("box=(rows - 101, 1)"), "line 1: tensormap m: box \"rows - 101\" is -1"},
        {MAP("box=(1, 2147483648)"), "box \"2147483648\""},
        {MAP("box=(4 / (rows - 100), 1)"), "division by zero"},
        {MAP("box=(4, 4) elements=(1, 0-1)"), "elements \"0-1\" is -1"},
        {MAP("box=(4, 4) swizzle=0-1"), "swizzle \"0-1\" is -1"},
        {MAP("box=(4, 4) l2=0-1"), "l2 \"0-1\" is -1"},
        {MAP("box=(4, 4) strides=(0-16)"), "strides \"0-16\" is -16"},
        {MAP("box=(4, 4) dims=(cols, 0-1)"), "dims \"0-1\" is -1"},
        {MAP("box=(4, 4) dims=(cols, rows + 1)"),
         "reach 25856 bytes far, but 25600 are there: tiles may lie partly outside, dims not"},
        {MAP("box=(4, 4) dims=(cols, rows) strides=(cols * 4 + 16)"), "bytes far"},
        {MAP("box=(4) dims=(6401)"), "reach 25604 bytes far"},
        {MAP("box=(4, 4) dims=(4611686018427387904, 2)"), "its dims pass 2^63 bytes"},
        {MAP("box=(4, 4) dims=(2, 4611686018427387904) strides=(16)"), "reach beyond"},
        {"//@ tensormap m = x + 6401 dims=(1) box=(4)\n"
         "//@ launch k grid=(1) block=(1) args=(m)\n",
         "offset \"6401\" is 6401, but it must lie between 0 and 6400"},
        {"//@ tensormap m = x + 6400 dims=(1) box=(4)\n"
         "//@ launch k grid=(1) block=(1) args=(m)\n",
         "reach 25604 bytes far, but 25600 are there"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *problem = NULL;
        if (resolve(cases[i].source, 100, 64, &problem))
            fail_msg("accepted: %s", cases[i].source);
        assert_memory_equal(problem, "line 1: ", 8);
        support_contains(problem, cases[i].want);
    }
}

/* For random dims and points: what is resolved always obeys CUDA's limits and the plan's own rules.
 */
static void resolved_launches_obey_the_limits(void **state)
{
    (void)state;
    const struct rung_plan *p =
        parse("//@ tune T = 1, 32, 1024, 4096\n//@ tune V = 1, 4\n//@ temp t f32 [rows * V - 3]\n"
              "//@ launch k<T, V> grid=(rows * V - 5, cols % 7) block=(T) args=(x + cols, t, rows "
              "* cols)\n");
    uint32_t words[4], accepted = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        struct rung_arena *a = rung_arena_new();
        rung_philox4(1, 2, i, words);
        int64_t dims[3] = {(int64_t)(words[0] >> (words[1] % 32)), 4 * (int64_t)(words[2] % 5000)};
        dims[2] = dims[1] / 4;
        struct rung_point point = rung_plan_point(p, words[3] % 8);
        const char *problem;
        const struct rung_resolved_plan *r =
            rung_plan_resolve(a, p, task, dims, &point, 1, &problem);
        assert_true((r == NULL) == (problem != NULL));
        bool fits = dims[0] * point.values[1] >= 5 && point.values[0] <= 1024 &&
                    dims[0] * point.values[1] - 5 <= INT32_MAX &&
                    dims[0] * dims[1] <= INT64_C(1) << 40;
        if (fits && dims[0] >= 1 && dims[1] % 7 != 0)
            assert_non_null(r);
        if (r && r->n_steps) {
            accepted++;
            assert_true(r->steps[0].grid.x > 0 && r->steps[0].grid.y > 0 &&
                        r->steps[0].grid.z == 1);
            assert_true(r->steps[0].block.x <= 1024);
            assert_int_equal(r->steps[0].args[2].i, dims[0] * dims[1]);
            assert_int_equal(r->temp_elements[0], dims[0] * point.values[1] - 3);
        }
        rung_arena_free(a);
    }
    assert_true(accepted > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_is_evaluated, setup, teardown),
        cmocka_unit_test_setup_teardown(symbols_and_clusters_are_evaluated, setup, teardown),
        cmocka_unit_test_setup_teardown(tensormaps_are_evaluated_where_a_launch_takes_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(strides_count, setup, teardown),
        cmocka_unit_test_setup_teardown(limits_are_told_with_their_line, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tensormap_lies_in_its_tensor, setup, teardown),
        cmocka_unit_test_setup_teardown(resolved_launches_obey_the_limits, setup, teardown),
    };
    return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
