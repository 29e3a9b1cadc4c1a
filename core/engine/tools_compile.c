/* The tool `compile`: a trial compile by a worker; nothing is run, and no candidate is made. */
#include "engine/tools.h"
#include "base/json.h"
#include "base/status.h"

#include <string.h>

/* What the codegen makes of the source; a fault of the source is *problem. */
static int32_t read_source(struct engine *e, const char *source, struct rung_arena *arena,
                           const struct rung_bundle **bundle, const char **problem,
                           struct rung_error *err)
{
    const char *reply =
        strstr(source, "```") ? source : rung_arena_printf(arena, "```cuda\n%s\n```\n", source);
    struct rung_call call = {
        .struct_size = sizeof call, .arena = arena, .cancel = e->cancel, .error = err};
    struct rung_reply_request req = {
        .struct_size = sizeof req, .task = e->task, .reply = rung_text_of(reply)};
    struct rung_reply_result out = {.struct_size = sizeof out};
    int32_t status;
    RUNG_INVOKE(status, e->codegen, struct rung_codegen_ops, read_reply, &call, &req, &out);
    if (status)
        return status;
    if (out.code[0] || !out.bundle)
        *problem = rung_arena_printf(arena, "Not compiled, %s: %s", out.code,
                                     out.message.ptr ? out.message.ptr : "no candidate in it");
    *bundle = out.bundle;
    return RUNG_OK;
}

static void add_kernel(struct rung_buf *text, const cJSON *kernel)
{
    rung_buf_printf(text,
                    "%s: %lld registers, %lld bytes of static shared memory, %lld bytes of "
                    "local memory, %lld bytes spilled\n",
                    rung_json_text(kernel, "kernel", ""),
                    (long long)rung_json_i64(kernel, "registers", 0),
                    (long long)rung_json_i64(kernel, "static_shared_bytes", 0),
                    (long long)rung_json_i64(kernel, "local_bytes", 0),
                    (long long)rung_json_i64(kernel, "spill_bytes", 0));
}

static const char *success(const struct rung_outcome *o, struct rung_arena *arena)
{
    struct rung_buf text = {0};
    const cJSON *kernel;
    const char *log = rung_json_text(rung_json_get(o->report, "compile"), "log", "");
    rung_buf_puts(&text, "It compiles.\n");
    cJSON_ArrayForEach(kernel, rung_json_get(rung_json_get(o->report, "resources"), "kernels"))
        add_kernel(&text, kernel);
    if (log[0])
        rung_buf_printf(&text, "%s\n", log);
    const char *copy = rung_arena_strdup(arena, rung_buf_text(&text));
    rung_buf_free(&text);
    return copy;
}

static int32_t compile(struct engine *e, const struct rung_bundle *bundle, struct rung_arena *arena,
                       const char **result, struct rung_error *err)
{
    struct rung_job job = {
        .label = "trial compile", .bundle = bundle, .stages = RUNG_STAGE_COMPILE};
    struct rung_outcome o = {0};
    int32_t status = rung_pool_run(e->pool, &job, arena, &o, err);
    if (status)
        return status;
    *result = o.verdict == RUNG_ACCEPTED
                  ? success(&o, arena)
                  : rung_arena_printf(arena, "%s\n%s", o.code, o.message ? o.message : "");
    cJSON_Delete(o.report);
    return RUNG_OK;
}

static int32_t run(struct engine *e, const cJSON *arguments, struct rung_arena *arena,
                   const char **result, struct rung_error *err)
{
    const char *source = rung_json_text(arguments, "source", NULL), *problem = NULL;
    const struct rung_bundle *bundle = NULL;
    if (!source || !*source) {
        *result = "The argument 'source' is missing: a whole candidate as text.";
        return RUNG_OK;
    }
    int32_t status = read_source(e, source, arena, &bundle, &problem, err);
    if (status || problem) {
        *result = problem;
        return status;
    }
    return compile(e, bundle, arena, result, err);
}

const struct engine_tool engine_tool_compile = {
    .name = "compile",
    .summary = "Compiles a candidate without running it. Gives the compiler's log, or registers, "
               "shared memory and spills of each kernel.",
    .schema = "{\"type\":\"object\",\"properties\":{\"source\":{\"type\":\"string\","
              "\"description\":\"a whole candidate: CUDA code with its //@ lines\"}},"
              "\"required\":[\"source\"],\"additionalProperties\":false}",
    .run = run,
};
