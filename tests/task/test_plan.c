/* Plan lines: what right ones become, and what wrong ones say. */
#include "task/task_common.h"

#include "task/plan.h"
#include <rung/host.h>

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

static const char full[] =
    "// a kernel\n"
    "  //@ tune   TPB = 128, 256, 512   // threads\n"
    "//@ tune VEC={1,4}\r\n"
    "//@ where  TPB <= cols and cols % VEC == 0\n"
    "//@ temp   partial f32 [rows, 2]\n"
    "//@ zero   partial, y\n"
    "template <int T> __global__ void softmax_rows(const float *x) {}\n"
    "//@ launch ns::softmax_rows<TPB, float, VEC*2> grid=(rows, 2) block=(TPB) \\\n"
    "//@   shared=TPB*sizeof(float) args=(x, y + cols*2, partial, cols, scale, 1.0f) \\\n"
    "//@   when=(cols % 4 == 0)\n"
    "//@ launch tail grid=ceil_div(rows, TPB) block=TPB, args=(x, y)\n";

static const struct rung_plan *parse(const char *source, const char **problem)
{
    return rung_plan_parse(arena, task, "k.cu", rung_text_of(source), problem);
}

static void a_right_plan_is_read_whole(void **state)
{
    (void)state;
    const char *problem;
    const struct rung_plan *p = parse(full, &problem);
    if (!p)
        fail_msg("%s", problem);
    assert_int_equal(p->n_tunes, 2);
    assert_int_equal(p->tunes[0].values[2], 512);
    assert_int_equal(p->n_where, 1);
    assert_int_equal(p->where[0].line, 4);
    assert_int_equal(p->n_temps, 1);
    assert_string_equal(p->temps[0].count.text, "(rows) * (2)");
    assert_int_equal(p->n_steps, 4);
    assert_int_equal(p->steps[0].kind, RUNG_STEP_SET);
    assert_int_equal(p->steps[0].target_kind, RUNG_ARG_TEMP);
    assert_int_equal(p->steps[1].target_kind, RUNG_ARG_TENSOR);
    assert_int_equal(p->steps[1].target_index, 1);
    const struct rung_step *s = &p->steps[2];
    assert_int_equal(s->line, 8);
    assert_string_equal(s->kernel, "ns::softmax_rows");
    assert_int_equal(s->n_template_args, 3);
    assert_string_equal(s->template_args[1].text, "float");
    assert_string_equal(s->grid[1].text, "2");
    assert_null(s->grid[2].text);
    assert_string_equal(s->shared.text, "TPB*sizeof(float)");
    assert_string_equal(s->when.text, "(cols % 4 == 0)");
    assert_int_equal(s->n_args, 6);
    static const uint32_t kinds[] = {RUNG_ARG_TENSOR, RUNG_ARG_TENSOR, RUNG_ARG_TEMP,
                                     RUNG_ARG_I64,    RUNG_ARG_F64,    RUNG_ARG_F64};
    for (int i = 0; i < 6; i++)
        assert_int_equal(s->args[i].kind, kinds[i]);
    assert_string_equal(s->args[1].expr.text + strspn(s->args[1].expr.text, " "), "cols*2");
    assert_string_equal(p->steps[3].block[0].text, "TPB");
}

