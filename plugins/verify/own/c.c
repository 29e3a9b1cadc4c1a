/*
 * reference "c": a C file of the user's, `void reference(const struct rung_task *t)`, compiled by
 * the system's compiler together with config/reference/driver.c and run as a program of its own, so
 * that its crash or endless loop is an error and no more. Numbers travel through shared memory.
 */
#include "own.h"

#include <rung/host.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FLAGS = 32, MAX_ARGS = 64, PATH_BYTES = 4096, FOLDER_BYTES = 1024, MAX_LOAD = 64 << 10 };

struct c_reference {
    const struct rung_host *host;
    const struct rung_host_program *programs; /* NULL where there is no such service */
    struct own_settings settings;
    struct own_memory memory;
    char file[PATH_BYTES], cc[PATH_BYTES];
    char *flags[MAX_FLAGS + 1];
    uint32_t n_flags;
    char *built_for;               /* header of the task that the programs are for; NULL: none */
    struct rung_program *forms[2]; /* float64, float32 (may be NULL) */
    int shared;                    /* memfd; -1: none */
    char *base;
    size_t bytes;
};

/* ---- Texts made for the task ---- */

/* Loads and stores the members of struct rung_task; word k is the k-th 8 bytes of the file. */
static char *load_text(const struct c_reference *self, struct rung_call *call,
                       const struct rung_task *task)
{
    char *text = self->host->alloc(self->host, call->arena, MAX_LOAD, 1);
    size_t n = 0;
    uint32_t k = 0;
#define ADD(...) n += n < MAX_LOAD ? (size_t)snprintf(text + n, MAX_LOAD - n, __VA_ARGS__) : 0
    if (!text)
        return NULL;
    ADD("static void rung_load(struct rung_task *t, char *base, real *(*take)(char *, long long, "
        "long long))\n{\n    const long long *w = (const long long *)base;\n");
    for (uint32_t i = 0; i < task->n_dims; i++)
        ADD("    t->%s = w[%u];\n", task->dims[i].name, k++);
    for (uint32_t i = 0; i < task->n_params; i++, k++)
        ADD("    memcpy(&t->%s, &w[%u], 8);\n", task->params[i].name, k);
    for (uint32_t i = 0; i < task->n_tensors; i++)
        ADD("    t->%s = take(base, w[%u], w[%u]);\n", task->tensors[i].name, k + 2 * i,
            k + 2 * i + 1);
    ADD("}\nstatic void rung_store(struct rung_task *t, char *base, void (*give)(char *, long "
        "long, long long, real *, int))\n{\n    const long long *w = (const long long *)base;\n");
    for (uint32_t i = 0; i < task->n_tensors; i++)
        ADD("    give(base, w[%u], w[%u], (real *)t->%s, %d);\n", k + 2 * i, k + 2 * i + 1,
            task->tensors[i].name, (task->tensors[i].role & ~1u) == RUNG_ROLE_OUTPUT);
    ADD("}\n");
#undef ADD
    return n < MAX_LOAD ? text : NULL;
}

/* ---- Building ---- */

static int write_text(const char *folder, const char *name, const char *text)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    int good = f && fputs(text, f) >= 0;
    return f ? fclose(f) == 0 && good : 0;
}

