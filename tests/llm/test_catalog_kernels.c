/*
 * Every kernel of the catalog, in several variants, for the tasks that it is for: the plan lines
 * must be right and every kernel instance that the plan can launch must compile. Skips the
 * compiling, loudly, where there is no NVRTC.
 */
#include "harness.h"
#include "nvrtc.h"

#include "base/json.h"
#include "task/plan.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSOR(name, role)                                                                         \
    "{ \"name\": \"" name "\", \"role\": \"" role                                                  \
    "\", \"dtype\": \"f32\", \"shape\": \"rows, cols\" }"
#define TASK(graph, tensors)                                                                       \
    "{ \"name\": \"t\", \"summary\": \"s\", \"dims\": { \"rows\": 64, \"cols\": 1000 },"           \
    "  \"params\": [ { \"name\": \"scale\", \"dtype\": \"f64\", \"value\": 1.5 } ],"               \
    "  \"tensors\": [ " tensors " ],"                                                              \
    "  \"reference\": { \"plugin\": \"ops\", \"graph\": \"" graph "\" } }"
#define X TENSOR("x", "input")
#define A TENSOR("a", "input")
#define B TENSOR("b", "weight")
#define Y TENSOR("y", "output")

static const char *const softmax_tasks[] = {TASK("y = softmax(x, axis=1)", X ", " Y)};
static const char *const elementwise_tasks[] = {
    TASK("y = relu(x * a + b)", X ", " A ", " B ", " Y),
    TASK("t = x * scale; y = gelu(t) + gelu(t, approximate=tanh) - silu(x) / 2 + mish(x) ** 2",
         X ", " Y),
    TASK("y = softplus(x) + hardswish(x) + leaky_relu(x, 0.1) + clamp(x, -1, 1) + sigmoid(x) + "
         "abs(x) ** 0.5 "
         "+ exp(x) + log(x) + sin(x) * cos(x) + erf(x) - minimum(maximum(x, 0), clamp(x, min=2)) "
         "** 3.0 + tanh(x)",
         X ", " Y),
};

static struct model model;
static bool have_nvrtc;

static int open_all(void **state)
{
    (void)state;
    have_nvrtc = nvrtc_open();
    return model_open(&model, "catalog", "{}");
}

static int close_all(void **state)
{
    (void)state;
    model_close(&model);
    return 0;
}

static const struct rung_task *read_task(const char *text)
{
    struct rung_diags diags = {0};
    cJSON *json = rung_json_parse(text, strlen(text));
    assert_non_null(json);
    const struct rung_task *task = rung_task_read(
        model.arena, rung_node_from_json(model.arena, json, NULL, "task.json"), &diags);
    if (!task)
        fail_msg("%s", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
    cJSON_Delete(json);
    return task;
}

/* Asks for the kernel of an idea as the engine does, and takes it out of its fence. */
static char *kernel_of(const struct rung_task *task, const char *idea, uint32_t branch)
{
    char key[32];
    char *user = rung_arena_printf(model.arena, "## Task\n\n```\n%s```\n\n## Idea\n\n%s\n",
                                   rung_task_contract(model.arena, task), idea);
    snprintf(key, sizeof key, "code/1/%u", branch);
    assert_int_equal(model_ask(&model, "code", key, 1, user), RUNG_OK);
    const char *open = strstr(model_text(&model), "```cuda\n");
    if (!open)
        fail_msg("no kernel for '%s': %s", idea, model_text(&model));
    open += strlen("```cuda\n");
    return strndup(open, (size_t)(strstr(open, "```") - open));
}

/* All kernel instances of all tune points of a plan. */
static uint32_t instances(const struct rung_task *task, const struct rung_plan *plan,
                          const char *all[256])
{
    uint32_t n_all = 0;
    for (uint64_t i = 0; i < rung_plan_points(plan); ++i) {
        const struct rung_point point = rung_plan_point(plan, i);
        const char *problem = NULL;
        uint32_t n = 0;
        const char *const *some =
            rung_plan_expressions(model.arena, plan, task, &point, &n, &problem);
        if (!some)
            fail_msg("%s", problem);
        for (uint32_t k = 0; k < n; ++k) {
            uint32_t at = 0;
            while (at < n_all && strcmp(all[at], some[k]) != 0)
                ++at;
            assert_true(at < 256);
            all[at] = some[k];
            n_all += at == n_all;
        }
    }
    return n_all;
}

/* The default point must resolve at shapes of all kinds. */
static void check_shapes(const struct rung_task *task, const struct rung_plan *plan)
{
    static const int64_t shapes[][2] = {{1, 1},     {7, 1000}, {64, 4097},
                                        {1, 65536}, {4096, 2}, {100000, 33}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        const struct rung_point point = rung_plan_default_point(plan);
        const char *problem = NULL;
        if (!rung_plan_allows(plan, task, shapes[i], &point, 132))
            fail_msg("the default point is not allowed");
        const struct rung_resolved_plan *resolved =
            rung_plan_resolve(model.arena, plan, task, shapes[i], &point, 132, &problem);
        if (!resolved)
            fail_msg("%lld x %lld: %s", (long long)shapes[i][0], (long long)shapes[i][1], problem);
        assert_true(resolved->n_steps >= 1);
    }
}

static void check_kernel(const struct rung_task *task, const char *idea, uint32_t branch,
                         bool compile)
{
    char *source = kernel_of(task, idea, branch);
    const char *problem = NULL;
    const struct rung_plan *plan = rung_plan_parse(
        model.arena, task, "k.cu", (struct rung_text){source, strlen(source)}, &problem);
    if (!plan)
        fail_msg("%s\n%s", problem, source);
    check_shapes(task, plan);
    const char *all[256];
    const uint32_t n = instances(task, plan, all);
    assert_true(n >= 1);
    char *log = compile && have_nvrtc ? nvrtc_compile(source, all, n) : NULL;
    if (log)
        fail_msg("%s\n%s", log, source);
    free(source);
}

/* The "// idea: " of a catalog file. */
static void idea_of(const char *path, char idea[512])
{
    char line[512];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    idea[0] = 0;
    while (!idea[0] && fgets(line, sizeof line, file))
        sscanf(line, "// idea: %511[^\n]", idea);
    fclose(file);
    assert_true(idea[0] != 0);
}

/* Each file of a family for each of its tasks; of the first task another branch's plan too. */
static uint32_t check_family(const char *family, const char *const *tasks, size_t n_tasks)
{
    char *folder = rung_arena_printf(model.arena, "%s/catalog/%s", rung_data_dir(), family);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    uint32_t files = 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char idea[512];
        if (!strstr(entry->d_name, ".cu"))
            continue;
        idea_of(rung_arena_printf(model.arena, "%s/%s", folder, entry->d_name), idea);
        for (size_t t = 0; t < n_tasks; ++t)
            check_kernel(read_task(tasks[t]), idea, 0, true);
        check_kernel(read_task(tasks[0]), idea, 1, false);
        ++files;
    }
    closedir(dir);
    if (!have_nvrtc)
        print_message("SKIPPED: no NVRTC here, so that the %u kernels of %s were not compiled\n",
                      files, family);
    return files;
}

static void softmax_kernels(void **state)
{
    (void)state;
    assert_int_equal(check_family("softmax", softmax_tasks, 1), 15);
}

static void elementwise_kernels(void **state)
{
    (void)state;
    assert_int_equal(check_family("elementwise", elementwise_tasks, 3), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_kernels),
        cmocka_unit_test(elementwise_kernels),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
