/* Expressions: values, types, precedence, faults and hostile text. */
#include "support/support.h"

#include "task/expr.h"

#include <string.h>

static struct rung_arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = rung_arena_new();
    return arena == NULL;
}

static int teardown(void **state)
{
    (void)state;
    rung_arena_free(arena);
    return 0;
}

/* rows = 7, cols = 100, eps = 0.5 */
static bool lookup(const void *ctx, const char *name, struct rung_value *out)
{
    (void)ctx;
    *out = (struct rung_value){0};
    if (strcmp(name, "eps") == 0)
        *out = (struct rung_value){.is_float = true, .f = 0.5};
    else
        out->i = strcmp(name, "rows") == 0 ? 7 : 100;
    return strcmp(name, "eps") == 0 || strcmp(name, "rows") == 0 || strcmp(name, "cols") == 0;
}

static void names(const void *ctx, struct rung_arena *a, const char *const **list, size_t *n)
{
    static const char *const all[] = {"rows", "cols", "eps"};
    (void)ctx;
    (void)a;
    *list = all;
    *n = 3;
}

static const struct rung_scope scope = {.lookup = lookup, .names = names};

static struct rung_value value(const char *text)
{
    struct rung_value v;
    const char *problem;
    if (!rung_expr_value(arena, text, &scope, &v, &problem))
        fail_msg("%s: %s", text, problem);
    return v;
}

static const char *problem_of(const char *text)
{
    struct rung_value v;
    const char *problem = NULL;
    if (rung_expr_value(arena, text, &scope, &v, &problem))
        fail_msg("'%s' was accepted", text);
    assert_non_null(problem);
    assert_memory_equal(problem, "column ", 7);
    return problem;
}

static void integers_follow_c(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want;
    } cases[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"10 - 4 - 3", 3},
        {"-7 / 2", -3},
        {"7 % 4", 3},
        {"- - 4", 4},
        {"+4", 4},
        {"2*-3", -6},
        {"ceil_div(7, 4)", 2},
        {"ceil_div(8, 4)", 2},
        {"ceil_div(0, 4)", 0},
        {"min(3, 2, 9)", 2},
        {"max(rows, cols)", 100},
        {"min(1 , max(2,3))", 1},
        {"rows < cols", 1},
        {"rows >= cols", 0},
        {"rows == 7 and cols == 100", 1},
        {"1 + 1 == 2", 1},
        {"rows != 7 or cols % 4 == 0", 1},
        {"not (rows == 7)", 0},
        {"not rows and 1", 0},
        {"!(0)", 1},
        {"rows == 7 && cols == 1", 0},
        {"0 || 5", 1},
        {"1 or 0 and 0", 1},
        {"sizeof(float) * 4", 16},
        {"sizeof( double )", 8},
        {"true + true", 2},
        {"128u", 128},
        {"9223372036854775807", INT64_MAX},
        {"4ull", 4},
        {"rows*cols", 700},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rung_value v = value(cases[i].text);
        if (v.is_float || v.i != cases[i].want)
            fail_msg("%s = %lld, not %lld", cases[i].text, (long long)v.i,
                     (long long)cases[i].want);
    }
}

static void floats_spread_and_comparisons_stay_integers(void **state)
{
    (void)state;
    assert_true(value("1.0 / 4").is_float);
    assert_true(value("1.0 / 4").f == 0.25);
    assert_true(value("1 / 4").i == 0);
    assert_true(value("eps * cols").f == 50.0);
    assert_true(value("1e-5f").f == 1e-5);
    assert_true(value(".5").f == 0.5);
    assert_true(value("min(1, eps)").f == 0.5);
    assert_false(value("eps < 1").is_float);
    assert_int_equal(value("eps < 1").i, 1);
    assert_int_equal(value("not eps").i, 0);
}

static void the_left_side_guards_the_right_one(void **state)
{
    (void)state;
    assert_int_equal(value("0 != 0 and 1 / 0 == 1").i, 0);
    assert_int_equal(value("1 or 1 / 0").i, 1);
    support_contains(problem_of("1 and 1 / 0"), "division by zero");
}

static void arithmetic_never_wraps(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "9223372036854775807 + 1",         "-9223372036854775807 - 2",    "4294967296 * 4294967296",
        "(-9223372036854775807 - 1) / -1", "-(-9223372036854775807 - 1)", "9223372036854775808"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        support_contains(problem_of(bad[i]), "64 bits");
    support_contains(problem_of("1 / (rows - 7)"), "division by zero");
    support_contains(problem_of("1 % 0"), "division by zero");
    support_contains(problem_of("-1 % 3"), "negative");
    support_contains(problem_of("ceil_div(-1, 3)"), "negative");
    support_contains(problem_of("1e308 * 1e308"), "finite");
    support_contains(problem_of("1.0 / 0"), "division by zero");
    support_contains(problem_of("1.5 % 2"), "integers");
}

