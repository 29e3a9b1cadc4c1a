/*
 * baselines "torch" and "torch_compile": PyTorch, which lives in a Python process of its own
 * (config/torch/helper.py) and measures there with the recipe that the core passes on. Built once a
 * factory, since a factory is looked for in a file of its name.
 */
#include "answer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 256, MAX_SAMPLES = 1 << 20, MAX_RELEASED = 64 };

struct torch {
    const struct rung_host *host;
    char python[WORD_BYTES * 4], mode[32];
    int tf32;
    struct rung_program *program; /* NULL until something is prepared */
    uint32_t generation;          /* of the program: cases of an earlier one are gone */
    uint32_t n_released;
    double released[MAX_RELEASED]; /* cases that the helper may forget */
};

struct torch_case {
    uint32_t generation;
    double id; /* the helper's */
    char label[WORD_BYTES], math[WORD_BYTES];
};

static const struct rung_host_program *programs(const struct torch *self)
{
    return self->host->get_extension(self->host, RUNG_HOST_PROGRAM);
}

static void end_program(struct torch *self)
{
    if (self->program)
        programs(self)->close(self->host, self->program);
    self->program = NULL;
}

/* ---- Talking ---- */

/* Sends a request (freed here); *out is the answer, of which "ok" is true. */
static int32_t ask(struct torch *self, struct rung_call *call, cJSON *request, uint64_t max_bytes,
                   cJSON **out)
{
    struct rung_text answer;
    if (request && self->n_released)
        cJSON_AddItemToObject(request, "release",
                              cJSON_CreateDoubleArray(self->released, (int)self->n_released));
    self->n_released = 0;
    char *line = request ? cJSON_PrintUnformatted(request) : NULL;
    cJSON_Delete(request);
    *out = NULL;
    if (!line)
        return torch_fail(call->error, RUNG_ENOMEM, "torch.memory", "out of memory");
    int32_t status =
        programs(self)->exchange(self->host, call, self->program,
                                 (struct rung_text){line, strlen(line)}, max_bytes, &answer);
    free(line);
    if (status == RUNG_OK)
        status = torch_answer(call->error, answer, out);
    else
        end_program(self); /* it is dead or out of step */
    return status;
}

/* The GPU's name for CUDA_VISIBLE_DEVICES, so that PyTorch sees the worker's one as its first. */
static void visible(const struct torch *self, char *out, size_t size)
{
    const struct rung_host_device *device = self->host->get_extension(self->host, RUNG_HOST_DEVICE);
    const struct rung_device_info *info = device ? device->info(self->host) : NULL;
    out[0] = '\0';
    if (info && info->id && !strncmp(info->id, "GPU-", 4))
        snprintf(out, size, "CUDA_VISIBLE_DEVICES=%s", info->id);
}

static int32_t start_program(struct torch *self, struct rung_call *call)
{
    char path[4200], device[WORD_BYTES];
    const char *argv[] = {self->python, "-B", path, NULL};
    const char *env[] = {device, NULL};
    cJSON *hello;
    if (self->program)
        return RUNG_OK;
    if (!programs(self))
        return torch_fail(call->error, RUNG_EUNAVAILABLE, "torch.host",
                          "this process starts no programs");
    snprintf(path, sizeof path, "%s/torch/helper.py", self->host->data_dir);
    visible(self, device, sizeof device);
    int32_t status =
        programs(self)->open(self->host, call, argv, device[0] ? env : NULL, &self->program);
    if (status)
        return status;
    self->generation++;
    status = ask(self, call, torch_request("hello"), 1 << 16, &hello);
    if (!status && cJSON_IsString(cJSON_GetObjectItemCaseSensitive(hello, "gpu")) &&
        !cJSON_GetObjectItemCaseSensitive(hello, "gpu")->valuestring[0])
        status =
            torch_fail(call->error, RUNG_EUNAVAILABLE, "torch.no_gpu",
                       "the PyTorch of %s sees no GPU; install a build for CUDA", self->python);
    cJSON_Delete(hello);
    if (status)
        end_program(self);
    return status;
}

