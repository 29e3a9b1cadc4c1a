/*
 * baseline "cudnn": one layer, or a convolution with what follows it, by cuDNN. What the library's
 * heuristics propose is tried on the device and the fastest is kept.
 */
#include "../common/library.h"
#include "chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cudnn {
    const struct rung_host *host;
    char library[4096]; /* option */
    int tf32;           /* option math */
    struct dnn_api api;
    int loaded;
    dnn_handle handle;
};

struct cudnn_case {
    struct cudnn *owner;
    struct chains chains;
    uint32_t way;
    char label[256];
};

static int32_t load(struct cudnn *self, struct rung_call *call)
{
    static const char *const files[] = {"libcudnn.so.9", NULL};
    static const char *const wheels[] = {"nvidia/cudnn/lib", NULL};
    static const struct bench_library library = {
        "cuDNN", files, wheels,
        "install cuDNN 9 (a toolkit's, or the wheel nvidia-cudnn-cu13), or name libcudnn.so.9 with "
        "the option `library`"};
    char path[4096];
#define DNN_SYMBOL(member, symbol, params) {#symbol, &self->api.member},
    const struct bench_symbol symbols[] = {
        DNN_FUNCTIONS(DNN_SYMBOL){"cudnnGetErrorString", &self->api.status_text},
        {"cudnnGetLastErrorString", &self->api.last_error},
        {NULL, NULL}};
#undef DNN_SYMBOL
    if (self->loaded)
        return RUNG_OK;
    int32_t status = bench_library_open(&library, self->library, symbols, path, call->error);
    self->loaded = status == RUNG_OK;
    return status;
}

/* The handle is of the context that is current, and queues on the device's stream. */
static int32_t open_handle(struct cudnn *self, struct rung_call *call, void *stream)
{
    int32_t status = load(self, call);
    int failed = 0;
    if (status)
        return status;
    if (!self->handle)
        failed = self->api.create(&self->handle);
    if (failed)
        self->handle = NULL;
    else
        failed = self->api.set_stream(self->handle, stream);
    return failed ? bench_fail(call->error, RUNG_EUNAVAILABLE, "cudnn.start",
                               "cuDNN does not start: %s", self->api.status_text(failed))
                  : RUNG_OK;
}

/* ---- Preparing ---- */

static int32_t run(void *ctx, struct rung_call *call, uint32_t way, const uint64_t *addresses,
                   uint64_t scratch)
{
    struct cudnn_case *c = ctx;
    char last[300] = "";
    int failed = chains_run(&c->chains, way, addresses, scratch);
    if (!failed)
        return RUNG_OK;
    c->owner->api.last_error(last, sizeof last);
    last[sizeof last - 1] = '\0';
    return bench_unsupported(call, "cuDNN", "%s %.280s", c->owner->api.status_text(failed), last);
}

/* All tensors must be of one dtype that cuDNN has. */
static int one_dtype(const struct bench_problem *p)
{
    uint32_t dtype = p->tensors[0].dtype;
    for (uint32_t i = 1; i < p->task->n_tensors; i++)
        if (p->tensors[i].dtype != dtype)
            return 0;
    return dtype == RUNG_F64 || dtype == RUNG_F32 || dtype == RUNG_F16 || dtype == RUNG_BF16;
}

static const char *math_of(uint32_t dtype, int tf32, const struct net *net)
{
    if (dtype == RUNG_F16)
        return "fp16, fp32 accumulation";
    if (dtype == RUNG_BF16)
        return "bf16, fp32 accumulation";
    if (dtype == RUNG_F64)
        return "fp64";
    return tf32 && net->kind == NET_CONV ? "tf32" : "fp32";
}

static int32_t pick(struct cudnn_case *c, struct rung_call *call,
                    const struct bench_problem *problem, const struct bench_gpu *gpu)
{
    struct bench_ways ways = {.n = chains_ways(&c->chains), .ctx = c, .enqueue = run};
    char name[96], last[64] = "";
    uint32_t n_good, plan;
    uint64_t scratch = 0;
    net_name(&c->chains.net, name, sizeof name);
    if (!ways.n)
        return bench_unsupported(call, "cuDNN", "%s: %s", name, c->chains.words);
    for (uint32_t i = 0; i < ways.n; i++) {
        uint64_t bytes = chains_scratch(&c->chains, i);
        scratch = bytes > scratch ? bytes : scratch;
    }
    int32_t status = bench_pick(gpu, call, problem, scratch, &ways, &c->way, &n_good);
    if (status)
        return status;
    const char *note = chains_of(&c->chains, c->way, &plan)->note;
    if (n_good > 1)
        snprintf(last, sizeof last, ", best of %u", n_good);
    snprintf(c->label, sizeof c->label, "cuDNN %s%s%s%s", name, note ? ", " : "", note ? note : "",
             last);
    return RUNG_OK;
}