static void faults_name_place_and_remedy(void **state)
{
    (void)state;
    support_contains(problem_of("row + 1"), "column 1: unknown name 'row'; did you mean 'rows'?");
    support_contains(problem_of("1 + zzzzzzz"), "column 5: unknown name 'zzzzzzz'");
    support_contains(problem_of("rows // 2"), "write '/'");
    support_contains(problem_of("rows ** 2"), "product");
    support_contains(problem_of("1 << 4"), "power of two");
    support_contains(problem_of("1 < 2 < 3"), "chained");
    support_contains(problem_of("not rows == 7"), "not (...)");
    support_contains(problem_of("rows > 1 ? 2 : 3"), "when=");
    support_contains(problem_of("cdiv(rows, 2)"), "ceil_div");
    support_contains(problem_of("ceil_div(1, 2, 3)"), "two arguments");
    support_contains(problem_of("min(1)"), "two or more");
    support_contains(problem_of("min"), "parentheses");
    support_contains(problem_of("sizeof(struct x)"), "write the bytes");
    static const char *const bad[] = {"",    " ",       "1 +",     "(1",    "1)",   "1 2",
                                      "a b", "*",       "min(1,)", "1.2.3", "1e",   "0x10",
                                      "3x",  "rows,",   "and",     "1 and", "=",    "rows = 1",
                                      "'a'", "rows[0]", "1;2",     "\"",    "\x80", "1\n2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        problem_of(bad[i]);
}

static void hostile_text_is_bounded(void **state)
{
    (void)state;
    char text[3000];
    memset(text, '(', sizeof text);
    text[2999] = 0;
    support_contains(problem_of(text), "1000 characters");
    text[900] = 0;
    support_contains(problem_of(text), "64 deep");
    memset(text, '-', 900);
    support_contains(problem_of(text), "64 deep");
    for (int i = 0; i < 225; i++)
        memcpy(text + 4 * i, "not ", 4);
    support_contains(problem_of(text), "64 deep");
    for (int i = 0; i < 450; i++)
        memcpy(text + 2 * i, "1+", 2);
    text[899] = 0;
    assert_int_equal(value(text).i, 450);
    memset(text, 'a', 64);
    text[64] = 0;
    support_contains(problem_of(text), "63");
}

static void types_are_checked_without_evaluating(void **state)
{
    (void)state;
    const char *problem;
    bool is_float;
    const struct rung_expr *e = rung_expr_parse(arena, "rows / 0", &problem);
    assert_true(rung_expr_check(e, &scope, arena, &is_float, &problem));
    assert_false(is_float);
    e = rung_expr_parse(arena, "0 and nothing_here", &problem);
    assert_false(rung_expr_check(e, &scope, arena, &is_float, &problem));
    support_contains(problem, "unknown name 'nothing_here'");
    e = rung_expr_parse(arena, "rows + eps", &problem);
    assert_true(rung_expr_check(e, &scope, arena, &is_float, &problem));
    assert_true(is_float);
}

static void names_are_identifiers(void **state)
{
    (void)state;
    assert_true(rung_expr_is_name("a"));
    assert_true(rung_expr_is_name("_x9"));
    assert_false(rung_expr_is_name(""));
    assert_false(rung_expr_is_name("9a"));
    assert_false(rung_expr_is_name("a-b"));
    assert_false(rung_expr_is_name("sm_count"));
    assert_false(rung_expr_is_name("not"));
}

static void splitting_sees_brackets(void **state)
{
    (void)state;
    const char **items;
    size_t n;
    assert_true(rung_expr_split(arena, " rows , min(a, b)*2,c ", &items, &n));
    assert_int_equal(n, 3);
    assert_string_equal(items[0], "rows");
    assert_string_equal(items[1], "min(a, b)*2");
    assert_string_equal(items[2], "c");
    assert_true(rung_expr_split(arena, "", &items, &n));
    assert_int_equal(n, 0);
    assert_true(rung_expr_split(arena, "a,", &items, &n));
    assert_int_equal(n, 2);
    assert_string_equal(items[1], "");
    assert_false(rung_expr_split(arena, "a)", &items, &n));
    assert_false(rung_expr_split(arena, "(a,", &items, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(integers_follow_c, setup, teardown),
        cmocka_unit_test_setup_teardown(floats_spread_and_comparisons_stay_integers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_left_side_guards_the_right_one, setup, teardown),
        cmocka_unit_test_setup_teardown(arithmetic_never_wraps, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_name_place_and_remedy, setup, teardown),
        cmocka_unit_test_setup_teardown(hostile_text_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(types_are_checked_without_evaluating, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_identifiers, setup, teardown),
        cmocka_unit_test_setup_teardown(splitting_sees_brackets, setup, teardown),
    };
    return cmocka_run_group_tests_name("expr", tests, NULL, NULL);
}