/* ---- Preparing ---- */

static int32_t prepare(void *ptr, struct rung_call *call, const struct rung_session *session,
                       const int64_t *dims, struct rung_baseline_case *out)
{
    struct torch *self = ptr;
    cJSON *answer = NULL, *request = NULL;
    if (!session->task->graph)
        return torch_fail(call->error, RUNG_EUNSUPPORTED, "torch.graph", "the task has no graph");
    const struct rung_tensor_spec *strided = rung_task_strided(session->task);
    if (strided)
        return torch_fail(call->error, RUNG_EUNSUPPORTED, "torch.strides",
                          "%s has strides; only dense tensors are taken", strided->name);
    int32_t status = start_program(self, call);
    if (!status)
        status = torch_task(call, session, dims, &request);
    if (status)
        return status;
    cJSON_AddStringToObject(request, "mode", self->mode);
    cJSON_AddBoolToObject(request, "tf32",
                          self->tf32 || session->task->precision == RUNG_PRECISION_TF32);
    status = ask(self, call, request, 1 << 16, &answer);
    if (status)
        return status;
    struct torch_case *c = calloc(1, sizeof *c);
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(answer, "case");
    if (c && cJSON_IsNumber(id) && torch_word(answer, "label", c->label, sizeof c->label) &&
        torch_word(answer, "math", c->math, sizeof c->math)) {
        c->generation = self->generation;
        c->id = id->valuedouble;
        out->label = c->label;
        out->math = c->math;
        out->scratch_bytes = 0;
        out->ctx = c;
    } else {
        free(c);
        status = torch_fail(call->error, RUNG_EINTERNAL, "torch.protocol",
                            "the helper's answer to prepare is not understood");
    }
    cJSON_Delete(answer);
    return status;
}

/* ---- Measuring ---- */

static cJSON *recipe_request(const struct torch_case *c, const struct rung_timing_recipe *recipe)
{
    cJSON *request = torch_request("measure");
    cJSON_AddNumberToObject(request, "case", c->id);
    cJSON_AddNumberToObject(request, "warmups", recipe->warmups);
    cJSON_AddNumberToObject(request, "samples", recipe->samples);
    cJSON_AddNumberToObject(request, "cold", recipe->cold);
    cJSON_AddNumberToObject(request, "seed", (double)(recipe->seed & 0xfffffffffffff));
    cJSON_AddNumberToObject(request, "sets", recipe->sets);
    cJSON_AddNumberToObject(request, "batch", recipe->batch);
    cJSON_AddNumberToObject(request, "budget_s", recipe->budget_s);
    return request;
}

static void look(const struct torch *self, struct rung_call *call,
                 struct rung_device_condition *out)
{
    const struct rung_host_device *service =
        self->host->get_extension(self->host, RUNG_HOST_DEVICE);
    void *device = NULL;
    const struct rung_device_ops *ops = service ? service->ops(self->host, &device) : NULL;
    *out = (struct rung_device_condition){.struct_size = sizeof *out};
    if (ops && RUNG_HAS(ops, condition) && ops->condition)
        ops->condition(device, call, out);
}

