#include "codegen/harness.h"
#include "plugin/options.h"
#include "task/plan.h"
#include <rung/host.h>

int32_t harness_open(struct harness *h, const char *kind, const char *name, const char *options,
                     bool start)
{
    const struct rung_loaded *loaded;
    struct rung_diags diags = {0};
    *h = (struct harness){
        .registry = rung_registry_new(), .arena = rung_arena_new(), .error = rung_error_init()};
    h->call =
        (struct rung_call){.struct_size = sizeof(h->call), .arena = h->arena, .error = &h->error};
    rung_registry_allow_insecure(
        h->registry); /* a build tree's permissions are not the matter here */
    rung_registry_add_dir(h->registry, TREE_PLUGINS);
    rung_registry_add_dir(h->registry, TEST_PLUGINS);
    if (rung_registry_load(h->registry, kind, name, &loaded, &h->error) != RUNG_OK)
        fail_msg("%s", h->error.message);
    cJSON *json = cJSON_Parse(options);
    assert_non_null(json);
    struct rung_node *group = rung_node_from_json(h->arena, json, NULL, "test");
    struct rung_options *set =
        rung_options_read(h->arena, loaded->factory, group, NULL, rung_data_dir(), &diags);
    cJSON_Delete(json);
    if (!set)
        fail_msg("%s", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
    const struct rung_service services[] = {{RUNG_HOST_PROCESS, &rung_process_table, NULL},
                                            {RUNG_HOST_PLAN, &rung_plan_table, NULL},
                                            {NULL, NULL, NULL}};
    if (rung_instance_new(loaded, set, name, rung_data_dir(), services, &h->instance, &h->error) !=
        RUNG_OK)
        fail_msg("%s", h->error.message);
    return start ? rung_instance_start(h->instance, &h->error) : RUNG_OK;
}

void harness_close(struct harness *h)
{
    rung_instance_free(h->instance);
    rung_arena_free(h->arena);
    rung_registry_free(h->registry);
}

void harness_reset(struct harness *h)
{
    h->error = rung_error_init();
}

const struct rung_task *harness_task(void)
{
    static const struct rung_dim dims[] = {
        {.struct_size = sizeof(dims[0]),
         .name = "rows",
         .value = 64,
         .min = 1,
         .max = INT64_MAX,
         .multiple_of = 1},
        {.struct_size = sizeof(dims[0]),
         .name = "cols",
         .value = 1000,
         .min = 1,
         .max = INT64_MAX,
         .multiple_of = 1},
    };
    static const struct rung_param params[] = {
        {.struct_size = sizeof(params[0]), .dtype = RUNG_F64, .name = "scale", .f64 = 1.0}};
    static const struct rung_tensor_spec tensors[] = {
        {.struct_size = sizeof(tensors[0]),
         .role = RUNG_ROLE_INPUT,
         .dtype = RUNG_F32,
         .n_dims = 2,
         .name = "x",
         .shape = {"rows", "cols"},
         .fill = "normal",
         .alignment = 256},
        {.struct_size = sizeof(tensors[0]),
         .role = RUNG_ROLE_OUTPUT,
         .dtype = RUNG_F32,
         .n_dims = 2,
         .name = "y",
         .shape = {"rows", "cols"},
         .fill = "normal",
         .alignment = 256},
    };
    static const int64_t bench_dims[] = {64, 1000};
    static const struct rung_shape_case bench[] = {
        {.struct_size = sizeof(bench[0]), .dims = bench_dims, .weight = 1.0}};
    static const struct rung_task task = {.struct_size = sizeof(task),
                                          .n_dims = 2,
                                          .n_params = 1,
                                          .n_tensors = 2,
                                          .n_bench = 1,
                                          .precision = RUNG_PRECISION_FP32,
                                          .shape_rule = RUNG_SHAPES_RANGE,
                                          .name = "scaled_softmax",
                                          .summary = "Row-wise softmax of scale * x",
                                          .dims = dims,
                                          .params = params,
                                          .tensors = tensors,
                                          .bench = bench,
                                          .reference = "ops",
                                          .graph = "y = softmax(x * scale, axis=1)"};
    return &task;
}
