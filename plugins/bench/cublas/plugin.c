/*
 * baseline "cublas": one product of matrices by cuBLASLt. The library proposes up to eight
 * algorithms; each is tried on the device and the fastest is kept.
 */
#include "../common/library.h"
#include "api.h"
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WAYS = 8 };
#define WORKSPACE ((uint64_t)32 << 20) /* what NVIDIA recommends for Hopper */

struct cublas {
    const struct rung_host *host;
    char library[4096]; /* option */
    int tf32;           /* option math */
    struct lt_api api;
    int loaded;
    lt_handle handle;
};

/* One prepared product. */
struct multiply {
    struct cublas *owner;
    struct product p;
    void *stream;
    lt_desc desc;
    lt_layout a, b, c; /* of cuBLAS: columns first, so its A is our b */
    lt_pref pref;
    int is_double;
    struct lt_result ways[MOST_WAYS];
    uint32_t n_ways, way;
    char label[96];
};

static int32_t fail(struct cublas *self, struct rung_call *call, int32_t code, const char *what,
                    int status)
{
    return bench_fail(call->error, code, "cublas.failed", "cuBLAS: %s: %s", what,
                      self->api.status_text(status));
}

/* ---- Loading ---- */

static int32_t load(struct cublas *self, struct rung_call *call)
{
    static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    static const char *const wheels[] = {"nvidia/cu13/lib", "nvidia/cublas/lib", NULL};
    static const struct bench_library library = {
        "cuBLAS", files, wheels,
        "install the cuBLAS of a CUDA 12 or 13 toolkit, or name libcublasLt.so with the option "
        "`library`"};
    char path[4096];
#define LT_SYMBOL(member, symbol, params) {#symbol, &self->api.member},
    const struct bench_symbol symbols[] = {
        LT_FUNCTIONS(LT_SYMBOL){"cublasLtGetStatusString", &self->api.status_text}, {NULL, NULL}};
#undef LT_SYMBOL
    if (self->loaded)
        return RUNG_OK;
    int32_t status = bench_library_open(&library, self->library, symbols, path, call->error);
    self->loaded = status == RUNG_OK;
    return status;
}

static int32_t open_handle(struct cublas *self, struct rung_call *call)
{
    int32_t status = load(self, call);
    if (status || self->handle)
        return status;
    int made = self->api.create(&self->handle);
    if (made)
        self->handle = NULL;
    return made ? fail(self, call, RUNG_EUNAVAILABLE, "it does not start", made) : RUNG_OK;
}

/* ---- Preparing ---- */

struct types {
    int ab, c, compute, scale;
    const char *math;
};

/* What it computes in; 0 when cuBLAS has nothing for these dtypes. */
static int choose_types(const struct bench_problem *problem, const struct product *p, int tf32,
                        struct types *out)
{
    uint32_t a = problem->tensors[p->a].dtype, b = problem->tensors[p->b].dtype;
    uint32_t c = problem->tensors[p->c].dtype;
    int half = a == RUNG_F16 ? LT_R_16F : LT_R_16BF;
    if (a != b || (p->bias >= 0 && problem->tensors[p->bias].dtype != c))
        return 0;
    if (a == RUNG_F32 && c == RUNG_F32) {
        *out = (struct types){LT_R_32F, LT_R_32F, tf32 ? LT_COMPUTE_32F_FAST_TF32 : LT_COMPUTE_32F,
                              LT_R_32F, tf32 ? "tf32" : "fp32"};
    } else if (a == RUNG_F64 && c == RUNG_F64) {
        *out = (struct types){LT_R_64F, LT_R_64F, LT_COMPUTE_64F, LT_R_64F, "fp64"};
    } else if ((a == RUNG_F16 || a == RUNG_BF16) && (c == a || c == RUNG_F32)) {
        *out =
            (struct types){half, c == a ? half : LT_R_32F, LT_COMPUTE_32F, LT_R_32F,
                           a == RUNG_F16 ? "fp16, fp32 accumulation" : "bf16, fp32 accumulation"};
    } else {
        return 0;
    }
    return 1;
}

static int new_layout(const struct lt_api *api, lt_layout *out, int type, int64_t rows,
                      int64_t cols, int64_t batch, int64_t stride)
{
    int32_t count = (int32_t)batch;
    int status = api->layout_create(out, type, (uint64_t)rows, (uint64_t)cols, rows);
    if (!status && batch > 1)
        status = api->layout_set(*out, LT_LAYOUT_BATCH_COUNT, &count, sizeof count);
    if (!status && batch > 1)
        status = api->layout_set(*out, LT_LAYOUT_BATCH_STRIDE, &stride, sizeof stride);
    return status;
}

/*
 * Row-major c = a b is, read with columns first, c' = b' a': cuBLAS' A is our b and its B our a,
 * each as it lies in memory; our transposes stay transposes.
 */
