#include "verdicts.h"

#include "../session/fake_device.h"

#include "base/status.h"
#include "plugin/options.h"
#include "plugin/registry.h"
#include "task/plan.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const float *verdict_weight;
static matrix_kernel kernel_under_test;
static const char *fault_to_give;

static void launch(const struct fake_args *a, const struct rung_launch *l, struct rung_fault *f)
{
    (void)l;
    if (fault_to_give) {
        strcpy(f->code, fault_to_give);
        strcpy(f->message, "told by the device");
        strcpy(f->kernel, "k");
        f->line = 7;
        return;
    }
    verdict_weight = a->t;
    kernel_under_test(a->x, a->y, a->n,
                      a->pad); /* the third and fourth arguments are rows and cols */
}

struct bench {
    struct rung_arena *arena;
    struct rung_error error;
    struct rung_call call;
    struct rung_registry *registry;
    struct rung_instance *device, *reference, *numeric;
    struct rung_dim dims[2];
    int64_t default_dims[2];
    struct rung_tensor_spec tensors[3];
    struct rung_shape_case shape;
    struct rung_task task;
    struct rung_kernel_param params[5];
    struct rung_kernel kernel;
    struct rung_artifact artifact;
    struct rung_device_info info;
    struct rung_open_session *open;
};

static void init_task(struct bench *b, const struct trial *t)
{
    b->default_dims[0] = t->rows ? t->rows : 8;
    b->default_dims[1] = t->cols ? t->cols : 256;
    b->dims[0] = (struct rung_dim){.struct_size = sizeof b->dims[0],
                                   .name = "rows",
                                   .min = 1,
                                   .max = 4096,
                                   .value = b->default_dims[0],
                                   .multiple_of = 1};
    b->dims[1] = b->dims[0];
    b->dims[1].name = "cols";
    b->dims[1].value = b->default_dims[1];
    b->dims[1].max = INT64_MAX;
    b->dims[1].min = t->min_cols ? t->min_cols : 1;
    b->dims[1].multiple_of = t->multiple ? t->multiple : 1;
    b->tensors[0] = (struct rung_tensor_spec){.struct_size = sizeof b->tensors[0],
                                              .role = RUNG_ROLE_INPUT,
                                              .dtype = RUNG_F32,
                                              .n_dims = 2,
                                              .name = "x",
                                              .shape = {"rows", "cols"},
                                              .fill = t->fill ? t->fill : "normal",
                                              .alignment = 256};
    b->tensors[1] = b->tensors[0];
    b->tensors[1].role = RUNG_ROLE_OUTPUT;
    b->tensors[1].name = "y";
    b->tensors[1].n_dims = t->scalar ? 1 : 2;
    b->tensors[2] = b->tensors[0];
    b->tensors[2].name = "w";
    b->tensors[2].shape[0] = "cols";
    b->shape = (struct rung_shape_case){
        .struct_size = sizeof b->shape, .dims = b->default_dims, .weight = 1};
    b->task = (struct rung_task){.struct_size = sizeof b->task,
                                 .n_dims = 2,
                                 .n_tensors = t->weight ? 3 : 2,
                                 .n_bench = 1,
                                 .name = "t",
                                 .summary = "t",
                                 .precision = t->precision ? t->precision : RUNG_PRECISION_FP32,
                                 .shape_rule = t->shape_rule ? t->shape_rule : RUNG_SHAPES_RANGE,
                                 .dims = b->dims,
                                 .tensors = b->tensors,
                                 .bench = &b->shape,
                                 .reference = "ops",
                                 .graph = t->graph};
}

static void init_artifact(struct bench *b, const struct trial *t)
{
    static const uint32_t offsets[5] = {0, 8, 16, 20, 24}, sizes[5] = {8, 8, 4, 4, 8};
    for (int i = 0; i < 5; i++)
        b->params[i] = (struct rung_kernel_param){.struct_size = sizeof b->params[i],
                                                  .type = RUNG_PARAM_BITS,
                                                  .offset = offsets[i],
                                                  .size = sizes[i],
                                                  .alignment = sizes[i]};
    b->kernel = (struct rung_kernel){.struct_size = sizeof b->kernel,
                                     .n_params = t->weight ? 5 : 4,
                                     .expression = "k",
                                     .symbol = "k",
                                     .params = b->params,
                                     .param_bytes = t->weight ? 32 : 24};
    b->artifact = (struct rung_artifact){
        .struct_size = sizeof b->artifact, .n_kernels = 1, .kernels = &b->kernel};
    memset(&fake_config, 0, sizeof fake_config);
    memset(&fake_counts, 0, sizeof fake_counts);
    fake_config.memory = UINT64_C(1) << 30;
    fake_config.kernels[0].symbol = "k";
    fake_config.kernels[0].run = launch;
}