static void a_tensormap_is_read_whole(void **state)
{
    (void)state;
    const char *problem;
    const struct rung_plan *p =
        parse("//@ launch k grid=(1) block=(1) args=(a, 1, b)   // maps may follow\n"
              "//@ tensormap a = x box=(T, 8)   // a tile\n"
              "//@ tensormap b = t + rows, dims=(cols / 2, rows - 1, 2) strides=(cols*4, 64) \\\n"
              "//@   box=(8, 4, 1) elements=(1, 2, 1) swizzle=64 l2 = 256 oob=nan\n"
              "//@ tune T = 32, 64\n//@ temp t f32 [rows, cols]\n",
              &problem);
    if (!p)
        fail_msg("%s", problem);
    assert_int_equal(p->n_tensormaps, 2);
    const struct rung_tensormap_spec *a = &p->tensormaps[0], *b = &p->tensormaps[1];
    assert_string_equal(a->name, "a");
    assert_int_equal(a->line, 2);
    assert_int_equal(a->target_kind, RUNG_ARG_TENSOR);
    assert_int_equal(a->target_index, 0);
    assert_int_equal(a->n_dims, 2);
    assert_string_equal(a->box[0].text, "T");
    assert_null(a->box[2].text);
    assert_null(a->dims[0].text);
    assert_null(a->swizzle.text);
    assert_int_equal(a->fill_nan, 0);
    assert_int_equal(b->target_kind, RUNG_ARG_TEMP);
    assert_string_equal(b->offset.text, "rows");
    assert_string_equal(b->dims[1].text, "rows - 1");
    assert_null(b->strides[0].text);
    assert_string_equal(b->strides[1].text, "cols*4");
    assert_string_equal(b->strides[2].text, "64");
    assert_string_equal(b->elements[1].text, "2");
    assert_string_equal(b->swizzle.text, "64");
    assert_string_equal(b->l2_promotion.text, "256");
    assert_int_equal(b->fill_nan, 1);
    assert_int_equal(p->steps[0].args[0].kind, RUNG_ARG_TENSORMAP);
    assert_int_equal(p->steps[0].args[0].index, 0);
    assert_int_equal(p->steps[0].args[2].index, 1);
}

