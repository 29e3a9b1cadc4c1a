/*
 * libFuzzer: any text as a model's reply to codegen "cuda". Built with the plugin's sources; a
 * reply is either a bundle with a plan or a code with a message; only plan.error may have a bundle.
 */
#include "base/status.h"
#include "plugin/instance.h"
#include "task/plan.h"

#include <rung/codegen.h>
#include <rung/host.h>
#include <string.h>

RUNG_EXPORT const struct rung_plugin *rung_plugin_v0(uint32_t host_major, uint32_t host_draft);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t dims[] = {7, 1000};
static const struct rung_dim dim_list[] = {{.struct_size = sizeof(struct rung_dim),
                                            .name = "rows",
                                            .value = 7,
                                            .min = 1,
                                            .max = INT64_MAX,
                                            .multiple_of = 1},
                                           {.struct_size = sizeof(struct rung_dim),
                                            .name = "cols",
                                            .value = 1000,
                                            .min = 1,
                                            .max = INT64_MAX,
                                            .multiple_of = 1}};
static const struct rung_tensor_spec tensors[] = {{.struct_size = sizeof(struct rung_tensor_spec),
                                                   .role = RUNG_ROLE_INPUT,
                                                   .dtype = RUNG_F32,
                                                   .n_dims = 2,
                                                   .name = "x",
                                                   .shape = {"rows", "cols"}},
                                                  {.struct_size = sizeof(struct rung_tensor_spec),
                                                   .role = RUNG_ROLE_OUTPUT,
                                                   .dtype = RUNG_F32,
                                                   .n_dims = 2,
                                                   .name = "y",
                                                   .shape = {"rows", "cols"}}};
static const struct rung_shape_case cases[] = {
    {.struct_size = sizeof cases[0], .dims = dims, .weight = 1}};
static const struct rung_task task = {.struct_size = sizeof task,
                                      .n_dims = 2,
                                      .n_tensors = 2,
                                      .n_bench = 1,
                                      .precision = RUNG_PRECISION_FP32,
                                      .shape_rule = RUNG_SHAPES_RANGE,
                                      .name = "t",
                                      .summary = "s",
                                      .dims = dim_list,
                                      .tensors = tensors,
                                      .bench = cases,
                                      .reference = "ops"};

/* An earlier candidate: the parent, and code that waits for its plan. */
#define EARLIER                                                                                    \
    "//@ launch k grid=(rows) block=(32) args=(x, y, cols)\n"                                      \
    "__global__ void k(const float *x, float *y, int cols) { y[blockIdx.x] = x[cols]; }\n"
static const struct rung_file earlier_file = {.struct_size = sizeof earlier_file,
                                              .path = "earlier.cu",
                                              .text = {EARLIER, sizeof EARLIER - 1}};
static const struct rung_bundle earlier = {
    .struct_size = sizeof earlier, .n_files = 1, .language = "cuda", .files = &earlier_file};

/* The plugin as one instance for all inputs. */
static struct rung_instance *codegen(void)
{
    static struct rung_instance *instance;
    static struct rung_loaded loaded;
    __attribute__((used)) static struct rung_arena *arena; /* keeps the options reachable */
    static const struct rung_service services[] = {{RUNG_HOST_PLAN, &rung_plan_table, NULL},
                                                   {NULL, NULL, NULL}};
    struct rung_error err = rung_error_init();
    struct rung_diags diags = {0};
    if (instance)
        return instance;
    loaded.path = "codegen_cuda.so";
    loaded.plugin = rung_plugin_v0(RUNG_ABI_MAJOR, RUNG_ABI_DRAFT);
    loaded.factory = loaded.plugin->factories[0];
    arena = rung_arena_new();
    struct rung_options *options =
        rung_options_read(arena, loaded.factory, NULL, NULL, CONFIG_DIR, &diags);
    if (!options ||
        rung_instance_new(&loaded, options, "fuzz", CONFIG_DIR, services, &instance, &err) ||
        rung_instance_start(instance, &err))
        __builtin_trap();
    return instance;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rung_error err = rung_error_init();
    struct rung_call call = {.struct_size = sizeof call, .arena = rung_arena_new(), .error = &err};
    unsigned how = size ? data[size - 1] : 0; /* the last byte tells the conversation */
    struct rung_reply_request req = {
        .struct_size = sizeof req,
        .flags = how & 1 ? RUNG_REPLY_PLAN_ONLY : 0,
        .task = &task,
        .parent = how & 2 ? &earlier : NULL,
        .base = how & 1 ? &earlier : NULL,
        .reply = {rung_arena_strndup(call.arena, (const char *)data, size), size}};
    struct rung_reply_result result = {.struct_size = sizeof result};
    int32_t status;
    RUNG_INVOKE(status, codegen(), struct rung_codegen_ops, read_reply, &call, &req, &result);
    bool good = result.code[0] == 0;
    if (status || (good && !result.bundle) || good != (result.plan != NULL) ||
        (!good && !result.message.len) ||
        (!good && result.bundle && strcmp(result.code, "plan.error") != 0))
        __builtin_trap();
    rung_arena_free(call.arena);
    return 0;
}
