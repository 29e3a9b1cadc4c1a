/* The CUDA runtime's functions as host code calls them: see host.h. */
#include "host.h"
#include <string.h>

static bool starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static const struct cg_sym *size_of(const struct cg_value *v)
{
    return v->kind == CG_NUM ? v->sym : NULL;
}

/* cudaMalloc(&p, bytes): p points at new memory. */
static void allocate(struct cg_host *h, struct cg_value target, const struct cg_sym *bytes,
                     const char *function)
{
    if (target.kind != CG_ADDRESS)
        return;
    struct cg_variable *v = cg_find_variable(h, target.text);
    struct cg_type type = v ? v->type : (struct cg_type){.text = ""};
    struct cg_buffer *b = cg_new_buffer(h, target.text);
    b->bytes = bytes;
    b->dtype = type.dtype;
    b->host = strstr(function, "Host") != NULL;
    b->managed = strstr(function, "Managed") != NULL;
    type.cls = CG_TYPE_POINTER;
    cg_assign(h, target.text, cg_pointer(h, b, type));
}

static bool is_output(const struct cg_host *h, const struct cg_buffer *b)
{
    return b->tensor >= 0 && h->task->tensors[b->tensor].role != RUNG_ROLE_INPUT &&
           h->task->tensors[b->tensor].role != RUNG_ROLE_WEIGHT;
}

/* Copies are no work of the kernels: both sides are one memory. */
static void copy(struct cg_host *h, struct cg_value to, struct cg_value from)
{
    struct cg_buffer *dst = cg_real_buffer(to.buffer), *src = cg_real_buffer(from.buffer);
    if (to.kind != CG_POINTER || from.kind != CG_POINTER || !dst || !src || dst == src)
        return;
    if (dst->tensor < 0 && !dst->host && !dst->written && (src->tensor >= 0 || src->host)) {
        dst->from_host = true;
        if (!is_output(h, src) || src->host)
            dst->same = src;
    } else if (src->tensor < 0 && !src->host && (dst->tensor >= 0 || dst->host)) {
        src->to_host = true;
        src->same = dst;
        dst->to_host = true;
    } else if (!dst->host && !src->host) {
        cg_problem(h,
                   "a copy of `%s` to `%s` on the device: plans have no copies, so let a "
                   "kernel do it",
                   src->name, dst->name);
    } else if (dst->host) {
        dst->to_host = true;
    }
}

static void read_attribute(struct cg_host *h, const struct cg_value *args, uint32_t n)
{
    if (n < 2 || args[0].kind != CG_ADDRESS)
        return;
    const char *which = args[1].text ? args[1].text : "";
    struct cg_value v = cg_unknown(h, "a device attribute");
    if (strstr(which, "MultiProcessorCount"))
        v = cg_number(cg_sym_name(h->pool, "sm_count", 1, 1024, 1, false));
    else if (strstr(which, "MaxThreadsPerBlock"))
        v = cg_int(h, 1024);
    else if (strstr(which, "WarpSize"))
        v = cg_int(h, 32);
    else if (strstr(which, "CooperativeLaunch"))
        v = cg_int(h, 1);
    else if (strstr(which, "SharedMemoryPerBlock"))
        v = cg_int(h, strstr(which, "Optin") ? 101376 : 49152);
    cg_assign(h, args[0].text, v);
}

/* cudaLaunchKernel(f, grid, block, args, shared, stream) and the cooperative one. */
static void launch_kernel(struct cg_host *h, const struct cg_value *args, uint32_t n,
                          bool cooperative)
{
    struct cg_value values[CG_MAX_ARGS];
    if (n < 4)
        return;
    struct cg_launch_spec spec = {.kernel = args[0],
                                  .grid = args[1],
                                  .block = args[2],
                                  .shared = n > 4 ? args[4] : cg_int(h, 0),
                                  .cooperative = cooperative};
    if (args[3].kind != CG_LIST) {
        cg_problem(h, "the arguments of a cudaLaunchKernel are no list of addresses");
        return;
    }
    for (uint32_t k = 0; k < args[3].n; k++) {
        const struct cg_value *v = &args[3].list[k];
        values[k] = v->kind == CG_ADDRESS ? cg_read_variable(h, v->text) : *v;
    }
    cg_add_launch(h, &spec, values, args[3].n);
}

