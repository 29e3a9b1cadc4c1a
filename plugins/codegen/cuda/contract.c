/* The candidate contract: {{placeholders}} of a template, each written from the task. */
#include "contract.h"
#include "text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEMPLATE = 256 * 1024 };

static const char *c_type(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_F64:
        return "double";
    case RUNG_F32:
        return "float";
    case RUNG_F16:
        return "__half";
    case RUNG_BF16:
        return "__nv_bfloat16";
    case RUNG_I8:
        return "signed char";
    case RUNG_U8:
        return "unsigned char";
    case RUNG_I32:
        return "int";
    case RUNG_I64:
        return "long long";
    case RUNG_BOOL:
        return "bool";
    default:
        return "void";
    }
}

static void write_tensors(FILE *f, const struct rung_task *task)
{
    static const char *const roles[] = {"", "input", "output", "input and output",
                                        "weight (an input)"};
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        const struct rung_tensor_spec *t = &task->tensors[i];
        bool read_only = t->role == RUNG_ROLE_INPUT || t->role == RUNG_ROLE_WEIGHT;
        fprintf(f, "- `%s`: `%s%s *`, %s, shape [", t->name, read_only ? "const " : "",
                c_type(t->dtype), t->role <= RUNG_ROLE_WEIGHT ? roles[t->role] : "");
        for (uint32_t d = 0; d < t->n_dims && d < RUNG_MAX_DIMS; d++)
            fprintf(f, "%s%s", d ? ", " : "", t->shape[d]);
        fprintf(f, t->stride[0] ? "], strides [" : "], row-major");
        for (uint32_t d = 0; t->stride[0] && d < t->n_dims && d < RUNG_MAX_DIMS; d++)
            fprintf(f, "%s%s", d ? ", " : "", t->stride[d]);
        fprintf(f, "%s, %" PRIu64 "-byte aligned\n",
                t->stride[0] ? "] elements, what lies between them must stay as it is" : "",
                t->alignment);
    }
}

static void write_dims(FILE *f, const struct rung_task *task)
{
    if (!task->n_dims)
        fprintf(f, "none");
    for (uint32_t i = 0; i < task->n_dims; i++) {
        const struct rung_dim *d = &task->dims[i];
        fprintf(f, "%s`%s`", i ? ", " : "", d->name);
        if (d->derived)
            fprintf(f, " (= %s)", d->expr);
        else if (d->max != INT64_MAX)
            fprintf(f, " (%" PRId64 " to %" PRId64 ")", d->min, d->max);
        if (!d->derived && d->multiple_of > 1)
            fprintf(f, " (a multiple of %" PRId64 ")", d->multiple_of);
    }
}

static void write_params(FILE *f, const struct rung_task *task)
{
    if (!task->n_params)
        fprintf(f, "none");
    for (uint32_t i = 0; i < task->n_params; i++) {
        const struct rung_param *p = &task->params[i];
        if (p->dtype == RUNG_F64)
            fprintf(f, "%s`%s` (double or float, %.17g)", i ? ", " : "", p->name, p->f64);
        else
            fprintf(f, "%s`%s` (integer, %" PRId64 ")", i ? ", " : "", p->name, p->i64);
    }
}

static void write_precision(FILE *f, const struct rung_task *task)
{
    static const char *const rules[] = {
        "",
        "fp32: float at least, in products and sums; TF32, half and bfloat16 are caught and fail",
        "tf32: tensor cores may round inputs to TF32; sums in float",
        "fp16: half inputs to products; sums in float",
        "bf16: bfloat16 inputs to products; sums in float",
        "fp64: everything in double",
        "exact: integer results must be equal bit by bit",
    };
    fprintf(f, "%s", task->precision <= RUNG_PRECISION_EXACT ? rules[task->precision] : "");
}