#define LAUNCH "//@ launch k grid=(1) block=(1) args=(x)\n"
static const struct {
    const char *source, *want;
} wrong_lines[] = {
    {"", "k.cu:1: the source has no launch"},
    {"int x;\n", "no launch"},
    {"//@ lunch k\n" LAUNCH, "k.cu:1: unknown directive 'lunch'; did you mean 'launch'?"},
    {"//@ dance\n" LAUNCH, "the directives are tune, where, temp, zero, symbol, launch"},
    {"//@ cluster 2\n" LAUNCH, "it stands in the launch line"},
    {"//@ tensormap\n" LAUNCH, "write tensormap NAME = TENSOR box="},
    {"//@ tensormap m\n" LAUNCH, "write tensormap NAME = TENSOR box="},
    {"//@ tensormap m x box=(4, 4)\n" LAUNCH, "write tensormap NAME = TENSOR box="},
    {"//@ tensormap = x box=(4, 4)\n" LAUNCH, "write tensormap NAME = TENSOR box="},
    {"//@ tensormap rows = x box=(4, 4)\n" LAUNCH, "already a dim"},
    {"//@ tensormap m = x box=(4, 4)\n//@ temp m f32 [4]\n" LAUNCH, "'m' is already a tensormap"},
    {"//@ tensormap m = box=(4, 4)\n" LAUNCH, "tensormap m: \"box=(4, 4)\" is no tensor or temp"},
    {"//@ tensormap m = q box=(4, 4)\n" LAUNCH, "tensormap m: \"q\" is no tensor or temp"},
    {"//@ tensormap m = x * 2 box=(4, 4)\n" LAUNCH, "a pointer is a tensor or temp"},
    {"//@ tensormap m = x\n" LAUNCH, "tensormap m lacks box=(...)"},
    {"//@ tensormap m = x dims=(4, 4)\n" LAUNCH, "tensormap m lacks box=(...)"},
    {"//@ tensormap m = x bax=(4, 4)\n" LAUNCH,
     "tensormap: unknown key 'bax='; did you mean 'box='?"},
    {"//@ tensormap m = x boxx=(4, 4)\n" LAUNCH, "did you mean 'box='?"},
    {"//@ tensormap m = x box=(4, 4) box=(4, 4)\n" LAUNCH, "tensormap: 'box=' stands twice"},
    {"//@ tensormap m = x box=()\n" LAUNCH, "tensormap: box=() must be one to five"},
    {"//@ tensormap m = x box=(1,1,1,1,1,1)\n" LAUNCH, "must be one to five"},
    {"//@ tensormap m = x box=(4)\n" LAUNCH, "box has 1 items, but x has 2 dimensions"},
    {"//@ tensormap m = x + 4 box=(4, 4)\n" LAUNCH, "with an offset say dims=(...) too"},
    {"//@ temp t f16 [64]\n//@ tensormap m = t box=(8)\n" LAUNCH, "a temp has no shape"},
    {"//@ tensormap m = x box=(4, 4) dims=(4)\n" LAUNCH, "dims=(4) has 1 items, but 2 are needed"},
    {"//@ tensormap m = x box=(4, 4) strides=(4, 4)\n" LAUNCH,
     "along each dimension but the fastest"},
    {"//@ tensormap m = x box=(4, 4) elements=(1)\n" LAUNCH, "one for each of box"},
    {"//@ tensormap m = x box=(4, 0.5)\n" LAUNCH, "box \"0.5\" must be an integer"},
    {"//@ tensormap m = x box=(4, rws)\n" LAUNCH, "did you mean 'rows'?"},
    {"//@ tensormap m = x box=(4, 4) swizzle=128B\n" LAUNCH, "swizzle \"128B\""},
    {"//@ tensormap m = x box=(4, 4) l2=\n" LAUNCH, "l2 \"\""},
    {"//@ tensormap m = x box=(4, 4) oob=one\n" LAUNCH, "oob=one must be zero or nan"},
    {"//@ tensormap m = x box=(4, m)\n" LAUNCH, "'m' is a tensormap, not a number"},
    {"//@ tensormap m = x box=(4, 4)\n//@ launch k grid=(m) block=(1) args=(x)\n",
     "'m' is a tensormap, not a number"},
    {"//@ tensormap m = x box=(4, 4)\n//@ launch k grid=(1) block=(1) args=(m + 4)\n",
     "'m' is a tensormap, not a number"},
    {"//@ tensormap m = x box=(4, 4)\n//@ zero m\n" LAUNCH, "no temp or output 'm'"},
    {"//@ symbol\n" LAUNCH, "write symbol NAME = TENSOR"},
    {"//@ symbol c\n" LAUNCH, "write symbol NAME = TENSOR"},
    {"//@ symbol c =\n" LAUNCH, "write symbol NAME = TENSOR"},
    {"//@ symbol 1c = x\n" LAUNCH, "write symbol NAME = TENSOR"},
    {"//@ symbol c[4] = x\n" LAUNCH, "write symbol NAME = TENSOR"},
    {"//@ symbol c = q\n" LAUNCH, "symbol c: \"q\" is no tensor or temp"},
    {"//@ symbol c = rows\n" LAUNCH, "symbol c: \"rows\" is no tensor or temp"},
    {"//@ symbol c = x * 2\n" LAUNCH, "symbol c \"x * 2\": a pointer is a tensor or temp"},
    {"//@ symbol c = x + y\n" LAUNCH, "'y' is a tensor or temp, not a number"},
    {"//@ symbol c = x + 0.5\n" LAUNCH, "must be an integer"},
    {"//@ symbol c = x count\n" LAUNCH, "count \"\""},
    {"//@ symbol c = x count 1.5\n" LAUNCH, "count \"1.5\" must be an integer"},
    {"//@ symbol c = x count rws\n" LAUNCH, "did you mean 'rows'?"},
    {"//@ symbol c = x when=(rws)\n" LAUNCH, "did you mean 'rows'?"},
    {"//@ symbol c = count 4\n" LAUNCH, "is no tensor or temp"},
    {"//@ tune\n" LAUNCH, "can't name a tune"},
    {"//@ tune T\n" LAUNCH, "write tune NAME ="},
    {"//@ tune T =\n" LAUNCH, "1 to 64 integers"},
    {"//@ tune T = 1, 1\n" LAUNCH, "stands twice"},
    {"//@ tune T = 1.5\n" LAUNCH, "must be an integer"},
    {"//@ tune T = cols\n" LAUNCH, "unknown name 'cols'"},
    {"//@ tune rows = 1\n" LAUNCH, "already a dim"},
    {"//@ tune T = 1\n//@ tune T = 2\n" LAUNCH, "k.cu:2: 'T' is already a tune"},
    {"//@ tune min = 1\n" LAUNCH, "can't name"},
    {"//@ temp t f31 [4]\n" LAUNCH, "no type 'f31'"},
    {"//@ temp t f32\n" LAUNCH, "write temp NAME TYPE [COUNT]"},
    {"//@ temp t f32 [rws]\n" LAUNCH, "did you mean 'rows'?"},
    {"//@ temp t f32 [x]\n" LAUNCH, "'x' is a tensor or temp, not a number"},
    {"//@ temp t f32 [1.5]\n" LAUNCH, "must be an integer"},
    {"//@ temp x f32 [4]\n" LAUNCH, "already a tensor"},
    {"//@ zero x\n" LAUNCH, "'x' is no output"},
    {"//@ zero q\n" LAUNCH, "no temp or output 'q'"},
    {"//@ zero\n" LAUNCH, "write zero NAME"},
    {"//@ where cols // 4 > 1\n" LAUNCH, "write '/'"},
    {"//@ where eps > 1\n" LAUNCH, "unknown name 'eps'"},
    {"//@ where scale\n" LAUNCH, "must be an integer"},
    {"//@ launch\n", "write launch KERNEL"},
    {"//@ launch 9k grid=(1) block=(1) args=(x)\n", "write launch KERNEL"},
    {"//@ launch k block=(1) args=(x)\n", "lacks grid"},
    {"//@ launch k grid=(1) args=(x)\n", "lacks block"},
    {"//@ launch k grid=(1) block=(1)\n", "lacks args"},
    {"//@ launch k grid=() block=(1) args=(x)\n", "one to three"},
    {"//@ launch k grid=(1,1,1,1) block=(1) args=(x)\n", "one to three"},
    {"//@ launch k grid=(1) grid=(1) block=(1) args=(x)\n", "'grid=' stands twice"},
    {"//@ launch k gird=(1) block=(1) args=(x)\n", "did you mean 'grid='?"},
    {"//@ launch k cluster=(2,1,1,1) grid=(1) block=(1) args=(x)\n", "cluster=(2,1,1,1) must be"},
    {"//@ launch k cluster=(0.5) grid=(1) block=(1) args=(x)\n", "cluster \"0.5\" must be"},
    {"//@ launch k cooperative=maybe grid=(1) block=(1) args=(x)\n",
     "write the word cooperative alone"},
    {"//@ launch k cooperativ grid=(1) block=(1) args=(x)\n", "expected a key"},
    {"//@ launch k cooperatives=1 grid=(1) block=(1) args=(x)\n", "did you mean 'cooperative='?"},
    {"//@ launch k(1) grid=(1) block=(1) args=(x)\n", "expected a key"},
    {"//@ launch k grid=(1) block=(1) args=x\n", "list in parentheses"},
    {"//@ launch k grid=(1) block=(1) args=(x, q)\n", "unknown name 'q'"},
    {"//@ launch k grid=(1) block=(1) args=(x * 2)\n", "plus an offset"},
    {"//@ launch k grid=(1) block=(1) args=(x + (1 < 2))\n", "plus an offset"},
    {"//@ launch k grid=(1) block=(1) args=(rows + x)\n", "not a number"},
    {"//@ launch k grid=(1) block=(1) args=(x + 1.5)\n", "must be an integer"},
    {"//@ launch k grid=(1) block=(1) args=(x,)\n", "ends where a value"},
    {"//@ launch k<cols> grid=(1) block=(1) args=(x)\n", "Pass it in args="},
    {"//@ launch k<sm_count> grid=(1) block=(1) args=(x)\n", "Pass it in args="},
    {"//@ launch k<scale> grid=(1) block=(1) args=(x)\n", "must be an integer"},
    {"//@ launch k<> grid=(1) block=(1) args=(x)\n", "1 to 64 items"},
    {"//@ launch k<1 grid=(1) block=(1) args=(x)\n", "1 to 64 items"},
    {"//@ launch k<1;2> grid=(1) block=(1) args=(x)\n", "neither an integer"},
    {"//@ launch k \\\nint x;\n", "does not start with //@"},
    {"//@ launch k \\", "no //@ line follows"},
};

