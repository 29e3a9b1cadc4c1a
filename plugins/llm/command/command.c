/*
 * llm_command: any program of the user's as a model: the prompt on its standard input, the reply on
 * its standard output. No shell sees either. An instance holds only options, so that calls may run
 * at once, a process each.
 */
#include "../common/plugin.h"
#include "render.h"
#include <rung/host.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 256, LATER = 75 /* EX_TEMPFAIL of sysexits.h: come again later */ };

struct command {
    const struct rung_host *host;
    const struct rung_host_program *program; /* NULL before start */
    char **argv;                             /* NULL-terminated */
    char *model;
    bool json;
    double timeout_s;
    int64_t max_output; /* bytes */
};

static int32_t check_status(const struct command *c, const struct rung_program_result *result,
                            struct rung_error *error)
{
    char last[400];
    if (result->status == 0)
        return RUNG_OK;
    llm_excerpt(last, sizeof last, (struct llm_span){result->errors.ptr, result->errors.len});
    const bool later = result->status == LATER;
    return llm_fail(
        error, later ? RUNG_EUNAVAILABLE : RUNG_ECONFIG, later ? "llm.overloaded" : "llm.request",
        "command: %s ended with %s %d%s%s", c->argv[0], result->status > 128 ? "signal" : "status",
        result->status > 128 ? result->status - 128 : result->status, last[0] ? ": " : "", last);
}

static int32_t run(const struct command *c, struct rung_call *call, const struct llm_text *input,
                   struct rung_program_result *result)
{
    struct rung_call timed = *call;
    const uint64_t end = c->host->now_ns(c->host) + (uint64_t)(c->timeout_s * 1e9);
    const struct rung_program_run request = {.struct_size = sizeof request,
                                             .argv = (const char *const *)c->argv,
                                             .input = {input->ptr, input->len},
                                             .max_output = (uint64_t)c->max_output};
    if (!timed.deadline_ns || end < timed.deadline_ns)
        timed.deadline_ns = end;
    return c->program->run_once(c->host, &timed, &request, result);
}

/* The reply is what the program wrote, repaired to UTF-8, without blank lines around it. */
static int32_t answer(const struct command *c, struct rung_call *call,
                      const struct rung_llm_request *request,
                      const struct rung_program_result *result, struct rung_llm_response *out)
{
    struct llm_text clean = {0};
    const struct llm_span text =
        llm_trim((struct llm_span){result->output.ptr, result->output.len});
    int32_t status;
    llm_text_add_utf8(&clean, text.ptr, text.len);
    if (clean.failed)
        status = llm_fail(call->error, RUNG_ENOMEM, "llm.memory", "no memory for the reply");
    else if (!clean.len)
        status =
            llm_fail(call->error, RUNG_EIO, "llm.reply", "command: %s wrote nothing", c->argv[0]);
    else
        status = llm_answer(c->host, call, request, clean.ptr, clean.len, RUNG_FINISH_STOP,
                            c->model[0] ? c->model : c->argv[0], out);
    llm_text_free(&clean);
    return status;
}

static int32_t complete(void *self, struct rung_call *call, const struct rung_llm_request *request,
                        struct rung_llm_response *out)
{
    const struct command *c = self;
    struct llm_text input = {0};
    struct rung_program_result result = {.struct_size = sizeof result};
    int32_t status = llm_turns_check(request, call->error);
    if (status != RUNG_OK)
        return status;
    if (c->json)
        command_render_json(request, &input);
    else
        command_render_text(request, &input);
    if (input.failed)
        status = llm_fail(call->error, RUNG_ENOMEM, "llm.memory", "no memory for the prompt");
    if (status == RUNG_OK)
        status = run(c, call, &input, &result);
    if (status == RUNG_OK)
        status = check_status(c, &result, call->error);
    if (status == RUNG_OK)
        status = answer(c, call, request, &result, out);
    out->tries = 1;
    llm_text_free(&input);
    return status;
}

/* ---- Settings and life ---- */

