/* What sources of the user's are given, and how they are read. */
#include "own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_SOURCE = 1 << 20, MAX_HEADER = 64 << 10 };

struct text {
    char *at;
    size_t n, cap;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at + t->n, t->cap - t->n, format, args);
    va_end(args);
    t->n += n > 0 ? (size_t)n : 0;
    if (t->n >= t->cap)
        t->n = t->cap - 1;
}

static void add_tensor(struct text *t, const struct rung_tensor_spec *spec)
{
    add(t, "    %sreal *%s; /* ",
        spec->role == RUNG_ROLE_INPUT || spec->role == RUNG_ROLE_WEIGHT ? "const " : "",
        spec->name);
    for (uint32_t d = 0; d < spec->n_dims; d++)
        add(t, "%s%s", d ? ", " : "", spec->shape[d]);
    add(t, " */\n");
}

const char *own_header(const struct rung_host *host, struct rung_call *call,
                       const struct rung_task *task)
{
    struct text t = {host->alloc(host, call->arena, MAX_HEADER, 1), 0, MAX_HEADER};
    if (!t.at)
        return NULL;
    add(&t,
        "/* Made for the task %s. Tensors are dense and row-major. */\n"
        "#ifndef RUNG_TASK_H\n#define RUNG_TASK_H\n"
        "#ifdef RUNG_SINGLE\ntypedef float real;\n#else\ntypedef double real;\n#endif\n"
        "struct rung_task {\n",
        task->name);
    for (uint32_t i = 0; i < task->n_dims; i++)
        add(&t, "    long long %s;\n", task->dims[i].name);
    for (uint32_t i = 0; i < task->n_params; i++)
        add(&t, "    %s %s;\n", task->params[i].dtype == RUNG_I64 ? "long long" : "double",
            task->params[i].name);
    for (uint32_t i = 0; i < task->n_tensors; i++)
        add_tensor(&t, &task->tensors[i]);
    add(&t, "};\n#endif\n");
    return t.n < MAX_HEADER - 1 ? t.at : NULL;
}

int32_t own_read_source(const struct rung_host *host, struct rung_call *call, const char *path,
                        struct rung_text *out)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *why = fd < 0                                   ? strerror(errno)
                      : fstat(fd, &st) || !S_ISREG(st.st_mode) ? "it is no plain file"
                      : st.st_size > MAX_SOURCE                ? "it is larger than 1 MiB"
                                                               : NULL;
    char *text = why ? NULL : host->alloc(host, call->arena, (uint64_t)st.st_size + 1, 1);
    ssize_t n = text ? read(fd, text, (size_t)st.st_size) : 0;
    if (fd >= 0)
        close(fd);
    if (!why && (!text || n != st.st_size))
        why = text ? "it can't be read whole" : "no room";
    if (why)
        return own_fail(call->error, RUNG_ECONFIG, "reference.file",
                        "%s can't be read: %s (option file of the task's reference)", path, why);
    *out = (struct rung_text){text, (uint64_t)n};
    return RUNG_OK;
}