static void symbols_clusters_and_grid_barriers_are_read(void **state)
{
    (void)state;
    const char *problem;
    uint32_t n;
    const struct rung_plan *p =
        parse("//@ temp w f32 [cols]\n"
              "//@ launch fill cooperative grid=(1) block=(32) args=()\n"
              "//@ symbol ns::c_w = w + cols / 2 count min(cols / 2, 64) when=(rows > 1) // part\n"
              "//@ symbol c_x=x count=(4)\n"
              "//@ symbol ns::c_w = y\n"
              "//@ launch k cluster=(2, rows) args=(x) grid=(8, rows) cooperative block=(32)\n"
              "//@ launch k cooperative=(true) grid=(8) block=(32) args=(x) when=(rows) "
              "cooperative=0\n",
              &problem);
    assert_null(p);
    support_contains(problem, "'cooperative=' stands twice");
    p = parse("//@ temp w f32 [cols]\n"
              "//@ launch fill cooperative grid=(1) block=(32) args=()\n"
              "//@ symbol ns::c_w = w + cols / 2 count min(cols / 2, 64) when=(rows > 1) // part\n"
              "//@ symbol c_x=x count=(4)\n"
              "//@ symbol ns::c_w = y\n"
              "//@ launch k cluster=(2, rows) args=(x) grid=(8, rows) cooperative block=(32)\n",
              &problem);
    if (!p)
        fail_msg("%s", problem);
    assert_int_equal(p->n_steps, 5);
    assert_int_equal(p->steps[0].n_args, 0);
    assert_int_equal(p->steps[0].flags, RUNG_STEP_COOPERATIVE);
    assert_null(p->steps[0].cluster[0].text);
    const struct rung_step *s = &p->steps[1];
    assert_int_equal(s->kind, RUNG_STEP_SYMBOL);
    assert_int_equal(s->line, 3);
    assert_string_equal(s->symbol, "ns::c_w");
    assert_int_equal(s->target_kind, RUNG_ARG_TEMP);
    assert_string_equal(s->offset.text + strspn(s->offset.text, " "), "cols / 2");
    assert_string_equal(s->count.text, "min(cols / 2, 64)");
    assert_string_equal(s->when.text, "(rows > 1)");
    assert_string_equal(p->steps[2].count.text, "(4)");
    assert_null(p->steps[2].offset.text);
    assert_null(p->steps[3].count.text);
    assert_int_equal(p->steps[3].target_kind, RUNG_ARG_TENSOR);
    s = &p->steps[4];
    assert_int_equal(s->flags, RUNG_STEP_COOPERATIVE);
    assert_string_equal(s->cluster[0].text, "2");
    assert_string_equal(s->cluster[1].text, "rows");
    const char *const *symbols = rung_plan_symbols(arena, p, &n);
    assert_int_equal(n, 2);
    assert_string_equal(symbols[0], "ns::c_w");
    assert_string_equal(symbols[1], "c_x");
    p = parse("//@ launch k grid=(1) block=(1) cooperative=false args=(x)\n", &problem);
    assert_int_equal(p->steps[0].flags, 0);
    rung_plan_symbols(arena, p, &n);
    assert_int_equal(n, 0);
}

