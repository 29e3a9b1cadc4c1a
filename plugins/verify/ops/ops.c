/*
 * reference "ops": evaluates the graph of a task in float64, with the error that honest arithmetic
 * of the task's precision explains. One evaluation at a time an instance; results belong to the
 * instance and live until its next evaluation.
 */
#include "gpu/gpu.h"
#include "ops.h"

#include <stdlib.h>
#include <unistd.h>

struct ops_self {
    const struct rung_host *host;
    uint32_t threads;
    struct ops_memory memory;
    struct ops_tensor **kept; /* outputs of the last evaluation */
    uint32_t n_kept;
    struct ops_gpu_module module; /* on the device */
};

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *err, void **self)
{
    struct ops_self *s = calloc(1, sizeof *s);
    if (!s) {
        err->code = RUNG_ENOMEM;
        return RUNG_ENOMEM;
    }
    s->host = host;
    s->threads = (uint32_t)host->opt_int(host, set, "threads");
    if (!s->threads)
        s->threads = ops_processors();
    s->memory.limit = (uint64_t)host->opt_int(host, set, "memory") << 20;
    if (!s->memory.limit)
        s->memory.limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    *self = s;
    return RUNG_OK;
}

static void forget(struct ops_self *s)
{
    for (uint32_t i = 0; i < s->n_kept; i++)
        ops_tensor_drop(s->kept[i]);
    free(s->kept);
    s->kept = NULL;
    s->n_kept = 0;
}

static void stop(void *self)
{
    struct ops_self *s = self;
    ops_gpu_unload(s->host, &s->module);
}

static void destroy(void *self)
{
    forget(self);
    free(self);
}

static struct ops_eval evaluation(struct ops_self *s, struct rung_call *call,
                                  const struct rung_task *task, const int64_t *dims)
{
    return (struct ops_eval){.who = {s->host, call, "graph"},
                             .task = task,
                             .dims = dims,
                             .arith = ops_arith_of(task->precision),
                             .memory = &s->memory,
                             .threads = s->threads};
}

static int32_t default_dims(const struct ops_self *s, struct rung_call *call,
                            const struct rung_task *task, const int64_t **out)
{
    struct ops_who who = {s->host, call, "graph"};
    int64_t *dims = s->host->alloc(s->host, call->arena, (task->n_dims + 1) * sizeof *dims, 8);
    if (!dims)
        return ops_no_memory(&who);
    for (uint32_t i = 0; i < task->n_dims; i++)
        dims[i] = task->dims[i].value;
    *out = dims;
    return RUNG_OK;
}

static int32_t check(void *self, struct rung_call *call, const struct rung_task *task)
{
    struct ops_self *s = self;
    const int64_t *dims = NULL;
    int32_t status = default_dims(s, call, task, &dims);
    if (status)
        return status;
    struct ops_eval ev = evaluation(s, call, task, dims);
    status = ops_eval_build(&ev, NULL);
    ops_eval_end(&ev);
    return status;
}

static int32_t check_views(const struct ops_eval *ev, const struct rung_tensor_view *views)
{
    for (uint32_t i = 0; i < ev->task->n_tensors; i++) {
        const struct rung_tensor_spec *spec = &ev->task->tensors[i];
        int64_t shape[RUNG_MAX_DIMS];
        if (spec->role == RUNG_ROLE_OUTPUT)
            continue;
        int32_t status = ops_task_shape(&ev->who, ev->task, ev->dims, i, shape);
        if (status)
            return status;
        int good =
            views[i].data && views[i].n_dims == spec->n_dims && views[i].dtype == spec->dtype;
        for (uint32_t d = 0; good && d < spec->n_dims; d++)
            good = views[i].dims[d] == shape[d];
        if (!good)
            return ops_fail(&ev->who, RUNG_EINVAL, 0, "the view of '%s' does not fit the task",
                            spec->name);
    }
    return RUNG_OK;
}

/* The box that is wanted of an output; whole without regions. 0 when it is not wanted. */
static int wanted(const struct ops_eval *ev, const struct rung_region *regions, uint32_t tensor,
                  struct ops_box *box)
{
    const struct ops_value *v = ev->outputs[tensor];
    *box = ops_whole(v);
    if (!regions)
        return 1;
    for (uint32_t d = 0; v->n > 1 && d < v->n_dims; d++) {
        box->start[d] = regions[tensor].start[d];
        box->count[d] = regions[tensor].count[d];
    }
    return !regions[tensor].skip;
}

