/*
 * Times of the session's kernels and of the reference on the device, for a person with a GPU:
 *   RUNG_TEST_DEVICE=cuda bench_gpu [ELEMENTS [TASK.cfg...]]
 * draws, watches and compares so many float32 (2^28 without a number), then evaluates each task at
 * its first bench shape and compares the first row of each output with the host's.
 */
#include "session/gpu/rig.h"

#include "config/config.h"
#include "session/session.h"
#include "task/task.h"
#include <rung/reference.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 16 };

static struct rig rig;
static struct session_gpu *gpu;
static struct rung_instance *reference;

/* ---- Kernels of the session ---- */

static void time_session(uint64_t n)
{
    const struct rung_fill fill = {.struct_size = sizeof fill, .kind = "normal"};
    const struct session_gpu_range range = {rig_buffer(&rig, NULL, n * 4), 0, RUNG_F32, n};
    struct rung_buffer *value = rig_buffer(&rig, NULL, n * 8),
                       *bound = rig_buffer(&rig, NULL, n * 8);
    const struct session_gpu_range wide = {value, 0, RUNG_F64, n}, zeros = {bound, 0, RUNG_F64, n};
    const struct rung_fill ones = {.struct_size = sizeof ones, .kind = "ones", .scale = 1e-7};
    uint8_t poison[4088];
    struct rung_comparison c = {.struct_size = sizeof c};
    bool same = false;
    memset(poison, 0xa5, sizeof poison);
    for (int round = 0; round < 3; round++) {
        double start = rig_ms(&rig);
        rig_good(&rig, session_gpu_draw(gpu, &rig.call, &range, &fill, 1, 1));
        double drawn = rig_ms(&rig);
        rig_good(&rig, session_gpu_same(gpu, &rig.call, &range, &fill, 1, 1, &same));
        double watched = rig_ms(&rig);
        rig_good(&rig, session_gpu_draw(gpu, &rig.call, &wide, &fill, 1, 1));
        rig_good(&rig, session_gpu_draw(gpu, &rig.call, &zeros, &ones, 1, 1));
        double ready = rig_ms(&rig);
        rig_good(&rig, session_gpu_compare(gpu, &rig.call, &range, poison, sizeof poison,
                                           RUNG_PRECISION_FP32, value, bound, &c));
        double compared = rig_ms(&rig);
        rig_good(&rig,
                 session_gpu_same_bytes(gpu, &rig.call, value, 0, 0, 1, value, 0, n * 8, &same));
        printf("%llu f32: draw %.2f ms, same %.2f ms, compare %.2f ms (bad %llu, worst %.3g, rmse "
               "%.3g), "
               "same_bytes of %llu MiB %.2f ms%s\n",
               (unsigned long long)n, drawn - start, watched - drawn, compared - ready,
               (unsigned long long)c.n_bad, c.worst, c.rmse, (unsigned long long)(n * 8 >> 20),
               rig_ms(&rig) - compared, same ? "" : " DIFFERENT");
    }
    rig_free(&rig, range.buffer);
    rig_free(&rig, value);
    rig_free(&rig, bound);
}

/* ---- The reference ---- */

struct problem {
    const struct rung_task *task;
    const int64_t *dims;
    struct rung_tensor_view host[MOST_TENSORS], device[MOST_TENSORS];
    struct rung_region regions[MOST_TENSORS];
    struct rung_buffer *buffers[MOST_TENSORS];
    void *memory[MOST_TENSORS];
};

static uint64_t shape_view(const struct problem *p, uint32_t i, struct rung_tensor_view *view)
{
    const struct rung_tensor_spec *spec = &p->task->tensors[i];
    int64_t shape[RUNG_MAX_DIMS], stride = 1;
    assert_int_equal(rung_task_shape(p->task, i, p->dims, shape, &rig.error), RUNG_OK);
    *view = (struct rung_tensor_view){
        .struct_size = sizeof *view, .dtype = spec->dtype, .n_dims = spec->n_dims, .alignment = 16};
    for (uint32_t d = spec->n_dims; d-- > 0; stride *= shape[d]) {
        view->dims[d] = shape[d];
        view->strides[d] = stride;
    }
    return (uint64_t)stride;
}