static void wrong_lines_say_what_and_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong_lines / sizeof *wrong_lines; i++) {
        const char *problem = NULL;
        if (parse(wrong_lines[i].source, &problem))
            fail_msg("accepted: %s", wrong_lines[i].source);
        support_contains(problem, wrong_lines[i].want);
    }
}

static void faults_are_told_at_once(void **state)
{
    (void)state;
    const char *problem;
    assert_null(parse("//@ tune A = x\n//@ zero nope\n//@ launch k gird=(1)\n", &problem));
    support_contains(problem, "k.cu:1:");
    support_contains(problem, "k.cu:2:");
    support_contains(problem, "k.cu:3:");
}

static void comments_end_lines_only_where_they_can_be_nothing_else(void **state)
{
    (void)state;
    const char *problem;
    assert_non_null(parse("//@ tune T = 1, 2 // the best two\n"
                          "//@ launch k grid=(1) block=(T) args=(x) // main kernel, once\n",
                          &problem));
    assert_null(parse("//@ launch k grid=(1) block=(1) args=(x) shared=64 // 2\n", &problem));
    support_contains(problem, "write '/'");
}

static void types_of_templates_pass_as_text(void **state)
{
    (void)state;
    const char *problem;
    struct rung_point point;
    uint32_t n;
    const struct rung_plan *p =
        parse("//@ tune T = 32, 64\n"
              "//@ launch k<pair<float, 2>, T, true, (T > 32), unsigned int> grid=(1) "
              "block=(T) args=(x)\n",
              &problem);
    if (!p)
        fail_msg("%s", problem);
    point = rung_plan_point(p, 1);
    const char *const *list = rung_plan_expressions(arena, p, task, &point, &n, &problem);
    assert_non_null(list);
    assert_int_equal(n, 1);
    assert_string_equal(list[0], "k<pair<float, 2>, 64, true, 1, unsigned int>");
}