static void write_shapes(FILE *f, const struct rung_task *task)
{
    fprintf(f,
            task->shape_rule == RUNG_SHAPES_FIXED
                ? "Only the benchmark's shapes count; specialising to them is allowed. They are: "
                : "It must be right for every value of the dims, odd and prime ones too. Speed "
                  "counts at: ");
    for (uint32_t c = 0; c < task->n_bench; c++) {
        fprintf(f, "%s", c ? "; " : "");
        for (uint32_t d = 0; d < task->n_dims; d++)
            fprintf(f, "%s%s = %" PRId64, d ? ", " : "", task->dims[d].name,
                    task->bench[c].dims[d]);
    }
}

static void write_graph(FILE *f, const struct rung_task *task)
{
    if (task->graph)
        fprintf(f, "`%s`", task->graph);
    else
        fprintf(f, "%s", task->summary);
}

static void write_summary(FILE *f, const struct rung_task *task)
{
    fprintf(f, "%s", task->summary);
}

static const struct {
    const char *name;
    void (*write)(FILE *, const struct rung_task *);
} placeholders[] = {
    {"summary", write_summary}, {"graph", write_graph},   {"tensors", write_tensors},
    {"dims", write_dims},       {"params", write_params}, {"precision", write_precision},
    {"shapes", write_shapes},
};
enum { N_PLACEHOLDERS = sizeof(placeholders) / sizeof(*placeholders) };

/* Index of the placeholder whose name starts at p (behind "{{"), or -1. */
static int find_placeholder(const char *p)
{
    for (int i = 0; i < N_PLACEHOLDERS; i++) {
        size_t n = strlen(placeholders[i].name);
        if (!strncmp(p, placeholders[i].name, n) && !strncmp(p + n, "}}", 2))
            return i;
    }
    return -1;
}

static int32_t check_template(const char *path, const char *text, struct rung_error *err)
{
    int line = 1;
    for (const char *p = text; *p; p++) {
        line += *p == '\n';
        if (p[0] == '{' && p[1] == '{' && find_placeholder(p + 2) < 0)
            return cg_fail(err, RUNG_ECONFIG, "codegen.contract",
                           "%s:%d: unknown placeholder {{%.20s; they are summary, graph, tensors, "
                           "dims, params, precision "
                           "and shapes",
                           path, line, p + 2);
    }
    return RUNG_OK;
}

char *cg_contract_read(const char *path, struct rung_error *err)
{
    FILE *f = fopen(path, "re");
    char *text = f ? malloc(MAX_TEMPLATE + 1) : NULL;
    if (!f || !text) {
        cg_fail(err, f ? RUNG_ENOMEM : RUNG_ECONFIG, "codegen.contract",
                "option contract: can't read %s: %s", path, strerror(errno));
        if (f)
            fclose(f);
        return NULL;
    }
    size_t n = fread(text, 1, MAX_TEMPLATE + 1, f);
    bool bad = ferror(f) || n > MAX_TEMPLATE || memchr(text, '\0', n);
    fclose(f);
    if (bad) {
        cg_fail(err, RUNG_ECONFIG, "codegen.contract",
                "option contract: %s is no text of at most %d bytes", path, MAX_TEMPLATE);
    } else {
        text[n] = '\0';
        bad = check_template(path, text, err) != RUNG_OK;
    }
    if (!bad)
        return text;
    free(text);
    return NULL;
}

int32_t cg_contract_fill(const struct rung_host *host, struct rung_call *call, const char *template,
                         const struct rung_task *task, struct rung_text *out)
{
    struct cg_writer w;
    const char *at;
    if (!cg_open(&w))
        return cg_no_memory(call->error);
    while ((at = strstr(template, "{{"))) {
        int i = find_placeholder(at + 2);
        fwrite(template, 1, (size_t)(at - template), w.file);
        placeholders[i].write(w.file, task);
        template = at + 4 + strlen(placeholders[i].name);
    }
    fputs(template, w.file);
    *out = cg_close(&w) ? cg_keep(host, call->arena, w.ptr, w.len) : (struct rung_text){NULL, 0};
    free(w.ptr);
    return out->ptr ? RUNG_OK : cg_no_memory(call->error);
}