static int describe(struct multiply *m, const struct types *t)
{
    const struct lt_api *api = &m->owner->api;
    const struct product *p = &m->p;
    int32_t op_a = p->transpose_b ? LT_OP_T : LT_OP_N, op_b = p->transpose_a ? LT_OP_T : LT_OP_N;
    uint32_t epilogue = p->activation == PRODUCT_RELU        ? LT_EPILOGUE_RELU
                        : p->activation == PRODUCT_GELU_TANH ? LT_EPILOGUE_GELU
                                                             : 0;
    epilogue |= p->bias >= 0 ? LT_EPILOGUE_BIAS : 0;
    epilogue = epilogue ? epilogue : LT_EPILOGUE_DEFAULT;
    m->is_double = t->scale == LT_R_64F;
    int status = api->desc_create(&m->desc, t->compute, t->scale);
    if (!status)
        status = api->desc_set(m->desc, LT_DESC_TRANSA, &op_a, sizeof op_a);
    if (!status)
        status = api->desc_set(m->desc, LT_DESC_TRANSB, &op_b, sizeof op_b);
    if (!status && epilogue != LT_EPILOGUE_DEFAULT)
        status = api->desc_set(m->desc, LT_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (!status)
        status = new_layout(api, &m->a, t->ab, p->transpose_b ? p->k : p->n,
                            p->transpose_b ? p->n : p->k, p->batch, p->stride_b);
    if (!status)
        status = new_layout(api, &m->b, t->ab, p->transpose_a ? p->m : p->k,
                            p->transpose_a ? p->k : p->m, p->batch, p->stride_a);
    if (!status)
        status = new_layout(api, &m->c, t->c, p->n, p->m, p->batch, p->stride_c);
    return status;
}

/* What may be assumed of pointers, and how much workspace there is. */
static int prefer(struct multiply *m, const struct bench_problem *problem)
{
    const struct lt_api *api = &m->owner->api;
    uint64_t workspace = WORKSPACE;
    const int of[4] = {m->p.b, m->p.a, m->p.c, m->p.c};
    const int what[4] = {LT_PREF_ALIGNMENT_A, LT_PREF_ALIGNMENT_B, LT_PREF_ALIGNMENT_C,
                         LT_PREF_ALIGNMENT_D};
    int status = api->pref_create(&m->pref);
    if (!status)
        status = api->pref_set(m->pref, LT_PREF_MAX_WORKSPACE, &workspace, sizeof workspace);
    for (int i = 0; i < 4 && !status; i++) {
        uint64_t aligned = problem->tensors[of[i]].alignment;
        uint32_t bytes = aligned < 256 ? (uint32_t)aligned : 256;
        status = api->pref_set(m->pref, what[i], &bytes, sizeof bytes);
    }
    return status;
}

static int set_bias(struct multiply *m, const uint64_t *addresses)
{
    if (m->p.bias < 0)
        return LT_SUCCESS;
    uint64_t at = addresses[m->p.bias];
    return m->owner->api.desc_set(m->desc, LT_DESC_BIAS_POINTER, &at, sizeof at);
}

static int32_t propose(struct multiply *m, struct rung_call *call)
{
    int n = 0;
    struct cublas *self = m->owner;
    int status = self->api.heuristic(self->handle, m->desc, m->a, m->b, m->c, m->c, m->pref,
                                     MOST_WAYS, m->ways, &n);
    if (status)
        return fail(self, call,
                    status == LT_NOT_INITIALIZED ? RUNG_EUNAVAILABLE : RUNG_EUNSUPPORTED,
                    "no algorithm for this product", status);
    for (int i = 0; i < n && i < MOST_WAYS; i++)
        if (!m->ways[i].state && m->ways[i].workspace <= WORKSPACE)
            m->ways[m->n_ways++] = m->ways[i];
    return m->n_ways ? RUNG_OK : bench_unsupported(call, "cuBLAS", "no algorithm for this product");
}

static int32_t multiply(void *ctx, struct rung_call *call, uint32_t way, const uint64_t *addresses,
                        uint64_t scratch)
{
    static const float one_f = 1, zero_f = 0;
    static const double one_d = 1, zero_d = 0;
    struct multiply *m = ctx;
    const struct product *p = &m->p;
    const void *one = m->is_double ? (const void *)&one_d : (const void *)&one_f;
    const void *zero = m->is_double ? (const void *)&zero_d : (const void *)&zero_f;
    void *c = (void *)(uintptr_t)addresses[p->c];
    int status = set_bias(m, addresses);
    if (!status)
        status = m->owner->api.matmul(
            m->owner->handle, m->desc, one, (const void *)(uintptr_t)addresses[p->b], m->a,
            (const void *)(uintptr_t)addresses[p->a], m->b, zero, c, m->c, c, m->c,
            &m->ways[way].algo, (void *)(uintptr_t)scratch, m->ways[way].workspace, m->stream);
    return status ? fail(m->owner, call, RUNG_EUNSUPPORTED, "cublasLtMatmul", status) : RUNG_OK;
}

static void discard(struct multiply *m)
{
    const struct lt_api *api = &m->owner->api;
    if (m->pref)
        api->pref_destroy(m->pref);
    if (m->a)
        api->layout_destroy(m->a);
    if (m->b)
        api->layout_destroy(m->b);
    if (m->c)
        api->layout_destroy(m->c);
    if (m->desc)
        api->desc_destroy(m->desc);
    free(m);
}

static int32_t build(struct multiply *m, struct rung_call *call,
                     const struct bench_problem *problem, const struct bench_gpu *gpu,
                     const struct types *types)
{
    uint64_t at[BENCH_MAX_NAMES] = {0}, scratch = 0;
    uint32_t n_good;
    m->stream = gpu->stream;
    if (m->p.bias >= 0)
        at[m->p.bias] = 256; /* the heuristics look at the alignment */
    int failed = describe(m, types);
    if (!failed)
        failed = set_bias(m, at);
    if (!failed)
        failed = prefer(m, problem);
    if (failed)
        return fail(m->owner, call, RUNG_EUNSUPPORTED, "describing the product", failed);
    int32_t status = propose(m, call);
    for (uint32_t i = 0; i < m->n_ways; i++)
        scratch = m->ways[i].workspace > scratch ? m->ways[i].workspace : scratch;
    struct bench_ways ways = {.n = m->n_ways, .ctx = m, .enqueue = multiply};
    if (!status)
        status = bench_pick(gpu, call, problem, scratch, &ways, &m->way, &n_good);
    if (!status)
        snprintf(m->label, sizeof m->label, "cublasLtMatmul, best of %u algorithm%s", n_good,
                 n_good == 1 ? "" : "s");
    return status;
}

static int32_t prepare(void *ptr, struct rung_call *call, const struct rung_session *session,
                       const int64_t *dims, struct rung_baseline_case *out)
{
    struct cublas *self = ptr;
    struct bench_gpu gpu;
    struct types types = {0};
    struct bench_problem *problem = calloc(1, sizeof *problem);
    struct multiply *m = calloc(1, sizeof *m);
    int32_t status = problem && m
                         ? bench_problem_read(call, session, dims, problem)
                         : bench_fail(call->error, RUNG_ENOMEM, "cublas.memory", "out of memory");
    if (!status)
        status = product_read(call, problem, &m->p);
    int tf32 = self->tf32 || session->task->precision == RUNG_PRECISION_TF32;
    if (!status && !choose_types(problem, &m->p, tf32, &types))
        status = bench_unsupported(call, "cuBLAS", "these dtypes");
    if (!status)
        status = bench_gpu_open(self->host, call, "cuBLAS", &gpu);
    if (!status)
        status = open_handle(self, call);
    if (!status) {
        m->owner = self;
        status = build(m, call, problem, &gpu, &types);
    }
    free(problem);
    if (status) {
        if (m && m->owner)
            discard(m);
        else
            free(m);
        return status;
    }
    out->label = m->label;
    out->math = types.math;
    out->scratch_bytes = m->ways[m->way].workspace;
    out->ctx = m;
    return RUNG_OK;
}

static int32_t enqueue(void *self, struct rung_call *call, const struct rung_baseline_case *ready,
                       const uint64_t *addresses, uint64_t scratch)
{
    struct multiply *m = ready->ctx;
    (void)self;
    return multiply(m, call, m->way, addresses, scratch);
}

static void release(void *self, struct rung_baseline_case *ready)
{
    (void)self;
    if (ready->ctx)
        discard(ready->ctx);
    ready->ctx = NULL;
}

/* ---- Life ---- */

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    const char *library = host->opt_string(host, options, "library");
    const char *math = host->opt_string(host, options, "math");
    struct cublas *self = calloc(1, sizeof *self);
    if (!self)
        return bench_fail(err, RUNG_ENOMEM, "cublas.memory", "out of memory");
    self->host = host;
    self->tf32 = math && !strcmp(math, "tf32");
    snprintf(self->library, sizeof self->library, "%s", library ? library : "");
    *out = self;
    return RUNG_OK;
}

static void stop(void *ptr)
{
    struct cublas *self = ptr;
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
    .summary = "libcublasLt.so or the folder that holds it; empty: search."};
static const char *const maths[] = {"default", "tf32", NULL};
static const struct rung_option option_math = {
    .struct_size = sizeof option_math,
    .type = RUNG_OPT_ENUM,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "math",
    .default_text = "default",
    .values = maths,
    .summary = "default: f32 products in fp32, in tf32 where the task's precision says tf32; tf32: "
               "always."};
static const struct rung_option *const options[] = {&option_library, &option_math, NULL};

static const struct rung_baseline_ops ops = {
    .struct_size = sizeof ops, .prepare = prepare, .enqueue = enqueue, .release = release};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_BASELINE,
    .name = "cublas",
    .summary = "Matrix products by NVIDIA's cuBLASLt",
    .doc = "For graphs of one matmul or bmm, with a bias vector along the columns, relu or "
           "gelu(approximate=tanh) behind it. f32, f64, f16 and bf16; the last two with sums in "
           "f32. Up to eight of the library's algorithms are tried once and the fastest is kept.",
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
                                          .id = "rung.baseline.cublas",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