/* A launch attribute's field, wherever the source keeps its attributes. */
static struct cg_value attribute(struct cg_host *h, const char *ending)
{
    size_t n = strlen(ending);
    for (size_t i = h->n_vars; i > h->frame; i--) {
        const char *name = h->vars[i - 1].name;
        size_t len = strlen(name);
        if (len > n && !strcmp(name + len - n, ending))
            return h->vars[i - 1].value;
    }
    return (struct cg_value){.kind = CG_NOTHING};
}

static bool list_of_addresses(const struct cg_value *v)
{
    for (uint32_t i = 0; v->kind == CG_LIST && i < v->n; i++)
        if (v->list[i].kind != CG_ADDRESS)
            return false;
    return v->kind == CG_LIST && v->n && v->n <= CG_MAX_ARGS;
}

/* cudaLaunchKernelEx(&config, kernel, arguments...). */
static void launch_ex(struct cg_host *h, const struct cg_value *args, uint32_t n)
{
    struct cg_value parts[3];
    if (n < 2 || args[0].kind != CG_ADDRESS)
        return;
    const char *config = args[0].text;
    struct cg_value shared = cg_read_variable(h, cg_format(h->pool, "%s.dynamicSmemBytes", config));
    struct cg_launch_spec spec = {
        .kernel = args[1],
        .grid = cg_read_variable(h, cg_format(h->pool, "%s.gridDim", config)),
        .block = cg_read_variable(h, cg_format(h->pool, "%s.blockDim", config)),
        .shared = shared.kind == CG_NUM ? shared : cg_int(h, 0)};
    parts[0] = attribute(h, ".clusterDim.x");
    parts[1] = attribute(h, ".clusterDim.y");
    parts[2] = attribute(h, ".clusterDim.z");
    for (int i = 1; i < 3; i++)
        if (parts[i].kind == CG_NOTHING)
            parts[i] = cg_int(h, 1);
    if (parts[0].kind == CG_NUM)
        spec.cluster = cg_dim3(h, parts, 3);
    struct cg_value cooperative = attribute(h, ".cooperative");
    int64_t k;
    spec.cooperative = cg_fixed(&cooperative, &k) && k;
    struct cg_value values[CG_MAX_ARGS];
    uint32_t count = n == 3 && list_of_addresses(&args[2]) ? args[2].n : 0;
    for (uint32_t i = 0; i < count; i++) /* cudaLaunchKernelExC */
        values[i] = cg_read_variable(h, args[2].list[i].text);
    cg_add_launch(h, &spec, count ? values : args + 2, count ? count : n - 2);
}

static void occupancy(struct cg_host *h, const char *name, const struct cg_value *args, uint32_t n)
{
    struct cg_value sms = cg_number(cg_sym_name(h->pool, "sm_count", 1, 1024, 1, false));
    if (n < 2 || args[0].kind != CG_ADDRESS)
        return;
    if (strstr(name, "PotentialBlockSize") && args[1].kind == CG_ADDRESS) {
        cg_assign(h, args[0].text, sms);
        cg_assign(h, args[1].text, cg_int(h, 256));
        cg_note(h, "Took 256 threads for a block that the occupancy calculator would choose.");
    } else {
        cg_assign(h, args[0].text, cg_int(h, 1));
        cg_note(h, "Took one block a multiprocessor where the occupancy calculator is asked.");
    }
}

static void zero(struct cg_host *h, const struct cg_value *args, uint32_t n)
{
    int64_t value;
    if (n < 3 || args[0].kind != CG_POINTER || !args[0].buffer)
        return;
    if (args[1].kind != CG_NUM || !cg_sym_constant(args[1].sym, &value) || value != 0)
        cg_problem(h, "a cudaMemset to another byte than 0");
    else
        cg_add_zero(h, args[0], size_of(&args[2]));
}

static void symbol(struct cg_host *h, const struct cg_value *args, uint32_t n)
{
    int64_t offset;
    if (n < 3 || args[0].kind != CG_OPAQUE || args[1].kind != CG_POINTER) {
        cg_problem(h, "a cudaMemcpyToSymbol whose symbol or source is not plain");
        return;
    }
    if (n > 3 && args[3].kind == CG_NUM && (!cg_sym_constant(args[3].sym, &offset) || offset))
        cg_problem(h, "a cudaMemcpyToSymbol with an offset");
    else
        cg_add_symbol(h, args[0].text, args[1], size_of(&args[2]));
}

static struct cg_value host_memory(struct cg_host *h, const struct cg_sym *bytes)
{
    struct cg_buffer *b = cg_new_buffer(h, "");
    b->host = true;
    b->bytes = bytes;
    return cg_pointer(h, b, (struct cg_type){.text = ""});
}

