/*
 * libFuzzer entry for the graph language of the `ops` reference: any text is checked and, when it
 * passes, evaluated on a small task. Built with the sources of plugins/verify/ops and
 * core/base/arena.c.
 */
#include "base/arena.h"

#include <rung/reference.h>

#include <stdlib.h>
#include <string.h>

RUNG_EXPORT const struct rung_plugin *rung_plugin_v0(uint32_t host_major, uint32_t host_draft);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *host_alloc(const struct rung_host *host, struct rung_arena *arena, uint64_t size,
                        uint64_t align)
{
    (void)host;
    return rung_arena_alloc(arena, size, align);
}

static int64_t host_opt_int(const struct rung_host *host, const struct rung_options *options,
                            const char *name)
{
    (void)host, (void)options;
    return strcmp(name, "memory") ? 1 : 16; /* one thread, 16 MiB */
}

static const struct rung_host host = {.struct_size = sizeof host,
                                      .abi_major = RUNG_ABI_MAJOR,
                                      .abi_draft = RUNG_ABI_DRAFT,
                                      .name = "fuzz",
                                      .alloc = host_alloc,
                                      .opt_int = host_opt_int};

static const int64_t dims[2] = {3, 5};
static const struct rung_dim dim_table[2] = {{.struct_size = sizeof(struct rung_dim),
                                              .name = "n",
                                              .value = 3,
                                              .min = 1,
                                              .max = 9,
                                              .multiple_of = 1},
                                             {.struct_size = sizeof(struct rung_dim),
                                              .name = "m",
                                              .value = 5,
                                              .min = 1,
                                              .max = 9,
                                              .multiple_of = 1}};
static const struct rung_param params[1] = {
    {.struct_size = sizeof(struct rung_param), .dtype = RUNG_F64, .name = "a", .f64 = 0.5}};
static const struct rung_tensor_spec tensors[3] = {{.struct_size = sizeof(struct rung_tensor_spec),
                                                    .role = RUNG_ROLE_INPUT,
                                                    .dtype = RUNG_F32,
                                                    .n_dims = 2,
                                                    .name = "x",
                                                    .shape = {"n", "m"},
                                                    .alignment = 256},
                                                   {.struct_size = sizeof(struct rung_tensor_spec),
                                                    .role = RUNG_ROLE_WEIGHT,
                                                    .dtype = RUNG_F16,
                                                    .n_dims = 1,
                                                    .name = "w",
                                                    .shape = {"m"},
                                                    .alignment = 256},
                                                   {.struct_size = sizeof(struct rung_tensor_spec),
                                                    .role = RUNG_ROLE_OUTPUT,
                                                    .dtype = RUNG_F32,
                                                    .n_dims = 2,
                                                    .name = "y",
                                                    .shape = {"n", "m"},
                                                    .alignment = 256}};
static const float x[15] = {0, 1,  -1,   1e30f,  -1e30f, 1e-30f, 3, 2,
                            7, -5, 0.5f, 1e-40f, 100,    -100,   8};
static const uint16_t w[5] = {0, 0x3c00, 0xbc00, 0x7c00, 0x7e00};

static const struct rung_tensor_view views[3] = {{.struct_size = sizeof views[0],
                                                  .dtype = RUNG_F32,
                                                  .n_dims = 2,
                                                  .dims = {3, 5},
                                                  .strides = {5, 1},
                                                  .data = x},
                                                 {.struct_size = sizeof views[0],
                                                  .dtype = RUNG_F16,
                                                  .n_dims = 1,
                                                  .dims = {5},
                                                  .strides = {1},
                                                  .data = w},
                                                 {.struct_size = sizeof views[0],
                                                  .dtype = RUNG_F32,
                                                  .n_dims = 2,
                                                  .dims = {3, 5},
                                                  .strides = {5, 1}}};

/* A graph that check takes must evaluate, unless it is too large. */
static int run(const struct rung_reference_ops *ops, void *self, struct rung_call *call,
               struct rung_reference_request *request, struct rung_reference_output *output)
{
    int32_t status = ops->evaluate(self, call, request, output, 1);
    if (status && status != RUNG_ENOMEM)
        abort();
    return !status;
}

/* A box has the bits of the whole. */
static void evaluate_box(const struct rung_reference_ops *ops, void *self, struct rung_call *call,
                         struct rung_reference_request *request, const double *whole)
{
    struct rung_region regions[3] = {{.struct_size = sizeof regions[0]}};
    struct rung_reference_output output = {.struct_size = sizeof output};
    regions[2] = (struct rung_region){
        .struct_size = sizeof regions[2], .n_dims = 2, .start = {1, 2}, .count = {2, 2}};
    request->regions = regions;
    if (!run(ops, self, call, request, &output))
        return;
    for (int i = 0; i < 4; i++) {
        const double *want = whole + 2 * (5 * (1 + i / 2) + 2 + i % 2);
        double got[2] = {output.value[i], output.bound[i]};
        if (memcmp(got, want, sizeof got) && !(got[0] != got[0] && want[0] != want[0]))
            abort();
    }
}

static void evaluate(const struct rung_reference_ops *ops, void *self, struct rung_call *call,
                     const struct rung_task *task)
{
    struct rung_reference_request request = {
        .struct_size = sizeof request, .n_inputs = 2, .task = task, .dims = dims, .tensors = views};
    struct rung_reference_output output = {.struct_size = sizeof output};
    double whole[30];
    if (!run(ops, self, call, &request, &output))
        return;
    for (uint64_t i = 0; i < output.n; i++) {
        if (!(output.bound[i] >= 0))
            abort();
        whole[2 * i] = output.value[i];
        whole[2 * i + 1] = output.bound[i];
    }
    evaluate_box(ops, self, call, &request, whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rung_factory *factory =
        rung_plugin_v0(RUNG_ABI_MAJOR, RUNG_ABI_DRAFT)->factories[0];
    const struct rung_reference_ops *ops = factory->ops;
    struct rung_error error = {.struct_size = sizeof error};
    struct rung_call call = {
        .struct_size = sizeof call, .arena = rung_arena_new(), .error = &error};
    char *graph = rung_arena_strndup(call.arena, (const char *)data, size);
    struct rung_task task = {.struct_size = sizeof task,
                             .n_dims = 2,
                             .n_params = 1,
                             .n_tensors = 3,
                             .precision = 1 + size % 6,
                             .name = "t",
                             .dims = dim_table,
                             .params = params,
                             .tensors = tensors,
                             .reference = "ops",
                             .graph = graph};
    void *self = NULL;
    if (factory->create(&host, NULL, &error, &self) == RUNG_OK) {
        if (ops->check(self, &call, &task) == RUNG_OK)
            evaluate(ops, self, &call, &task);
        factory->destroy(self);
    }
    rung_arena_free(call.arena);
    return 0;
}