static void fixed_shapes_may_be_template_arguments(void **state)
{
    (void)state;
    const char *problem, *faults;
    uint32_t n;
    const struct rung_task *fixed = task_of_json(
        arena, softmax_with(arena, "\"precision\": \"fp32\"", "\"shapes\": \"fixed\""), &faults);
    assert_non_null(fixed);
    const char *source =
        "//@ launch k<cols> grid=(rows) block=(1) args=(x)\n"
        "//@ launch j<cols / 4> grid=(rows) block=(1) args=(x) when=(cols == 1024)\n"
        "//@ launch j<cols / 4> grid=(rows) block=(1) args=(x)\n";
    const struct rung_plan *p =
        rung_plan_parse(arena, fixed, "k.cu", rung_text_of(source), &problem);
    assert_non_null(p);
    struct rung_point point = rung_plan_default_point(p);
    const char *const *list = rung_plan_expressions(arena, p, fixed, &point, &n, &problem);
    assert_int_equal(n, 6);
    assert_string_equal(list[0], "k<1024>");
    assert_string_equal(list[1], "j<256>");
    assert_string_equal(list[2], "k<256>");
    assert_string_equal(list[3], "j<64>");
    assert_string_equal(list[4], "k<1000>");
    const struct rung_resolved_plan *r =
        rung_plan_resolve(arena, p, fixed, fixed->bench[1].dims, &point, 1, &problem);
    assert_non_null(r);
    assert_int_equal(r->n_steps, 2);
    assert_string_equal(r->steps[0].expression, "k<256>");
}

static void points_are_walked_in_order(void **state)
{
    (void)state;
    const char *problem;
    const struct rung_plan *p = parse(full, &problem);
    struct rung_point point = rung_plan_default_point(p), back;
    assert_int_equal(rung_plan_points(p), 6);
    assert_string_equal(rung_point_text(arena, p, &point), "TPB=128 VEC=1");
    for (uint64_t i = 0; i < 6; i++) {
        point = rung_plan_point(p, i);
        assert_int_equal(point.values[1], i % 2 ? 4 : 1);
        assert_int_equal(point.values[0], 128 << (i / 2));
        assert_true(rung_point_parse(arena, p, rung_point_text(arena, p, &point), &back, &problem));
        assert_memory_equal(&point, &back, sizeof point);
    }
    assert_false(rung_point_parse(arena, p, "TPB=128", &back, &problem));
    support_contains(problem, "lacks tune 'VEC'");
    assert_false(rung_point_parse(arena, p, "TPB=100 VEC=1", &back, &problem));
    support_contains(problem, "no value");
    assert_false(rung_point_parse(arena, p, "TPB=128 VEC=1 X=2", &back, &problem));
    support_contains(problem, "no tune 'X'");
    assert_false(rung_point_parse(arena, p, "TPB=128 TPB=128 VEC=1", &back, &problem));
    support_contains(problem, "twice");
    assert_false(rung_point_parse(arena, p, "TPB", &back, &problem));
}