bool cg_call_cuda(struct cg_host *h, const char *name, const struct cg_value *args, uint32_t n,
                  struct cg_value *out)
{
    *out = cg_int(h, 0); /* cudaSuccess */
    if ((!strcmp(name, "malloc") || !strcmp(name, "calloc")) && n) {
        *out = host_memory(h, size_of(&args[0]));
        return true;
    }
    if (!starts(name, "cuda") && !starts(name, "cu"))
        return false;
    if (starts(name, "cudaMalloc") || !strcmp(name, "cudaHostAlloc")) {
        if (n >= 2)
            allocate(h, args[0], size_of(&args[1]), name);
    } else if (starts(name, "cudaMemcpyToSymbol")) {
        symbol(h, args, n);
    } else if (!strcmp(name, "cudaMemcpy") || !strcmp(name, "cudaMemcpyAsync")) {
        if (n >= 2)
            copy(h, args[0], args[1]);
    } else if (!strcmp(name, "cudaMemset") || !strcmp(name, "cudaMemsetAsync")) {
        zero(h, args, n);
    } else if (!strcmp(name, "cudaDeviceGetAttribute")) {
        read_attribute(h, args, n);
    } else if (starts(name, "cudaGetDeviceProperties")) {
        if (n && args[0].kind == CG_ADDRESS)
            cg_assign(h, args[0].text, cg_opaque("device properties"));
    } else if (!strcmp(name, "cudaGetDevice") || starts(name, "cudaGetDeviceCount")) {
        if (n && args[0].kind == CG_ADDRESS)
            cg_assign(h, args[0].text, cg_int(h, starts(name, "cudaGetDeviceCount")));
    } else if (starts(name, "cudaOccupancy")) {
        occupancy(h, name, args, n);
    } else if (!strcmp(name, "cudaLaunchKernel")) {
        launch_kernel(h, args, n, false);
    } else if (!strcmp(name, "cudaLaunchCooperativeKernel")) {
        launch_kernel(h, args, n, true);
    } else if (starts(name, "cudaLaunchKernelEx")) {
        launch_ex(h, args, n);
    } else if (!starts(name, "cuda")) {
        return false;
    }
    return true;
}

/* ---- Members -------------------------------------------------------------------------------- */

static struct cg_value property(struct cg_host *h, const char *name)
{
    if (!strcmp(name, "multiProcessorCount") || !strcmp(name, "multi_processor_count"))
        return cg_number(cg_sym_name(h->pool, "sm_count", 1, 1024, 1, false));
    if (!strcmp(name, "maxThreadsPerBlock"))
        return cg_int(h, 1024);
    if (!strcmp(name, "warpSize"))
        return cg_int(h, 32);
    if (!strcmp(name, "sharedMemPerBlock"))
        return cg_int(h, 49152);
    if (!strcmp(name, "sharedMemPerBlockOptin"))
        return cg_int(h, 101376);
    if (!strcmp(name, "cooperativeLaunch"))
        return cg_int(h, 1);
    return cg_unknown(h, "the device property %.60s", name);
}

struct cg_value cg_member(struct cg_host *h, struct cg_value self, const char *name)
{
    if (self.kind == CG_OPAQUE && !strcmp(self.text, "device properties"))
        return property(h, name);
    if (self.kind == CG_DIM3 && name[0] >= 'x' && name[0] <= 'z' && !name[1])
        return self.list[name[0] - 'x'];
    for (uint32_t k = 0; self.kind == CG_RECORD && k < self.n; k++)
        if (!strcmp(self.names[k], name))
            return self.list[k];
    if (self.kind == CG_TENSOR && !strcmp(name, "shape"))
        return (struct cg_value){.kind = CG_LIST, .list = self.list, .n = self.n};
    if (self.kind == CG_TENSOR && !strcmp(name, "dtype"))
        return (struct cg_value){.kind = CG_A_TYPE, .type = self.type};
    if (self.kind == CG_TENSOR && !strcmp(name, "T"))
        self.transposed = !self.transposed;
    if (self.kind == CG_TENSOR && (!strcmp(name, "data") || !strcmp(name, "T")))
        return self;
    if (self.kind == CG_TENSOR && !strcmp(name, "ndim"))
        return cg_int(h, self.n);
    if (self.kind == CG_TENSOR && !strcmp(name, "is_cuda"))
        return cg_int(h, 1);
    if (self.kind == CG_UNKNOWN)
        return cg_unknown(h, "`%.100s.%.60s`", self.text[0] == '`' ? "..." : self.text, name);
    return cg_unknown(h, "`.%.60s`", name);
}