static struct rung_instance *load(struct bench *b, const char *kind, const char *name,
                                  const struct trial *t)
{
    const struct rung_loaded *loaded;
    struct rung_instance *instance;
    struct rung_diags diags = {0};
    struct rung_node *group = rung_node_new(b->arena, RUNG_NODE_GROUP, NULL, "test", 1);
    if (rung_registry_load(b->registry, kind, name, &loaded, &b->error))
        fail_msg("%s", b->error.message);
    if (t && t->option) {
        struct rung_node *node = rung_node_new(b->arena, RUNG_NODE_INT, t->option, "test", 1);
        node->i = t->value;
        rung_node_append(group, node);
    }
    struct rung_options *options =
        rung_options_read(b->arena, loaded->factory, group, NULL, "/", &diags);
    if (!options)
        fail_msg("options of %s are refused", name);
    if (rung_instance_new(loaded, options, name, "/", NULL, &instance, &b->error) ||
        rung_instance_start(instance, &b->error))
        fail_msg("%s", b->error.message);
    return instance;
}

static void open_session(struct bench *b, const struct trial *t)
{
    const char *plan = t->weight ? "//@ launch k grid=(1) block=(32) args=(x, y, rows, cols, w)\n"
                                 : "//@ launch k grid=(1) block=(32) args=(x, y, rows, cols)\n";
    const char *problem = NULL;
    struct rung_fault fault = {.struct_size = sizeof fault};
    struct rung_session_spec spec = {.device = b->device,
                                     .reference = b->reference,
                                     .info = &b->info,
                                     .task = &b->task,
                                     .artifact = &b->artifact};
    spec.plan = rung_plan_parse(b->arena, &b->task, "k.cu", rung_text_of(plan), &problem);
    if (!spec.plan)
        fail_msg("%s", problem);
    spec.point = rung_plan_default_point(spec.plan);
    if (rung_session_open(&spec, &b->call, &b->open, &fault) || !b->open)
        fail_msg("%s %s", b->error.message, fault.message);
}

static void bench_open(struct bench *b, const struct trial *t)
{
    int32_t status;
    memset(b, 0, sizeof *b);
    b->arena = rung_arena_new();
    b->error = rung_error_init();
    b->call =
        (struct rung_call){.struct_size = sizeof b->call, .arena = b->arena, .error = &b->error};
    b->registry = rung_registry_new();
    kernel_under_test = t->kernel;
    fault_to_give = t->fault;
    init_task(b, t);
    init_artifact(b, t);
    fake_config.flags = t->flags;
    assert_int_equal(
        rung_instance_new(&fake_device_loaded, NULL, "fake", "/", NULL, &b->device, &b->error), 0);
    RUNG_INVOKE(status, b->device, struct rung_device_ops, info, &b->call, &b->info);
    assert_int_equal(status, RUNG_OK);
    b->reference = load(b, RUNG_KIND_REFERENCE, "ops", NULL);
    b->numeric = load(b, RUNG_KIND_VERIFIER, "numeric", t);
    open_session(b, t);
}

static void bench_close(struct bench *b)
{
    rung_session_close(b->open);
    rung_instance_free(b->numeric);
    rung_instance_free(b->reference);
    rung_instance_free(b->device);
    rung_registry_free(b->registry);
    rung_arena_free(b->arena);
    assert_int_equal(fake_counts.buffers, 0);
}

static void take(struct outcome *o, const struct rung_verdict *v)
{
    o->status = v->status;
    memcpy(o->code, v->code, sizeof o->code);
    snprintf(o->detail, sizeof o->detail, "%s", v->detail.ptr ? v->detail.ptr : "");
    if (!v->metrics)
        return;
    cJSON *json = rung_map_to_json(v->metrics);
    char *text = cJSON_PrintUnformatted(json);
    snprintf(o->metrics, sizeof o->metrics, "%s", text);
    free(text);
    cJSON_Delete(json);
}

int verdict_whole;

static int32_t compare_whole(const struct rung_session *session, struct rung_call *call,
                             struct rung_run *run, uint32_t tensor, struct rung_comparison *out)
{
    verdict_whole++;
    return session->compare(session, call, run, tensor, out);
}

struct outcome judge(const struct trial *trial)
{
    struct bench b;
    struct outcome o = {0};
    struct rung_verdict verdict = {.struct_size = sizeof verdict};
    bench_open(&b, trial);
    if (trial->cancelled) {
        b.call.cancel = rung_cancel_new();
        rung_cancel_request(b.call.cancel);
    }
    struct rung_session table = *rung_session_table(b.open);
    if (trial->fast) {
        table.flags |= RUNG_SESSION_FAST_COMPARE;
        table.compare_fast = compare_whole;
    }
    RUNG_INVOKE(o.error, b.numeric, struct rung_verifier_ops, check, &b.call, &table, &verdict);
    if (o.error && !trial->cancelled)
        fail_msg("check: %s", b.error.message);
    take(&o, &verdict);
    o.launches = fake_counts.launches;
    rung_cancel_free(b.call.cancel);
    bench_close(&b);
    return o;
}

void expect_fail(const struct trial *trial, const char *code, const char *says)
{
    struct outcome o = judge(trial);
    if (o.status != RUNG_FAIL || strcmp(o.code, code))
        fail_msg("status %u, code '%s' instead of %s: %s", o.status, o.code, code, o.detail);
    if (says)
        support_contains(o.detail, says);
}

void expect_pass(const struct trial *trial)
{
    struct outcome o = judge(trial);
    if (o.status != RUNG_PASS || o.code[0])
        fail_msg("status %u, code '%s': %s", o.status, o.code, o.detail);
}
