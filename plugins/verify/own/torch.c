/*
 * reference "torch": a KernelBench-style Python file (class Model, get_inputs, get_init_inputs),
 * evaluated in float64 by the long-lived Python helper config/torch/helper.py. The task's inputs
 * are forward's arguments in order; its weights are the model's parameters and buffers, named alike
 * but for dots, which are underscores in a task. Numbers travel through shared memory.
 */
#include "../element.h"
#include "own.h"

#include <cjson/cJSON.h>
#include <rung/host.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, MAX_ANSWER = 4 << 20 };

struct torch_reference {
    const struct rung_host *host;
    const struct rung_host_program *programs;
    struct own_settings settings;
    struct own_memory memory;
    char file[PATH_BYTES], python[PATH_BYTES], device[8];
    int64_t seed;
    int train;
    struct rung_program *helper; /* NULL: not started */
    cJSON *described;            /* the answer to `load`; NULL: not asked */
};

/* ---- Asking ---- */

static int32_t start_helper(struct torch_reference *self, struct rung_call *call)
{
    char script[PATH_BYTES];
    const char *const argv[] = {self->python, script, NULL};
    if (self->helper)
        return RUNG_OK;
    snprintf(script, sizeof script, "%s/torch/helper.py", self->host->data_dir);
    return self->programs->open(self->host, call, argv, NULL, &self->helper);
}

static int32_t refused(struct torch_reference *self, struct rung_call *call, const cJSON *answer)
{
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(answer, "kind");
    const cJSON *message = cJSON_GetObjectItemCaseSensitive(answer, "message");
    const char *word = cJSON_IsString(kind) ? kind->valuestring : "";
    int32_t code = strcmp(word, "unavailable") == 0 ? RUNG_EUNAVAILABLE
                   : strcmp(word, "memory") == 0    ? RUNG_ENOMEM
                   : strcmp(word, "internal") == 0  ? RUNG_EINTERNAL
                                                    : RUNG_ECONFIG;
    return own_fail(call->error, code, "reference.torch", "%s: %.800s", self->file,
                    cJSON_IsString(message) ? message->valuestring
                                            : "the helper's answer is garbled");
}

/* Sends the request, which is deleted; *out is the answer with "ok", for the caller to delete. */
static int32_t ask(struct torch_reference *self, struct rung_call *call, cJSON *request,
                   cJSON **out)
{
    struct rung_text answer = {"", 0};
    char *line = cJSON_PrintUnformatted(request);
    cJSON_Delete(request);
    int32_t status = line ? start_helper(self, call)
                          : own_fail(call->error, RUNG_ENOMEM, "reference.memory", "no memory");
    if (status == RUNG_OK)
        status =
            self->programs->exchange(self->host, call, self->helper,
                                     (struct rung_text){line, strlen(line)}, MAX_ANSWER, &answer);
    cJSON_free(line);
    if (status != RUNG_OK) {
        if (self->helper)
            self->programs->close(self->host, self->helper);
        self->helper = NULL;
        return status;
    }
    *out = cJSON_ParseWithLength(answer.ptr, answer.len);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(*out, "ok")))
        return RUNG_OK;
    status = refused(self, call, *out);
    cJSON_Delete(*out);
    *out = NULL;
    return status;
}

static cJSON *request_new(const struct torch_reference *self, const char *op)
{
    cJSON *request = cJSON_CreateObject();
    cJSON_AddStringToObject(request, "op", op);
    cJSON_AddStringToObject(request, "file", self->file);
    cJSON_AddNumberToObject(request, "seed", (double)self->seed);
    cJSON_AddBoolToObject(request, "train", self->train);
    return request;
}

/* ---- Which tensor is which ---- */

static const char *name_of(const cJSON *tensor)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(tensor, "name");
    return cJSON_IsString(name) ? name->valuestring : "";
}

/* "param.conv.weight" is the task's conv_weight. */
static int same_param(const char *param, const char *task_name)
{
    if (strncmp(param, "param.", 6) != 0)
        return 0;
    for (param += 6; *param && *task_name; param++, task_name++)
        if (*param != *task_name && !(*param == '.' && *task_name == '_'))
            return 0;
    return !*param && !*task_name;
}

/* The helper's name of a task tensor, or NULL. */
static const char *helper_name(const struct torch_reference *self, const struct rung_task *task,
                               uint32_t tensor)
{
    const struct rung_tensor_spec *spec = &task->tensors[tensor];
    const cJSON *inputs = cJSON_GetObjectItemCaseSensitive(self->described, "inputs");
    const cJSON *params = cJSON_GetObjectItemCaseSensitive(self->described, "params"), *p;
    int place = 0;
    if (spec->role == RUNG_ROLE_WEIGHT) {
        cJSON_ArrayForEach(p, params) if (same_param(name_of(p), spec->name)) return name_of(p);
        return NULL;
    }
    for (uint32_t i = 0; i < tensor; i++)
        place +=
            task->tensors[i].role == RUNG_ROLE_INPUT || task->tensors[i].role == RUNG_ROLE_INOUT;
    const cJSON *input = cJSON_GetArrayItem(inputs, place);
    return input ? name_of(input) : NULL;
}