static void remove_folder(const char folder[FOLDER_BYTES])
{
    static const char *const names[] = {"rung_task.h", "rung_load.h", "double", "single"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static int32_t compile(struct c_reference *self, struct rung_call *call, const char *folder,
                       int single)
{
    char include[PATH_BYTES], out[PATH_BYTES], driver[PATH_BYTES], header[PATH_BYTES];
    const char *argv[MAX_ARGS] = {self->cc, "-std=gnu11", "-ffp-contract=off"};
    size_t n = 3;
    snprintf(include, sizeof include, "-I%s", folder);
    snprintf(out, sizeof out, "%s/%s", folder, single ? "single" : "double");
    snprintf(driver, sizeof driver, "%s/reference/driver.c", self->host->data_dir);
    snprintf(header, sizeof header, "%s/rung_task.h", folder);
    for (uint32_t i = 0; i < self->n_flags; i++)
        argv[n++] = self->flags[i];
    if (single)
        argv[n++] = "-DRUNG_SINGLE";
    const char *const rest[] = {include, "-include", header, self->file, driver, "-o", out, "-lm"};
    memcpy(argv + n, rest, sizeof rest);
    struct rung_program_run run = {.struct_size = sizeof run, .argv = argv};
    struct rung_program_result result = {.struct_size = sizeof result};
    int32_t status = self->programs->run_once(self->host, call, &run, &result);
    if (status == RUNG_OK && result.status != 0)
        return own_fail(call->error, RUNG_ECONFIG, "reference.compile",
                        "%s does not compile:\n%.800s", self->file,
                        result.errors.ptr ? result.errors.ptr : "");
    return status;
}

/* Starts a form, and waits until it runs, so that its file can go. */
static int32_t start_form(struct c_reference *self, struct rung_call *call, const char *folder,
                          int single)
{
    char path[PATH_BYTES];
    const char *const argv[] = {path, NULL};
    struct rung_text answer;
    snprintf(path, sizeof path, "%s/%s", folder, single ? "single" : "double");
    int32_t status = self->programs->open(self->host, call, argv, NULL, &self->forms[single]);
    if (status == RUNG_OK)
        status = self->programs->exchange(self->host, call, self->forms[single],
                                          (struct rung_text){"/dev/null/none", 14}, 0, &answer);
    return status;
}

static void forget_forms(struct c_reference *self)
{
    for (int i = 0; i < 2; i++) {
        if (self->forms[i])
            self->programs->close(self->host, self->forms[i]);
        self->forms[i] = NULL;
    }
    free(self->built_for);
    self->built_for = NULL;
}

static int32_t build_in(struct c_reference *self, struct rung_call *call, const char *folder,
                        const char *header, const char *load)
{
    if (!write_text(folder, "rung_task.h", header) || !write_text(folder, "rung_load.h", load))
        return own_fail(call->error, RUNG_EIO, "reference.folder", "%s can't be written: %s",
                        folder, strerror(errno));
    int32_t status = compile(self, call, folder, 0);
    if (status == RUNG_OK)
        status = start_form(self, call, folder, 0);
    if (status != RUNG_OK)
        return status;
    /* A source that insists on double has no float32 form; the estimate does without. */
    if (compile(self, call, folder, 1) != RUNG_OK || start_form(self, call, folder, 1) != RUNG_OK) {
        if (self->forms[1])
            self->programs->close(self->host, self->forms[1]);
        self->forms[1] = NULL;
        call->error->code = RUNG_OK;
    }
    self->built_for = strdup(header);
    return self->built_for ? RUNG_OK
                           : own_fail(call->error, RUNG_ENOMEM, "reference.memory", "no memory");
}

static int32_t build(struct c_reference *self, struct rung_call *call, const struct rung_task *task)
{
    char folder[FOLDER_BYTES];
    const char *temp = getenv("TMPDIR");
    struct rung_text source;
    int32_t status = own_read_source(self->host, call, self->file, &source);
    if (status != RUNG_OK || !self->programs)
        return status;
    const char *header = own_header(self->host, call, task);
    const char *load = load_text(self, call, task);
    if (!header || !load)
        return own_fail(call->error, RUNG_EUNSUPPORTED, "reference.task",
                        "the task has too many names for a C reference");
    if (self->built_for && strcmp(self->built_for, header) == 0)
        return RUNG_OK;
    forget_forms(self);
    snprintf(folder, sizeof folder, "%s/rung-reference-XXXXXX", temp && *temp ? temp : "/tmp");
    if (strlen(folder) + 1 == sizeof folder || !mkdtemp(folder))
        return own_fail(call->error, RUNG_EIO, "reference.folder", "no temporary folder: %s",
                        strerror(errno));
    status = build_in(self, call, folder, header, load);
    remove_folder(folder);
    if (status != RUNG_OK)
        forget_forms(self);
    return status;
}

static int32_t check(void *ptr, struct rung_call *call, const struct rung_task *task)
{
    return build(ptr, call, task);
}

/* ---- Computing ---- */

static int32_t shared_room(struct c_reference *self, struct rung_call *call, size_t bytes)
{
    if (self->base && bytes <= self->bytes)
        return RUNG_OK;
    if (self->base)
        munmap(self->base, self->bytes);
    self->base = NULL;
    if (self->shared < 0)
        self->shared = memfd_create("rung-reference", MFD_CLOEXEC);
    void *at = MAP_FAILED;
    if (self->shared >= 0 && ftruncate(self->shared, (off_t)bytes) == 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, self->shared, 0);
    if (at == MAP_FAILED)
        return own_fail(call->error, RUNG_ENOMEM, "reference.memory",
                        "no room for %zu bytes of shared memory", bytes);
    self->base = at;
    self->bytes = bytes;
    return RUNG_OK;
}

/* Head of words, then each tensor at a multiple of 64 bytes. Returns the size of all. */
static size_t layout(const struct own_io *io, int64_t *words)
{
    const struct rung_task *task = io->task;
    size_t k = 0, at = (task->n_dims + task->n_params + 2 * (size_t)task->n_tensors) * 8;
    for (uint32_t i = 0; i < task->n_dims; i++, k++)
        if (words)
            words[k] = io->dims[i];
    for (uint32_t i = 0; i < task->n_params; i++, k++)
        if (words && task->params[i].dtype == RUNG_I64)
            words[k] = task->params[i].i64;
        else if (words)
            memcpy(&words[k], &task->params[i].f64, 8);
    for (uint32_t i = 0; i < task->n_tensors; i++, k += 2) {
        at = (at + 63) / 64 * 64;
        if (words) {
            words[k] = (int64_t)at;
            words[k + 1] = (int64_t)io->n[i];
        }
        at += io->n[i] * 8;
    }
    return at;
}

static void copy_tensors(const struct c_reference *self, const struct own_io *io, int back)
{
    const int64_t *words = (const int64_t *)self->base;
    size_t k = io->task->n_dims + io->task->n_params;
    for (uint32_t i = 0; i < io->task->n_tensors; i++, k += 2) {
        char *there = self->base + words[k];
        if (!back)
            memcpy(there, io->v[i], io->n[i] * 8);
        else if ((io->task->tensors[i].role & ~1u) == RUNG_ROLE_OUTPUT)
            memcpy(io->v[i], there, io->n[i] * 8);
    }
}

static int32_t compute(void *ptr, struct rung_call *call, const struct own_io *io, int single)
{
    struct c_reference *self = ptr;
    char path[64];
    struct rung_text answer;
    if (single && !self->forms[1])
        return RUNG_EUNSUPPORTED;
    int32_t status = shared_room(self, call, layout(io, NULL));
    if (status != RUNG_OK)
        return status;
    layout(io, (int64_t *)self->base);
    copy_tensors(self, io, 0);
    int n = snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), self->shared);
    status = self->programs->exchange(self->host, call, self->forms[single],
                                      (struct rung_text){path, (uint64_t)n}, 0, &answer);
    if (status != RUNG_OK) { /* gone: it is built anew next time */
        char why[512];
        snprintf(why, sizeof why, "%.500s", call->error->message);
        forget_forms(self);
        return own_fail(call->error, status == RUNG_EUNAVAILABLE ? RUNG_EINTERNAL : status,
                        "reference.program", "%s: the reference did not answer: %s", self->file,
                        why);
    }
    if (strcmp(answer.ptr, "ok") != 0)
        return own_fail(call->error, RUNG_EINTERNAL, "reference.program", "%s: %.200s", self->file,
                        answer.ptr);
    copy_tensors(self, io, 1);
    return RUNG_OK;
}

