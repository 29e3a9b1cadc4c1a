#include "problem.h"

#include "base/philox.h"
#include "base/status.h"
#include "plugin/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct rung_loaded *load(struct problem *p)
{
    const struct rung_loaded *loaded;
    p->registry = rung_registry_new();
    if (rung_registry_load(p->registry, RUNG_KIND_REFERENCE, "ops", &loaded, &p->error))
        fail_msg("%s", p->error.message);
    return loaded;
}

int64_t problem_threads = 1;

static const struct rung_options *options_of(struct problem *p, const struct rung_loaded *loaded)
{
    struct rung_diags diags = {0};
    struct rung_node *group = rung_node_new(p->arena, RUNG_NODE_GROUP, NULL, "test", 1);
    struct rung_node *threads = rung_node_new(p->arena, RUNG_NODE_INT, "threads", "test", 1);
    threads->i = problem_threads;
    rung_node_append(group, threads);
    const struct rung_options *options =
        rung_options_read(p->arena, loaded->factory, group, NULL, "/", &diags);
    assert_non_null(options);
    return options;
}

void problem_open(struct problem *p, const char *graph, uint32_t precision)
{
    memset(p, 0, sizeof *p);
    p->arena = rung_arena_new();
    p->error = rung_error_init();
    p->call =
        (struct rung_call){.struct_size = sizeof p->call, .arena = p->arena, .error = &p->error};
    const struct rung_loaded *loaded = load(p);
    if (rung_instance_new(loaded, options_of(p, loaded), "ops", "/", NULL, &p->instance,
                          &p->error) ||
        rung_instance_start(p->instance, &p->error))
        fail_msg("%s", p->error.message);
    p->bench =
        (struct rung_shape_case){.struct_size = sizeof p->bench, .dims = p->values, .weight = 1};
    p->task = (struct rung_task){.struct_size = sizeof p->task,
                                 .n_bench = 1,
                                 .precision = precision,
                                 .shape_rule = RUNG_SHAPES_RANGE,
                                 .name = "t",
                                 .summary = "t",
                                 .dims = p->dims,
                                 .params = p->params,
                                 .tensors = p->tensors,
                                 .bench = &p->bench,
                                 .reference = "ops",
                                 .graph = graph};
}

void problem_close(struct problem *p)
{
    rung_instance_free(p->instance);
    rung_registry_free(p->registry);
    rung_arena_free(p->arena);
}

void problem_dim(struct problem *p, const char *name, int64_t value)
{
    p->values[p->task.n_dims] = value;
    p->dims[p->task.n_dims++] = (struct rung_dim){.struct_size = sizeof p->dims[0],
                                                  .name = name,
                                                  .value = value,
                                                  .min = 1,
                                                  .max = INT64_MAX,
                                                  .multiple_of = 1};
}

void problem_f64(struct problem *p, const char *name, double value)
{
    p->params[p->task.n_params++] = (struct rung_param){
        .struct_size = sizeof p->params[0], .dtype = RUNG_F64, .name = name, .f64 = value};
}

void problem_i64(struct problem *p, const char *name, int64_t value)
{
    p->params[p->task.n_params++] = (struct rung_param){
        .struct_size = sizeof p->params[0], .dtype = RUNG_I64, .name = name, .i64 = value};
}

static void tensor(struct problem *p, const char *name, uint32_t role, uint32_t dtype,
                   const char *shape, const void *data)
{
    uint32_t i = p->task.n_tensors++;
    struct rung_tensor_spec *t = &p->tensors[i];
    *t = (struct rung_tensor_spec){.struct_size = sizeof *t,
                                   .role = role,
                                   .dtype = dtype,
                                   .name = name,
                                   .fill = "normal",
                                   .alignment = 256};
    char *text = rung_arena_strdup(p->arena, shape);
    for (char *part; (part = strsep(&text, ",")) && *part;)
        t->shape[t->n_dims++] = part;
    p->views[i] = (struct rung_tensor_view){.struct_size = sizeof p->views[i],
                                            .dtype = dtype,
                                            .n_dims = t->n_dims,
                                            .alignment = 256,
                                            .data = data};
}