/* Every parameter of the model must be a weight of the task, or a kernel could not know it. */
static const char *unknown_param(const struct torch_reference *self, const struct rung_task *task)
{
    const cJSON *p;
    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(self->described, "params"))
    {
        int known = 0;
        for (uint32_t i = 0; i < task->n_tensors; i++)
            known |= task->tensors[i].role == RUNG_ROLE_WEIGHT &&
                     same_param(name_of(p), task->tensors[i].name);
        if (!known)
            return name_of(p) + 6;
    }
    return NULL;
}

static int32_t match(struct torch_reference *self, struct rung_call *call,
                     const struct rung_task *task)
{
    const cJSON *random = cJSON_GetObjectItemCaseSensitive(self->described, "random");
    const char *param = unknown_param(self, task);
    if (cJSON_GetArraySize(random) > 0)
        return own_fail(call->error, RUNG_ECONFIG, "reference.random",
                        "%s draws random numbers when it runs (dropout): set train = false",
                        self->file);
    if (param)
        return own_fail(
            call->error, RUNG_ECONFIG, "reference.weights",
            "%s: the model's parameter %s is no weight of the task: add a tensor of that "
            "name (dots as underscores) with role = \"weight\"",
            self->file, param);
    for (uint32_t i = 0; i < task->n_tensors; i++)
        if (task->tensors[i].role != RUNG_ROLE_OUTPUT && !helper_name(self, task, i))
            return own_fail(call->error, RUNG_ECONFIG, "reference.tensors",
                            "%s: the model has nothing for the task's tensor %s", self->file,
                            task->tensors[i].name);
    return RUNG_OK;
}

static int32_t check(void *ptr, struct rung_call *call, const struct rung_task *task)
{
    struct torch_reference *self = ptr;
    struct rung_text source;
    int32_t status = own_read_source(self->host, call, self->file, &source);
    if (status != RUNG_OK || !self->programs) /* elsewhere than in an executor that is all */
        return status;
    if (!self->described)
        status = ask(self, call, request_new(self, "load"), &self->described);
    return status == RUNG_OK ? match(self, call, task) : status;
}

/* ---- Shared memory: a file of its own for each tensor ---- */

struct share {
    int fd;
    char *at;
    size_t bytes;
};

static int share_new(struct share *s, size_t bytes)
{
    *s = (struct share){.fd = memfd_create("rung-torch", MFD_CLOEXEC), .bytes = bytes ? bytes : 1};
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->bytes) != 0)
        return 0;
    void *at = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    s->at = at == MAP_FAILED ? NULL : at;
    return s->at != NULL;
}

static void share_free(struct share *s)
{
    if (s->at)
        munmap(s->at, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
}

static void share_path(const struct share *s, char path[64])
{
    snprintf(path, 64, "/proc/%d/fd/%d", (int)getpid(), s->fd);
}

/* ---- Computing ---- */

struct evaluation {
    struct torch_reference *self;
    struct rung_call *call;
    const struct own_io *io;
    int single;
    struct share *shares; /* one a task tensor */
};

static int is_float(uint32_t dtype)
{
    return dtype == RUNG_F64 || dtype == RUNG_F32 || dtype == RUNG_F16 || dtype == RUNG_BF16;
}

/* Floating inputs in the precision of the evaluation, all others as 64-bit integers or bools. */
static uint32_t wire_dtype(const struct evaluation *e, uint32_t dtype)
{
    return is_float(dtype)      ? (e->single ? RUNG_F32 : RUNG_F64)
           : dtype == RUNG_BOOL ? RUNG_BOOL
                                : RUNG_I64;
}

static void store(uint32_t dtype, char *to, uint64_t k, double v)
{
    if (dtype == RUNG_F64)
        ((double *)(void *)to)[k] = v;
    else if (dtype == RUNG_F32)
        ((float *)(void *)to)[k] = (float)v;
    else if (dtype == RUNG_BOOL)
        to[k] = v != 0;
    else
        ((int64_t *)(void *)to)[k] = (int64_t)v;
}

static int add_input(struct evaluation *e, cJSON *list, uint32_t i)
{
    const struct rung_tensor_spec *spec = &e->io->task->tensors[i];
    uint32_t dtype = wire_dtype(e, spec->dtype);
    char path[64];
    if (!share_new(&e->shares[i], e->io->n[i] * (rung_dtype_bits(dtype) / 8)))
        return 0;
    for (uint64_t k = 0; k < e->io->n[i]; k++)
        store(dtype, e->shares[i].at, k, e->io->v[i][k]);
    share_path(&e->shares[i], path);
    cJSON *t = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(t, "shape");
    cJSON_AddStringToObject(t, "name", helper_name(e->self, e->io->task, i));
    cJSON_AddStringToObject(t, "dtype", rung_dtype_name(dtype));
    cJSON_AddStringToObject(t, "file", path);
    for (uint32_t d = 0; d < spec->n_dims; d++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)e->io->views[i].dims[d]));
    return cJSON_AddItemToArray(list, t);
}