static int32_t evaluate(void *ptr, struct rung_call *call,
                        const struct rung_reference_request *request,
                        struct rung_reference_output *outputs, uint32_t n_outputs)
{
    struct c_reference *self = ptr;
    if (!self->programs)
        return own_fail(call->error, RUNG_EUNSUPPORTED, "reference.service",
                        "programs can't be started here");
    int32_t status = build(self, call, request->task);
    if (status != RUNG_OK)
        return status;
    return own_evaluate(&self->settings, &self->memory, call, request, compute, self, outputs,
                        n_outputs);
}

/* ---- Life ---- */

static void destroy(void *ptr)
{
    struct c_reference *self = ptr;
    if (self->programs)
        forget_forms(self);
    own_forget(&self->memory);
    for (uint32_t i = 0; i < self->n_flags; i++)
        free(self->flags[i]);
    if (self->base)
        munmap(self->base, self->bytes);
    if (self->shared >= 0)
        close(self->shared);
    free(self);
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    struct c_reference *self = calloc(1, sizeof *self);
    uint32_t n = host->opt_count(host, options, "flags");
    if (!self)
        return own_fail(err, RUNG_ENOMEM, "reference.memory", "out of memory");
    self->host = host;
    self->shared = -1;
    self->programs = host->get_extension(host, RUNG_HOST_PROGRAM);
    self->settings = own_settings_read(host, options);
    snprintf(self->file, sizeof self->file, "%s", host->opt_string(host, options, "file"));
    snprintf(self->cc, sizeof self->cc, "%s", host->opt_string(host, options, "cc"));
    for (uint32_t i = 0; i < n && i < MAX_FLAGS; i++)
        self->flags[self->n_flags++] = strdup(host->opt_string_at(host, options, "flags", i));
    *out = self;
    if (n <= MAX_FLAGS)
        return RUNG_OK;
    destroy(self);
    return own_fail(err, RUNG_ECONFIG, "reference.flags", "flags: at most %d", MAX_FLAGS);
}

