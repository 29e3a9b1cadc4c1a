#include "support/support.h"

#include "harness.h"

#include "base/status.h"

#include <string.h>

static void init_task(struct harness *h, uint32_t y_dtype)
{
    h->default_dims[0] = 64;
    h->dims[0] = (struct rung_dim){.struct_size = sizeof h->dims[0],
                                   .name = "n",
                                   .value = 64,
                                   .min = 1,
                                   .max = INT64_MAX,
                                   .multiple_of = 1};
    h->tensors[0] = (struct rung_tensor_spec){.struct_size = sizeof h->tensors[0],
                                              .role = RUNG_ROLE_INPUT,
                                              .dtype = RUNG_F32,
                                              .n_dims = 1,
                                              .name = "x",
                                              .shape = {"n"},
                                              .fill = "normal",
                                              .alignment = 256};
    h->tensors[1] = h->tensors[0];
    h->tensors[1].role = RUNG_ROLE_OUTPUT;
    h->tensors[1].dtype = y_dtype;
    h->tensors[1].name = "y";
    h->bench = (struct rung_shape_case){
        .struct_size = sizeof h->bench, .dims = h->default_dims, .weight = 1};
    h->task = (struct rung_task){.struct_size = sizeof h->task,
                                 .n_dims = 1,
                                 .n_tensors = 2,
                                 .n_bench = 1,
                                 .precision = RUNG_PRECISION_FP32,
                                 .shape_rule = RUNG_SHAPES_RANGE,
                                 .name = "twice",
                                 .summary = "y = 2 x + 1",
                                 .dims = h->dims,
                                 .tensors = h->tensors,
                                 .bench = &h->bench,
                                 .reference = "fake"};
}

static void init_artifact(struct harness *h)
{
    static const struct {
        uint32_t offset, size, type;
    } layout[4] = {{0, 8, RUNG_PARAM_BITS},
                   {8, 8, RUNG_PARAM_BITS},
                   {16, 4, RUNG_PARAM_BITS},
                   {24, 8, RUNG_PARAM_BITS}};
    for (int i = 0; i < 4; i++)
        h->params[i] = (struct rung_kernel_param){.struct_size = sizeof h->params[i],
                                                  .type = layout[i].type,
                                                  .offset = layout[i].offset,
                                                  .size = layout[i].size,
                                                  .alignment = layout[i].size};
    h->artifact = (struct rung_artifact){.struct_size = sizeof h->artifact, .kernels = h->kernels};
    h->symbol = (struct rung_symbol){.struct_size = sizeof h->symbol,
                                     .expression = "ns::c_w",
                                     .symbol = "_ZN2ns3c_wE",
                                     .bytes = sizeof fake_variable};
    h->artifact.symbols = &h->symbol;
    h->artifact.n_symbols = fake_config.variable != NULL;
    for (int i = 0; i < 16 && fake_config.kernels[i].symbol; i++) {
        const char *symbol = fake_config.kernels[i].symbol;
        bool temp = strncmp(symbol, "temp_", 5) == 0; /* these take the scratch buffer too */
        h->kernels[h->artifact.n_kernels++] =
            (struct rung_kernel){.struct_size = sizeof h->kernels[0],
                                 .n_params = temp ? 4 : 3,
                                 .expression = symbol,
                                 .symbol = symbol,
                                 .params = h->params,
                                 .param_bytes = temp ? 32 : 20,
                                 .registers = 20,
                                 .static_shared = 16};
    }
}

void harness_init(struct harness *h, uint32_t y_dtype)
{
    memset(h, 0, sizeof *h);
    h->arena = rung_arena_new();
    h->error = rung_error_init();
    h->call =
        (struct rung_call){.struct_size = sizeof h->call, .arena = h->arena, .error = &h->error};
    init_task(h, y_dtype);
    init_artifact(h);
    assert_int_equal(
        rung_instance_new(&fake_device_loaded, NULL, "fake", "/", NULL, &h->device, &h->error), 0);
    assert_int_equal(rung_instance_new(&fake_reference_loaded, NULL, "fake", "/", NULL,
                                       &h->reference, &h->error),
                     0);
    int32_t status;
    h->info.struct_size = sizeof h->info;
    RUNG_INVOKE(status, h->device, struct rung_device_ops, info, &h->call, &h->info);
    assert_int_equal(status, RUNG_OK);
}

void harness_plain(struct harness *h)
{
    rung_instance_free(h->device);
    assert_int_equal(
        rung_instance_new(&fake_plain_loaded, NULL, "plain", "/", NULL, &h->device, &h->error), 0);
}

void harness_timed(struct harness *h)
{
    rung_instance_free(h->device);
    assert_int_equal(
        rung_instance_new(&fake_timed_loaded, NULL, "timed", "/", NULL, &h->device, &h->error), 0);
}

void harness_open(struct harness *h, const char *plan)
{
    const char *problem = NULL;
    struct rung_session_spec spec = {.device = h->device,
                                     .reference = h->reference,
                                     .info = &h->info,
                                     .task = &h->task,
                                     .artifact = &h->artifact,
                                     .memory_limit = h->memory_limit,
                                     .gpu = h->gpu};
    spec.plan = rung_plan_parse(h->arena, &h->task, "k.cu", rung_text_of(plan), &problem);
    if (!spec.plan)
        fail_msg("%s", problem);
    spec.point = rung_plan_default_point(spec.plan);
    int32_t status = rung_session_open(&spec, &h->call, &h->open, &h->load_fault);
    if (status)
        fail_msg("%s", h->error.message);
    h->session = h->open ? rung_session_table(h->open) : NULL;
}

struct rung_run *harness_run(struct harness *h, int64_t n, uint64_t seed, uint32_t flags)
{
    struct rung_run_request request = {
        .struct_size = sizeof request, .flags = flags, .dims = &n, .seed = seed};
    struct rung_run *run = NULL;
    if (h->session->run(h->session, &h->call, &request, &run))
        fail_msg("%s", h->error.message);
    assert_non_null(run);
    return run;
}

void harness_done(struct harness *h)
{
    rung_session_close(h->open);
    rung_instance_free(h->device);
    rung_instance_free(h->reference);
    rung_arena_free(h->arena);
}

int harness_clean(void **state)
{
    (void)state;
    assert_int_equal(fake_counts.buffers, 0);
    assert_int_equal(fake_counts.modules, 0);
    assert_int_equal(fake_counts.events, 0);
    assert_int_equal(fake_counts.graphs, 0);
    memset(&fake_config, 0, sizeof fake_config);
    memset(&fake_counts, 0, sizeof fake_counts);
    fake_config.memory = UINT64_C(1) << 30;
    return 0;
}