static int32_t check_region(const struct ops_eval *ev, const struct rung_region *region,
                            uint32_t tensor)
{
    const struct rung_tensor_spec *spec = &ev->task->tensors[tensor];
    int64_t shape[RUNG_MAX_DIMS];
    int32_t status = ops_task_shape(&ev->who, ev->task, ev->dims, tensor, shape);
    int good = region->n_dims == spec->n_dims;
    for (uint32_t d = 0; !status && good && d < spec->n_dims; d++)
        good = region->start[d] >= 0 && region->count[d] >= 1 && region->count[d] <= shape[d] &&
               region->start[d] <= shape[d] - region->count[d];
    if (status || good)
        return status;
    return ops_fail(&ev->who, RUNG_EINVAL, 0, "the region of '%s' is not inside it", spec->name);
}

static int32_t want_outputs(struct ops_eval *ev, const struct rung_region *regions)
{
    struct ops_box box;
    for (uint32_t i = 0; i < ev->task->n_tensors; i++) {
        if (!ev->outputs[i])
            continue;
        int32_t status = regions && !regions[i].skip ? check_region(ev, &regions[i], i) : RUNG_OK;
        if (status)
            return status;
        if (wanted(ev, regions, i, &box))
            ops_want(ev->outputs[i], &box);
    }
    return RUNG_OK;
}

/* The box alone and with bounds. */
static int32_t own(struct ops_eval *ev, struct ops_value *v, const struct ops_box *box,
                   struct ops_tensor **out)
{
    struct ops_tensor *t, *copy;
    int32_t status = ops_take(ev, v, box, &t);
    *out = t;
    if (status)
        return status;
    if (t->refs > 1) {
        status = ops_tensor_new(ev, t->n_dims, t->dims, 1, &copy);
        for (uint64_t i = 0; !status && i < t->n; i++) {
            copy->v[i] = t->v[i];
            copy->e[i] = t->e ? t->e[i] : 0;
        }
        ops_tensor_drop(t);
        *out = copy;
    }
    return status ? status : ops_tensor_need_errors(ev, *out);
}

static int32_t keep_output(struct ops_self *s, struct ops_eval *ev,
                           const struct rung_region *regions, uint32_t tensor,
                           struct rung_reference_output *out)
{
    struct ops_tensor *t;
    struct ops_box box;
    *out = (struct rung_reference_output){.struct_size = sizeof *out, .tensor = tensor};
    if (!wanted(ev, regions, tensor, &box))
        return RUNG_OK;
    int32_t status = own(ev, ev->outputs[tensor], &box, &t);
    s->kept[s->n_kept++] = t;
    if (status)
        return status;
    ops_finish(ev, t, ev->task->tensors[tensor].dtype);
    out->n = t->n;
    out->value = t->v;
    out->bound = t->e;
    return RUNG_OK;
}

static int32_t keep_outputs(struct ops_self *s, struct ops_eval *ev,
                            const struct rung_region *regions,
                            struct rung_reference_output *outputs, uint32_t n_outputs)
{
    uint32_t n = 0;
    int32_t status = RUNG_OK;
    s->kept = calloc(ev->task->n_tensors + 1, sizeof(struct ops_tensor *));
    if (!s->kept)
        return ops_no_memory(&ev->who);
    for (uint32_t i = 0; i < ev->task->n_tensors && !status; i++) {
        if (!ev->outputs[i])
            continue;
        if (n == n_outputs)
            return ops_fail(&ev->who, RUNG_EINVAL, 0, "room for %u outputs is too little",
                            n_outputs);
        status = keep_output(s, ev, regions, i, &outputs[n++]);
    }
    if (!status && n != n_outputs)
        return ops_fail(&ev->who, RUNG_EINVAL, 0, "the task has %u outputs, not %u", n, n_outputs);
    return status;
}

static int32_t evaluate(void *self, struct rung_call *call,
                        const struct rung_reference_request *request,
                        struct rung_reference_output *outputs, uint32_t n_outputs)
{
    struct ops_self *s = self;
    struct ops_eval ev = evaluation(s, call, request->task, request->dims);
    const struct rung_region *regions = RUNG_HAS(request, regions) ? request->regions : NULL;
    forget(s);
    int32_t status = check_views(&ev, request->tensors);
    if (!status)
        status = ops_eval_build(&ev, request->tensors);
    if (!status)
        status = want_outputs(&ev, regions);
    if (!status)
        status = ops_run(&ev);
    if (!status)
        status = keep_outputs(s, &ev, regions, outputs, n_outputs);
    ops_eval_end(&ev);
    return status;
}