static int32_t build(struct cudnn *self, struct rung_call *call,
                     const struct bench_problem *problem, struct cudnn_case *c,
                     struct rung_baseline_case *out)
{
    struct bench_gpu gpu;
    int tf32 = self->tf32 || problem->task->precision == RUNG_PRECISION_TF32;
    int32_t status = net_read(call, problem, &c->chains.net);
    if (!status && !one_dtype(problem))
        status = bench_unsupported(call, "cuDNN", "tensors of these dtypes together");
    if (!status)
        status = bench_gpu_open(self->host, call, "cuDNN", &gpu);
    if (!status)
        status = open_handle(self, call, gpu.stream);
    if (status)
        return status;
    c->owner = self;
    c->chains.api = &self->api;
    c->chains.handle = self->handle;
    chains_build(&c->chains, problem, tf32);
    status = pick(c, call, problem, &gpu);
    if (status) {
        chains_free(&c->chains);
        return status;
    }
    out->label = c->label;
    out->math = math_of(problem->tensors[0].dtype, tf32, &c->chains.net);
    out->scratch_bytes = chains_scratch(&c->chains, c->way);
    out->ctx = c;
    return RUNG_OK;
}

static int32_t prepare(void *ptr, struct rung_call *call, const struct rung_session *session,
                       const int64_t *dims, struct rung_baseline_case *out)
{
    struct bench_problem *problem = calloc(1, sizeof *problem);
    struct cudnn_case *c = calloc(1, sizeof *c);
    int32_t status = problem && c
                         ? bench_problem_read(call, session, dims, problem)
                         : bench_fail(call->error, RUNG_ENOMEM, "cudnn.memory", "out of memory");
    if (!status)
        status = build(ptr, call, problem, c, out);
    free(problem);
    if (status)
        free(c);
    return status;
}

static int32_t enqueue(void *self, struct rung_call *call, const struct rung_baseline_case *ready,
                       const uint64_t *addresses, uint64_t scratch)
{
    struct cudnn_case *c = ready->ctx;
    (void)self;
    return run(c, call, c->way, addresses, scratch);
}

static void release(void *self, struct rung_baseline_case *ready)
{
    struct cudnn_case *c = ready->ctx;
    (void)self;
    if (c)
        chains_free(&c->chains);
    free(c);
    ready->ctx = NULL;
}

/* ---- Life ---- */

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    const char *library = host->opt_string(host, options, "library");
    const char *math = host->opt_string(host, options, "math");
    struct cudnn *self = calloc(1, sizeof *self);
    if (!self)
        return bench_fail(err, RUNG_ENOMEM, "cudnn.memory", "out of memory");
    self->host = host;
    self->tf32 = math && !strcmp(math, "tf32");
    snprintf(self->library, sizeof self->library, "%s", library ? library : "");
    *out = self;
    return RUNG_OK;
}

static void stop(void *ptr)
{
    struct cudnn *self = ptr;
    if (self->handle)
        self->api.destroy(self->handle);
    self->handle = NULL;
}

static void destroy(void *ptr)
{
    free(ptr);
}

static const struct rung_option option_library = {
    .struct_size = sizeof option_library,
    .type = RUNG_OPT_PATH,
    .name = "library",
    .summary = "libcudnn.so.9 or the folder that holds it; empty: search."};
static const char *const maths[] = {"default", "tf32", NULL};
static const struct rung_option option_math = {
    .struct_size = sizeof option_math,
    .type = RUNG_OPT_ENUM,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "math",
    .default_text = "default",
    .values = maths,
    .summary = "default: f32 convolutions in fp32, in tf32 where the task's precision says tf32; "
               "tf32: always."};
static const struct rung_option *const options[] = {&option_library, &option_math, NULL};

static const struct rung_baseline_ops ops = {
    .struct_size = sizeof ops, .prepare = prepare, .enqueue = enqueue, .release = release};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_BASELINE,
    .name = "cudnn",
    .summary = "Convolutions, pools, softmax, normalisations and attention by NVIDIA's cuDNN",
    .doc = "For graphs of one such layer, or of a convolution with bias, an activation and a pool. "
           "Fused and separate forms and up to eight engines of each are tried once and the "
           "fastest is kept. Winograd and FFT engines are left out: their errors are beyond what "
           "a kernel of the task is granted.",
    .options = options,
    .ops = &ops,
    .create = create,
    .stop = stop,
    .destroy = destroy,
};

static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "rung.baseline.cudnn",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