static void draw_inputs(struct problem *p)
{
    const struct rung_device_ops *ops = rig.device->ops;
    for (uint32_t i = 0; i < p->task->n_tensors; i++) {
        const struct rung_tensor_spec *spec = &p->task->tensors[i];
        uint64_t n = shape_view(p, i, &p->host[i]), bytes = n * rung_dtype_bits(spec->dtype) / 8;
        const struct rung_fill fill = {.struct_size = sizeof fill, .tensor = i, .kind = spec->fill};
        p->device[i] = p->host[i];
        p->regions[i] =
            (struct rung_region){.struct_size = sizeof p->regions[i], .n_dims = spec->n_dims};
        for (uint32_t d = 0; d < spec->n_dims; d++)
            p->regions[i].count[d] = d + 1 == spec->n_dims ? p->host[i].dims[d] : 1;
        if (spec->role == RUNG_ROLE_OUTPUT)
            continue;
        p->memory[i] = malloc(bytes);
        assert_int_equal(rung_fill_draw(&fill, spec->dtype, 3, 0, n,
                                        p->host[i].dims[spec->n_dims - 1], p->memory[i]),
                         RUNG_OK);
        p->buffers[i] = rig_buffer(&rig, p->memory[i], bytes);
        p->host[i].data = p->memory[i];
        p->device[i].data = (const void *)(uintptr_t)ops->address(rig.device->self, p->buffers[i]);
    }
}

/* The largest difference of values over the bound, and of bounds over the bound, in the first row.
 */
static void show_row(const struct rung_reference_output *want,
                     const struct rung_reference_device_output *got)
{
    double *value = malloc(want->n * 8), *bound = malloc(want->n * 8), worst = 0, apart = 0;
    rig_read(&rig, got->value, value, want->n * 8);
    rig_read(&rig, got->bound, bound, want->n * 8);
    for (uint64_t i = 0; i < want->n; i++) {
        worst = fmax(worst, fabs(value[i] - want->value[i]) / want->bound[i]);
        apart = fmax(apart, fabs(bound[i] - want->bound[i]) / want->bound[i]);
    }
    printf("; %llu elements against the host: values %.2g of the bound apart, bounds %.2g\n",
           (unsigned long long)want->n, worst, apart);
    free(value);
    free(bound);
}

static void evaluate(struct problem *p, struct rung_reference_device_output *out, uint32_t n)
{
    const struct rung_reference_request request = {
        .struct_size = sizeof request, .task = p->task, .dims = p->dims, .tensors = p->device};
    int32_t status;
    RUNG_INVOKE(status, reference, struct rung_reference_ops, evaluate_device, &rig.call, &request,
                out, n);
    rig_good(&rig, status);
}

static void time_task(const char *path)
{
    struct rung_diags diags = {0};
    struct rung_node *root = rung_config_task(rig.arena, path, &diags);
    struct problem p = {.task = root ? rung_task_read(rig.arena, root, &diags) : NULL};
    struct rung_reference_device_output out[MOST_TENSORS];
    struct rung_reference_output want[MOST_TENSORS];
    uint32_t n = 0;
    int32_t status;
    if (!p.task)
        fail_msg("%s", rung_buf_text(&diags.text));
    p.dims = p.task->bench[0].dims;
    for (uint32_t i = 0; i < p.task->n_tensors; i++)
        n += p.task->tensors[i].role == RUNG_ROLE_OUTPUT;
    draw_inputs(&p);
    printf("%-28s", p.task->name);
    for (int round = 0; round < 3; round++) {
        double start = rig_ms(&rig);
        evaluate(&p, out, n);
        printf("%s%.1f ms", round ? ", " : "", rig_ms(&rig) - start);
        for (uint32_t i = 0; round < 2 && i < n; i++) {
            rig_free(&rig, out[i].value);
            rig_free(&rig, out[i].bound);
        }
    }
    const struct rung_reference_request request = {.struct_size = sizeof request,
                                                   .task = p.task,
                                                   .dims = p.dims,
                                                   .tensors = p.host,
                                                   .regions = p.regions};
    RUNG_INVOKE(status, reference, struct rung_reference_ops, evaluate, &rig.call, &request, want,
                n);
    rig_good(&rig, status);
    show_row(&want[0], &out[0]);
    for (uint32_t i = 0; i < n; i++) {
        rig_free(&rig, out[i].value);
        rig_free(&rig, out[i].bound);
    }
    for (uint32_t i = 0; i < p.task->n_tensors; i++) {
        rig_free(&rig, p.buffers[i]);
        free(p.memory[i]);
    }
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : UINT64_C(1) << 28;
    if (!rig_open(&rig))
        return 77;
    double start = rig_ms(&rig);
    gpu = rig_session(&rig);
    printf("%s: the session's kernels were ready after %.0f ms\n", rig.info.name,
           rig_ms(&rig) - start);
    reference = rig_make(&rig, RUNG_KIND_REFERENCE, "ops", "{}");
    if (n)
        time_session(n);
    for (int i = 2; i < argc; i++)
        time_task(argv[i]);
    rung_instance_free(reference);
    session_gpu_free(gpu);
    rig_close(&rig);
    return 0;
}