static const struct rung_option opt_argv = {
    .struct_size = sizeof opt_argv,
    .type = RUNG_OPT_STRINGS,
    .flags = RUNG_OPT_REQUIRED,
    .name = "argv",
    .summary =
        "The program and its arguments, one text each; no shell reads them. A program without "
        "a '/' is looked for in PATH.",
};
static const char *const format_values[] = {"text", "json", NULL};
static const struct rung_option opt_format = {
    .struct_size = sizeof opt_format,
    .type = RUNG_OPT_ENUM,
    .name = "format",
    .default_text = "text",
    .values = format_values,
    .summary =
        "How the conversation stands on its standard input: text with a heading a message, or "
        "one line of JSON.",
};
static const struct rung_option opt_model = {
    .struct_size = sizeof opt_model,
    .type = RUNG_OPT_STRING,
    .name = "model",
    .summary = "Name by which the run's record knows the model; default: the program's.",
};
static const struct rung_option opt_timeout = {
    .struct_size = sizeof opt_timeout,
    .type = RUNG_OPT_DURATION,
    .name = "timeout",
    .default_text = "20m",
    .unit = "s",
    .min = 1,
    .max = 86400,
    .summary = "Longest run of the program; then its process group is killed.",
};
static const struct rung_option opt_output = {
    .struct_size = sizeof opt_output,
    .type = RUNG_OPT_BYTES,
    .flags = RUNG_OPT_ADVANCED,
    .name = "max_output",
    .default_text = "4MiB",
    .unit = "bytes",
    .min = 1024,
    .max = 67108864,
    .summary = "Most bytes of one reply; a program that writes more is killed.",
};
static const struct rung_option *const options[] = {&opt_argv,    &opt_format, &opt_model,
                                                    &opt_timeout, &opt_output, NULL};

static int32_t validate(const struct rung_host *host, const struct rung_options *set,
                        struct rung_error *error)
{
    const uint32_t n = host->opt_count(host, set, "argv");
    if (n >= 1 && n <= MAX_ARGS && host->opt_string_at(host, set, "argv", 0)[0])
        return RUNG_OK;
    return llm_fail(error, RUNG_ECONFIG, "llm.argv",
                    "'argv' must name a program, with at most %d texts in all", MAX_ARGS);
}

static void destroy(void *self)
{
    struct command *c = self;
    for (char **arg = c->argv; arg && *arg; ++arg)
        free(*arg);
    free(c->argv);
    free(c->model);
    free(c);
}

static bool copy_argv(struct command *c, const struct rung_options *set)
{
    const uint32_t n = c->host->opt_count(c->host, set, "argv");
    c->argv = calloc(n + 1, sizeof *c->argv);
    for (uint32_t i = 0; c->argv && i < n; ++i) {
        c->argv[i] = strdup(c->host->opt_string_at(c->host, set, "argv", i));
        if (!c->argv[i])
            return false;
    }
    return c->argv != NULL;
}

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct command *c = calloc(1, sizeof *c);
    if (!c)
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    c->host = host;
    c->json = strcmp(host->opt_string(host, set, "format"), "json") == 0;
    c->timeout_s = host->opt_float(host, set, "timeout");
    c->max_output = host->opt_int(host, set, "max_output");
    c->model = strdup(host->opt_string(host, set, "model"));
    if (!c->model || !copy_argv(c, set)) {
        destroy(c);
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    }
    *self = c;
    return RUNG_OK;
}

static int32_t start(void *self, struct rung_error *error)
{
    struct command *c = self;
    c->program = c->host->get_extension(c->host, RUNG_HOST_PROGRAM);
    if (c->program && RUNG_HAS(c->program, run_once) && c->program->run_once)
        return RUNG_OK;
    return llm_fail(error, RUNG_EUNAVAILABLE, "llm.program",
                    "command: this host starts no programs");
}

static const struct rung_llm_ops ops = {.struct_size = sizeof ops, .complete = complete};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_LLM,
    .name = "command",
    .summary = "Any program: the prompt on its standard input, the reply on its standard output.",
    .doc =
        "The reply is all of its standard output when it ends with status 0. Status 75 means come "
        "again later; any other status, or a signal, is an error that ends the request. What it "
        "writes to standard error goes to the log. docs/providers.md tells the two formats.",
    .options = options,
    .ops = &ops,
    .validate = validate,
    .create = create,
    .start = start,
    .destroy = destroy,
};
LLM_PLUGIN("org.rung.llm.command", factory)