static const struct rung_option option_file = {
    .struct_size = sizeof option_file,
    .type = RUNG_OPT_PATH,
    .flags = RUNG_OPT_REQUIRED | RUNG_OPT_AFFECTS_RESULT,
    .name = "file",
    .summary = "C file with `void reference(const struct rung_task *t)`; workers must see it too."};
static const struct rung_option option_cc = {.struct_size = sizeof option_cc,
                                             .type = RUNG_OPT_STRING,
                                             .name = "cc",
                                             .default_text = "cc",
                                             .summary = "Compiler."};
static const struct rung_option option_flags = {
    .struct_size = sizeof option_flags,
    .type = RUNG_OPT_STRINGS,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "flags",
    .default_text = "-O2",
    .summary = "The compiler's options; -std=gnu11 and -ffp-contract=off stand before them."};
static const struct rung_option *const options[] = {
    &option_file,       &option_cc,       &option_flags,    &own_option_trials,
    &own_option_safety, &own_option_rtol, &own_option_atol, NULL};

static const struct rung_reference_ops ops = {
    .struct_size = sizeof ops, .check = check, .evaluate = evaluate, .work = own_work};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_SERIAL_INSTANCE,
    .kind = RUNG_KIND_REFERENCE,
    .name = "c",
    .summary = "A C function of the user's, in float64",
    .doc = "The file defines `void reference(const struct rung_task *t)`. struct rung_task has a "
           "member for every dim,\nparam and tensor of the task (t->rows, t->scale, t->x); "
           "tensors are arrays of `real`, dense and\nrow-major. `real` is double; written with "
           "it, the same function is also compiled for float, which\nsharpens the error bounds.",
    .options = options,
    .ops = &ops,
    .create = create,
    .destroy = destroy,
};

static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "org.rung.reference.c",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