static int add_output(struct evaluation *e, cJSON *list, uint32_t i)
{
    char path[64];
    if (!share_new(&e->shares[i], e->io->n[i] * 8))
        return 0;
    share_path(&e->shares[i], path);
    cJSON *want = cJSON_CreateObject();
    cJSON_AddStringToObject(want, "file", path);
    return cJSON_AddItemToArray(list, want);
}

static cJSON *make_request(struct evaluation *e)
{
    const struct rung_task *task = e->io->task;
    cJSON *request = request_new(e->self, "evaluate");
    cJSON *tensors = cJSON_AddArrayToObject(request, "tensors");
    cJSON *outputs = cJSON_AddArrayToObject(request, "outputs");
    cJSON_AddStringToObject(request, "device", e->self->device);
    cJSON_AddStringToObject(request, "precision", e->single ? "float32" : "float64");
    int good = 1;
    for (uint32_t i = 0; i < task->n_tensors && good; i++)
        good = task->tensors[i].role == RUNG_ROLE_OUTPUT ? add_output(e, outputs, i)
                                                         : add_input(e, tensors, i);
    if (good)
        return request;
    cJSON_Delete(request);
    return NULL;
}

static uint32_t dtype_of(const cJSON *answer)
{
    static const uint32_t all[] = {RUNG_F64, RUNG_F32, RUNG_F16, RUNG_BF16, RUNG_I8,
                                   RUNG_U8,  RUNG_I32, RUNG_I64, RUNG_BOOL};
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(answer, "dtype");
    for (size_t i = 0; cJSON_IsString(dtype) && i < sizeof all / sizeof *all; i++)
        if (strcmp(rung_dtype_name(all[i]), dtype->valuestring) == 0)
            return all[i];
    return 0;
}

/* The helper wrote the file anew; its size must be that of the task's output. */
static int32_t take_output(struct evaluation *e, const cJSON *answer, uint32_t i)
{
    struct stat st;
    uint32_t dtype = dtype_of(answer);
    uint64_t bytes = e->io->n[i] * (rung_dtype_bits(dtype) / 8);
    if (!dtype || fstat(e->shares[i].fd, &st) != 0 || (uint64_t)st.st_size != bytes)
        return own_fail(e->call->error, RUNG_ECONFIG, "reference.output",
                        "%s: forward's output for %s has %lld bytes of %s; the task asks for %llu "
                        "elements",
                        e->self->file, e->io->task->tensors[i].name, (long long)st.st_size,
                        dtype ? rung_dtype_name(dtype) : "an unknown type",
                        (unsigned long long)e->io->n[i]);
    for (uint64_t k = 0; k < e->io->n[i]; k++)
        e->io->v[i][k] = verify_element(dtype, e->shares[i].at, k);
    return RUNG_OK;
}

static int32_t take_outputs(struct evaluation *e, const cJSON *answer)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "outputs");
    const struct rung_task *task = e->io->task;
    int32_t status = RUNG_OK;
    int n = 0;
    for (uint32_t i = 0; i < task->n_tensors && status == RUNG_OK; i++)
        if (task->tensors[i].role == RUNG_ROLE_OUTPUT)
            status = take_output(e, cJSON_GetArrayItem(list, n++), i);
    if (status == RUNG_OK && cJSON_GetArraySize(list) != n)
        status = own_fail(e->call->error, RUNG_ECONFIG, "reference.output",
                          "%s: forward gives %d outputs; the task has %d", e->self->file,
                          cJSON_GetArraySize(list), n);
    return status;
}

static int32_t compute(void *ptr, struct rung_call *call, const struct own_io *io, int single)
{
    struct evaluation e = {.self = ptr, .call = call, .io = io, .single = single};
    uint32_t n = io->task->n_tensors;
    cJSON *answer = NULL;
    e.shares = calloc(n + 1, sizeof *e.shares);
    for (uint32_t i = 0; e.shares && i < n; i++)
        e.shares[i].fd = -1;
    cJSON *request = e.shares ? make_request(&e) : NULL;
    int32_t status =
        request ? ask(e.self, call, request, &answer)
                : own_fail(call->error, RUNG_ENOMEM, "reference.memory", "no room for the tensors");
    if (status == RUNG_OK)
        status = take_outputs(&e, answer);
    cJSON_Delete(answer);
    for (uint32_t i = 0; e.shares && i < n; i++)
        share_free(&e.shares[i]);
    free(e.shares);
    return status;
}