static int32_t measure(void *ptr, struct rung_call *call, const struct rung_baseline_case *ready,
                       const struct rung_timing_recipe *recipe, struct rung_timing *out)
{
    struct torch *self = ptr;
    const struct torch_case *c = ready->ctx;
    cJSON *answer;
    *out = (struct rung_timing){
        .struct_size = sizeof *out, .kind = RUNG_TIME_MEASURED, .advice = {"", 0}};
    out->fault.struct_size = sizeof out->fault;
    out->measured.struct_size = sizeof out->measured;
    out->modelled.struct_size = sizeof out->modelled;
    if (!recipe->samples || recipe->samples > MAX_SAMPLES)
        return torch_fail(call->error, RUNG_EINVAL, "torch.recipe", "between 1 and 2^20 samples");
    if (!self->program || c->generation != self->generation)
        return torch_fail(call->error, RUNG_EUNAVAILABLE, "torch.ended",
                          "the PyTorch process that prepared this has ended");
    struct rung_device_condition before;
    look(self, call, &before);
    int32_t status =
        ask(self, call, recipe_request(c, recipe), 65536 + (uint64_t)recipe->samples * 32, &answer);
    if (status)
        return status;
    status = torch_samples(self->host, call, answer, recipe, &out->measured);
    cJSON_Delete(answer);
    out->measured.before = before;
    look(self, call, &out->measured.after);
    return status;
}

/* There is no call to talk in: the helper is told with the next request. */
static void release(void *ptr, struct rung_baseline_case *ready)
{
    struct torch *self = ptr;
    struct torch_case *c = ready->ctx;
    if (c && c->generation == self->generation && self->n_released < MAX_RELEASED)
        self->released[self->n_released++] = c->id;
    free(c);
    ready->ctx = NULL;
}

/* ---- Life ---- */

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    const char *python = host->opt_string(host, options, "python");
    struct torch *self = calloc(1, sizeof *self);
    if (!self)
        return torch_fail(err, RUNG_ENOMEM, "torch.memory", "out of memory");
    self->host = host;
    self->tf32 = host->opt_int(host, options, "tf32") != 0;
#ifdef TORCH_COMPILE
    snprintf(self->mode, sizeof self->mode, "%s", host->opt_string(host, options, "mode"));
#else
    snprintf(self->mode, sizeof self->mode, "eager");
#endif
    snprintf(self->python, sizeof self->python, "%s", python && python[0] ? python : "python3");
    *out = self;
    return RUNG_OK;
}

static void stop(void *ptr)
{
    end_program(ptr);
}

static void destroy(void *ptr)
{
    free(ptr);
}

static const struct rung_option option_python = {
    .struct_size = sizeof option_python,
    .type = RUNG_OPT_STRING,
    .name = "python",
    .default_text = "python3",
    .summary = "The Python that has PyTorch: a name in PATH or a path."};
static const struct rung_option option_tf32 = {
    .struct_size = sizeof option_tf32,
    .type = RUNG_OPT_BOOL,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "tf32",
    .default_text = "false",
    .summary = "Let products and convolutions of f32 use TF32; always so where the task's "
               "precision is tf32."};
#ifdef TORCH_COMPILE
static const char *const modes[] = {"default", "max-autotune", NULL};
static const struct rung_option option_mode = {
    .struct_size = sizeof option_mode,
    .type = RUNG_OPT_ENUM,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "mode",
    .default_text = "default",
    .values = modes,
    .summary = "How hard torch.compile tries; max-autotune may take minutes."};
static const struct rung_option *const options[] = {&option_python, &option_tf32, &option_mode,
                                                    NULL};
#else
static const struct rung_option *const options[] = {&option_python, &option_tf32, NULL};
#endif

static const struct rung_baseline_ops ops = {
    .struct_size = sizeof ops, .prepare = prepare, .measure = measure, .release = release};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_BASELINE,
#ifdef TORCH_COMPILE
    .name = "torch_compile",
    .summary = "The task's graph by torch.compile",
#else
    .name = "torch",
    .summary = "The task's graph by PyTorch, operator by operator",
#endif
    .doc = "A Python process with PyTorch draws the inputs on the same GPU and times there by the "
           "same recipe: sets of inputs that change before every sample, an emptied cache, batches "
           "replayed from a CUDA graph, launches queued up before the first event. Needs PyTorch "
           "for CUDA in the Python that `python` names.",
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
                                          .id = "rung.baseline.torch",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