static void where_chooses_points(void **state)
{
    (void)state;
    const char *problem;
    struct rung_point point;
    const struct rung_plan *p = parse("//@ tune T = 1024, 512, 64\n//@ where T < cols\n"
                                      "//@ launch k grid=(1) block=(T) args=(x)\n",
                                      &problem);
    int64_t dims[3] = {1, 1000, 250};
    point = rung_plan_default_point(p);
    assert_false(rung_plan_allows(p, task, dims, &point, 1));
    point = rung_plan_point(p, 1);
    assert_true(rung_plan_allows(p, task, dims, &point, 1));
    assert_true(rung_plan_first_point(p, task, 1, &point));
    assert_int_equal(point.values[0], 64);
    p = parse(
        "//@ tune T = 1\n//@ where 1 / (T - 1) > 0\n//@ launch k grid=(1) block=(T) args=(x)\n",
        &problem);
    assert_false(rung_plan_first_point(p, task, 1, &point));
    p = parse("//@ launch k grid=(1) block=(1) args=(x)\n", &problem);
    assert_true(rung_plan_first_point(p, task, 1, &point));
    assert_string_equal(rung_point_text(arena, p, &point), "");
}

static void hostile_sources_are_bounded(void **state)
{
    (void)state;
    struct rung_buf buf = {0};
    const char *problem;
    for (int i = 0; i < 5000; i++)
        rung_buf_printf(&buf, "//@ tune T%d = 1, 2\n", i);
    rung_buf_puts(&buf, "//@ launch k grid=(1) block=(1) args=(x)\n");
    assert_null(parse(rung_buf_text(&buf), &problem));
    support_contains(problem, "at most 64 tunes");
    assert_true(strlen(problem) < 16000);
    rung_buf_drop(&buf, buf.len);
    for (int i = 0; i < 64; i++)
        rung_buf_printf(&buf, "//@ tune T%d = 1, 2, 3, 4\n", i);
    rung_buf_puts(&buf, "//@ where T0 < 0\n//@ launch k grid=(1) block=(1) args=(x)\n");
    const struct rung_plan *p = parse(rung_buf_text(&buf), &problem);
    struct rung_point point;
    assert_non_null(p);
    assert_int_equal(rung_plan_points(p), 1000000);
    assert_false(rung_plan_first_point(p, task, 1, &point));
    rung_buf_drop(&buf, buf.len);
    for (int i = 0; i < 65; i++)
        rung_buf_puts(&buf, "//@ launch k grid=(1) block=(1) args=(x)\n");
    assert_null(parse(rung_buf_text(&buf), &problem));
    support_contains(problem, "at most 64 steps");
    rung_buf_drop(&buf, buf.len);
    for (int i = 0; i < 100000; i++)
        rung_buf_puts(&buf, "//@ a \\\n");
    assert_null(parse(rung_buf_text(&buf), &problem));
    rung_buf_free(&buf);
    struct rung_text nul = {"//@ launch\0k\n", 13};
    assert_null(rung_plan_parse(arena, task, "k.cu", nul, &problem));
    support_contains(problem, "plain text");
}

static void the_host_service_is_the_same_reader(void **state)
{
    (void)state;
    struct rung_call call = {.struct_size = sizeof call, .arena = arena};
    const struct rung_plan *plan;
    struct rung_text problem;
    assert_int_equal(
        rung_plan_table.parse(NULL, &call, task, "k.cu", rung_text_of(full), &plan, &problem), 0);
    assert_non_null(plan);
    assert_int_equal(problem.len, 0);
    assert_int_equal(
        rung_plan_table.parse(NULL, &call, task, "k.cu", rung_text_of(""), &plan, &problem), 0);
    assert_null(plan);
    assert_true(problem.len > 0 && problem.ptr[problem.len] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_right_plan_is_read_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(symbols_clusters_and_grid_barriers_are_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_tensormap_is_read_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_lines_say_what_and_where, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_are_told_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(comments_end_lines_only_where_they_can_be_nothing_else,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(types_of_templates_pass_as_text, setup, teardown),
        cmocka_unit_test_setup_teardown(fixed_shapes_may_be_template_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(points_are_walked_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(where_chooses_points, setup, teardown),
        cmocka_unit_test_setup_teardown(hostile_sources_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(the_host_service_is_the_same_reader, setup, teardown),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