static int32_t evaluate(void *ptr, struct rung_call *call,
                        const struct rung_reference_request *request,
                        struct rung_reference_output *outputs, uint32_t n_outputs)
{
    struct torch_reference *self = ptr;
    if (!self->programs)
        return own_fail(call->error, RUNG_EUNSUPPORTED, "reference.service",
                        "programs can't be started here");
    for (uint32_t i = 0; i < request->task->n_tensors; i++)
        if (request->task->tensors[i].role == RUNG_ROLE_INOUT)
            return own_fail(call->error, RUNG_EUNSUPPORTED, "reference.inout",
                            "a PyTorch reference has no inout tensors");
    int32_t status = check(self, call, request->task);
    if (status != RUNG_OK)
        return status;
    return own_evaluate(&self->settings, &self->memory, call, request, compute, self, outputs,
                        n_outputs);
}

/* ---- Life ---- */

static void stop(void *ptr)
{
    struct torch_reference *self = ptr;
    if (self->helper)
        self->programs->close(self->host, self->helper);
    self->helper = NULL;
}

static void destroy(void *ptr)
{
    struct torch_reference *self = ptr;
    stop(self);
    cJSON_Delete(self->described);
    own_forget(&self->memory);
    free(self);
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    struct torch_reference *self = calloc(1, sizeof *self);
    if (!self)
        return own_fail(err, RUNG_ENOMEM, "reference.memory", "out of memory");
    self->host = host;
    self->programs = host->get_extension(host, RUNG_HOST_PROGRAM);
    self->settings = own_settings_read(host, options);
    self->seed = host->opt_int(host, options, "seed");
    self->train = host->opt_int(host, options, "train") != 0;
    snprintf(self->file, sizeof self->file, "%s", host->opt_string(host, options, "file"));
    snprintf(self->python, sizeof self->python, "%s", host->opt_string(host, options, "python"));
    snprintf(self->device, sizeof self->device, "%s", host->opt_string(host, options, "device"));
    *out = self;
    return RUNG_OK;
}

static const struct rung_option option_file = {
    .struct_size = sizeof option_file,
    .type = RUNG_OPT_PATH,
    .flags = RUNG_OPT_REQUIRED | RUNG_OPT_AFFECTS_RESULT,
    .name = "file",
    .summary =
        "Python file with class Model, get_inputs() and get_init_inputs(); workers must see it "
        "too. It is run."};
static const struct rung_option option_python = {.struct_size = sizeof option_python,
                                                 .type = RUNG_OPT_STRING,
                                                 .name = "python",
                                                 .default_text = "python3",
                                                 .summary = "A Python that has PyTorch."};
static const char *const devices[] = {"cpu", "cuda", NULL};
static const struct rung_option option_device = {.struct_size = sizeof option_device,
                                                 .type = RUNG_OPT_ENUM,
                                                 .name = "device",
                                                 .default_text = "cpu",
                                                 .summary = "Where PyTorch computes it.",
                                                 .values = devices};
static const struct rung_option option_seed = {.struct_size = sizeof option_seed,
                                               .type = RUNG_OPT_INT,
                                               .flags = RUNG_OPT_AFFECTS_RESULT,
                                               .name = "seed",
                                               .default_text = "42",
                                               .summary = "For whatever the file draws.",
                                               .min = 0,
                                               .max = INT32_MAX};
static const struct rung_option option_train = {
    .struct_size = sizeof option_train,
    .type = RUNG_OPT_BOOL,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "train",
    .default_text = "true",
    .summary =
        "The model's mode; KernelBench never calls eval(), so batch statistics are the rule."};
static const struct rung_option *const options[] = {
    &option_file,       &option_python,     &option_device,   &option_seed,     &option_train,
    &own_option_trials, &own_option_safety, &own_option_rtol, &own_option_atol, NULL};

static const struct rung_reference_ops ops = {
    .struct_size = sizeof ops, .check = check, .evaluate = evaluate, .work = own_work};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_REFERENCE,
    .name = "torch",
    .summary = "A KernelBench-style PyTorch model, in float64",
    .doc =
        "Inputs of the task are forward's arguments in order. Weights are the model's parameters "
        "and buffers by\nname, dots as underscores: `conv.weight` is the tensor conv_weight with "
        "role weight. The file is the\nuser's and is executed.",
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
                                          .id = "org.rung.reference.torch",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