void problem_input(struct problem *p, const char *name, uint32_t dtype, const char *shape,
                   const void *data)
{
    tensor(p, name, RUNG_ROLE_INPUT, dtype, shape, data);
}

void problem_output(struct problem *p, const char *name, uint32_t dtype, const char *shape)
{
    tensor(p, name, RUNG_ROLE_OUTPUT, dtype, shape, NULL);
    p->n_outputs++;
}

int32_t problem_check(struct problem *p)
{
    int32_t status;
    p->error = rung_error_init();
    RUNG_INVOKE(status, p->instance, struct rung_reference_ops, check, &p->call, &p->task);
    return status;
}

/* Extents of the test tasks are names of dims or numbers. */
static int64_t extent(const struct problem *p, const char *text)
{
    text += strspn(text, " ");
    for (uint32_t i = 0; i < p->task.n_dims; i++)
        if (!strcmp(p->dims[i].name, text))
            return p->values[i];
    return strtoll(text, NULL, 10);
}

static void shape_views(struct problem *p)
{
    for (uint32_t i = 0; i < p->task.n_tensors; i++) {
        int64_t stride = 1;
        for (uint32_t d = p->tensors[i].n_dims; d-- > 0;) {
            p->views[i].dims[d] = extent(p, p->tensors[i].shape[d]);
            p->views[i].strides[d] = stride;
            stride *= p->views[i].dims[d];
        }
    }
}

int32_t problem_evaluate(struct problem *p)
{
    struct rung_reference_request request = {.struct_size = sizeof request,
                                             .task = &p->task,
                                             .dims = p->values,
                                             .tensors = p->views,
                                             .regions = p->with_regions ? p->regions : NULL,
                                             .n_inputs = p->task.n_tensors - p->n_outputs};
    int32_t status;
    shape_views(p);
    p->error = rung_error_init();
    RUNG_INVOKE(status, p->instance, struct rung_reference_ops, evaluate, &p->call, &request,
                p->outputs, p->n_outputs);
    return status;
}

int32_t problem_work(struct problem *p, struct rung_work *out)
{
    int32_t status;
    *out = (struct rung_work){.struct_size = sizeof *out};
    p->error = rung_error_init();
    RUNG_INVOKE(status, p->instance, struct rung_reference_ops, work, &p->call, &p->task, p->values,
                out);
    return status;
}

void problem_matrix(struct problem *p, const char *graph, int64_t rows, int64_t cols,
                    const float *x, const char *out)
{
    problem_open(p, graph, RUNG_PRECISION_FP32);
    problem_dim(p, "rows", rows);
    problem_dim(p, "cols", cols);
    problem_input(p, "x", RUNG_F32, "rows,cols", x);
    problem_output(p, "y", RUNG_F32, out);
    if (problem_evaluate(p))
        fail_msg("%s", p->error.message);
}

static double normal(uint64_t seed, uint64_t i)
{
    uint32_t w[4];
    rung_philox4(seed, 1, i, w);
    double u = ((double)w[0] + 0.5) * 0x1p-32, v = (double)w[1] * 0x1p-32;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

float *test_normal(uint64_t seed, int64_t n)
{
    return test_data("normal", seed, 1, n);
}

float *test_data(const char *kind, uint64_t seed, int64_t rows, int64_t cols)
{
    float *x = malloc((size_t)(rows * cols) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < rows * cols; i++) {
        uint64_t at = (uint64_t)i, row = (uint64_t)(i / cols);
        double n = normal(seed, at);
        if (!strcmp(kind, "offset"))
            n += 1000;
        else if (!strcmp(kind, "large"))
            n *= 1e4;
        else if (!strcmp(kind, "small"))
            n *= 1e-6;
        else if (!strcmp(kind, "zeros"))
            n = 0;
        else if (!strcmp(kind, "ones"))
            n = 1;
        else if (!strcmp(kind, "equal_rows"))
            n = normal(seed, row) + 3;
        else if (!strcmp(kind, "onehot_rows"))
            n = i % cols == (int64_t)((seed * 7919 + row * 31) % (uint64_t)cols) ? 30 : 0;
        else if (!strcmp(kind, "ramp"))
            n = (double)(i % 97 - 48) / 16;
        x[i] = (float)n;
    }
    return x;
}