/* Kernels take inputs as they lie in memory: dense. */
static int32_t check_dense(const struct ops_eval *ev, const struct rung_tensor_view *views)
{
    int64_t strides[RUNG_MAX_DIMS];
    for (uint32_t i = 0; i < ev->task->n_tensors; i++) {
        const struct rung_tensor_view *view = &views[i];
        int good = ev->task->tensors[i].role == RUNG_ROLE_OUTPUT || view->offset == 0;
        ops_strides(view->n_dims, view->dims, strides);
        for (uint32_t d = 0; view->data && d < view->n_dims; d++)
            good &= view->strides[d] == strides[d];
        if (!good)
            return ops_fail(&ev->who, RUNG_EUNSUPPORTED, 0, "'%s' is not dense",
                            ev->task->tensors[i].name);
    }
    return RUNG_OK;
}

static int32_t evaluate_device(void *self, struct rung_call *call,
                               const struct rung_reference_request *request,
                               struct rung_reference_device_output *outputs, uint32_t n_outputs)
{
    struct ops_self *s = self;
    struct ops_eval ev = evaluation(s, call, request->task, request->dims);
    int32_t status = check_views(&ev, request->tensors);
    if (!status)
        status = check_dense(&ev, request->tensors);
    if (!status)
        status = ops_eval_build(&ev, request->tensors);
    if (!status)
        status = ops_gpu_evaluate(&ev, &s->module, outputs, n_outputs);
    ops_eval_end(&ev);
    return status;
}

/* Bytes of every tensor once; an inout tensor is read and written. */
static int32_t least_bytes(const struct ops_eval *ev, double *out)
{
    *out = 0;
    for (uint32_t i = 0; i < ev->task->n_tensors; i++) {
        const struct rung_tensor_spec *spec = &ev->task->tensors[i];
        int64_t shape[RUNG_MAX_DIMS];
        int32_t status = ops_task_shape(&ev->who, ev->task, ev->dims, i, shape);
        if (status)
            return status;
        double bytes = rung_dtype_bits(spec->dtype) / 8.0;
        for (uint32_t d = 0; d < spec->n_dims; d++)
            bytes *= (double)shape[d];
        *out += spec->role == RUNG_ROLE_INOUT ? 2 * bytes : bytes;
    }
    return RUNG_OK;
}

static int32_t work(void *self, struct rung_call *call, const struct rung_task *task,
                    const int64_t *dims, struct rung_work *out)
{
    struct ops_eval ev = evaluation(self, call, task, dims);
    int32_t status = ops_eval_build(&ev, NULL);
    if (!status)
        status = least_bytes(&ev, &out->min_bytes);
    out->flops = ev.flops;
    ops_eval_end(&ev);
    return status;
}

static const struct rung_option threads_option = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_ADVANCED,
    .name = "threads",
    .default_text = "0",
    .unit = "threads",
    .summary = "Threads of one evaluation; 0: as many as the process may use, at most 16",
    .min = 0,
    .max = 32};
static const struct rung_option memory_option = {
    .struct_size = sizeof(struct rung_option),
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_ADVANCED,
    .name = "memory",
    .default_text = "0",
    .unit = "MiB",
    .summary = "Memory that the elements of one evaluation may take; 0: as much as the machine has",
    .min = 0,
    .max = INT32_MAX};
static const struct rung_option *const options[] = {&threads_option, &memory_option, NULL};

static const struct rung_reference_ops reference_ops = {
    .struct_size = sizeof(struct rung_reference_ops),
    .check = check,
    .evaluate = evaluate,
    .work = work,
    .evaluate_device = evaluate_device,
};

static const struct rung_factory factory = {
    .struct_size = sizeof(struct rung_factory),
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_REFERENCE,
    .name = "ops",
    .summary = "Evaluates a graph of PyTorch-like operators in float64, with error bounds",
    .doc = "The task's reference.graph holds statements `name = expression` separated by `;`. "
           "Every output\n"
           "of the task must be assigned. Operators have PyTorch's names and meaning and broadcast "
           "as\n"
           "there. Each element of the result comes with the largest error that an honest kernel "
           "of the\n"
           "task's precision can make.",
    .options = options,
    .ops = &reference_ops,
    .create = create,
    .stop = stop,
    .destroy = destroy,
};

static const struct rung_factory *const factories[] = {&factory, NULL};

static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC,
    .struct_size = sizeof(struct rung_plugin),
    .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT,
    .id = "org.rung.reference.ops",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
