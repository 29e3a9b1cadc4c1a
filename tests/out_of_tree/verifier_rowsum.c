/*
 * A verifier in one file: checks that the rows of an output add up to a number, as softmax's rows
 * add up to 1. It knows nothing of the reference, so that it catches what both might get wrong.
 *
 *   rungs = ( { plugin = "numeric"; }, { plugin = "rowsum"; tolerance = 1e-4; } );
 *
 * 1. Describe the options: the one source of validation, defaults and `rung plugin info`.
 * 2. Keep what the options say in create(); free it in destroy(). Nothing else has state.
 * 3. In check(): run the variant through the session, look at an output with map(), end the run.
 * 4. Answer with a verdict. A wrong kernel is a verdict; an error means that the check itself
 * broke.
 * 5. Describe the factory and the plugin, and export the one entry point.
 */
#include <rung/verifier.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rowsum {
    const struct rung_host *host;
    double sum, tolerance;
};

/* 1 */
static const struct rung_option opt_sum = {
    .struct_size = sizeof opt_sum, .type = RUNG_OPT_FLOAT, .name = "sum", .default_text = "1.0",
    .summary = "What the elements of a row add up to."};
static const struct rung_option opt_tolerance = {
    .struct_size = sizeof opt_tolerance, .type = RUNG_OPT_FLOAT, .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "tolerance", .default_text = "1e-4", .max = 1e30, .summary = "Largest difference."};
static const struct rung_option *const options[] = {&opt_sum, &opt_tolerance, NULL};

static int32_t no_memory(struct rung_error *error)
{
    error->code = RUNG_ENOMEM;
    snprintf(error->message, sizeof error->message, "rowsum: no memory");
    return RUNG_ENOMEM;
}

/* 2 */
static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct rowsum *rowsum = calloc(1, sizeof *rowsum);
    if (!rowsum)
        return no_memory(error);
    rowsum->host = host;
    rowsum->sum = host->opt_float(host, set, "sum");
    rowsum->tolerance = host->opt_float(host, set, "tolerance");
    *self = rowsum;
    return RUNG_OK;
}

/* 4: the text is for the model. */
static int32_t answer(const struct rowsum *rowsum, struct rung_call *call, uint32_t status,
                      const char *code, const char *text, struct rung_verdict *out)
{
    const size_t n = strlen(text);
    char *detail = rowsum->host->alloc(rowsum->host, call->arena, n + 1, 1);
    if (!detail)
        return no_memory(call->error);
    memcpy(detail, text, n);
    out->status = status;
    snprintf(out->code, sizeof out->code, "%s", code);
    out->detail = (struct rung_text){detail, n};
    return RUNG_OK;
}

/* The row that is farthest off, summed in float64; rows are along the last axis. */
static int64_t worst_row(const struct rung_tensor_view *y, double want, double *sum)
{
    const float *row = (const float *)y->data + y->offset;
    const int64_t cols = y->n_dims ? y->dims[y->n_dims - 1] : 1;
    int64_t rows = 1, worst = -1;
    double farthest = -1.0;
    for (uint32_t d = 0; d + 1 < y->n_dims; ++d)
        rows *= y->dims[d];
    for (int64_t r = 0; r < rows; ++r, row += cols) {
        double total = 0.0;
        for (int64_t c = 0; c < cols; ++c)
            total += row[c];
        const double off = isfinite(total) ? fabs(total - want) : INFINITY;
        if (off > farthest) {
            farthest = off;
            worst = r;
            *sum = total;
        }
    }
    return worst;
}

/* 3: looks at one output of a finished run. */
static int32_t judge(const struct rowsum *rowsum, struct rung_call *call,
                     const struct rung_session *session, struct rung_run *run, uint32_t tensor,
                     struct rung_verdict *out)
{
    struct rung_tensor_view y = {.struct_size = sizeof y};
    const int32_t status = session->map(session, call, run, tensor, &y);
    char text[256];
    double sum = rowsum->sum;
    if (status != RUNG_OK)
        return status;
    if (y.dtype != RUNG_F32)
        return answer(rowsum, call, RUNG_SKIPPED, "", "rowsum looks at f32 outputs only", out);
    const int64_t row = worst_row(&y, rowsum->sum, &sum);
    snprintf(text, sizeof text, "row %lld of %s adds up to %.9g; it should be %g", (long long)row,
             session->task->tensors[tensor].name, sum, rowsum->sum);
    if (fabs(sum - rowsum->sum) <= rowsum->tolerance)
        return answer(rowsum, call, RUNG_PASS, "", text, out);
    return answer(rowsum, call, RUNG_FAIL, "rowsum.mismatch", text, out);
}

/* 3: the task's first bench shape and first output. */
static int32_t check(void *self, struct rung_call *call, const struct rung_session *session,
                     struct rung_verdict *out)
{
    const struct rung_task *task = session->task;
    const struct rung_run_request request = {
        .struct_size = sizeof request, .dims = task->bench[0].dims, .seed = 1};
    struct rung_run *run = NULL;
    uint32_t tensor = 0;
    while (task->tensors[tensor].role != RUNG_ROLE_OUTPUT && tensor + 1 < task->n_tensors)
        ++tensor;
    int32_t status = session->run(session, call, &request, &run);
    if (status == RUNG_OK && run->fault.code[0])
        status = answer(self, call, RUNG_FAIL, run->fault.code, "the kernel failed to run", out);
    else if (status == RUNG_OK)
        status = judge(self, call, session, run, tensor, out);
    session->end(session, run);
    return status;
}

/* 5 */
static const struct rung_verifier_ops ops = {.struct_size = sizeof ops, .check = check};
static const struct rung_factory factory = {
    .struct_size = sizeof factory, .thread_model = RUNG_PARALLEL, .kind = RUNG_KIND_VERIFIER,
    .name = "rowsum", .summary = "Checks that rows of the output add up to a number.",
    .options = options, .ops = &ops, .create = create, .destroy = free};
static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC, .struct_size = sizeof plugin, .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT, .id = "org.example.rowsum", .version = "1.0",
    .vendor = "example", .licence = "Apache-2.0", .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
