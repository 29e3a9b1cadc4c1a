/* llm_gemini: Gemini's generateContent and streamGenerateContent. */
#include "build.h"
#include "reply.h"
#include <stdlib.h>
#include <string.h>

static const struct llm_dialect dialect = {
    .build = gemini_build, .read = gemini_read, .event = gemini_event, .end = gemini_end};

static const struct rung_option opt_url = {
    .struct_size = sizeof opt_url,
    .type = RUNG_OPT_STRING,
    .name = "url",
    .default_text = "https://generativelanguage.googleapis.com/v1beta",
    .summary = "Base of the server's URLs; /v1beta is added where no path stands, then "
               "/models/MODEL:generateContent (or :streamGenerateContent).",
};
static const struct rung_option opt_key = {
    .struct_size = sizeof opt_key,
    .type = RUNG_OPT_SECRET,
    .name = "key",
    .summary = "Where the key is.",
};
static const struct rung_option opt_cap = {
    .struct_size = sizeof opt_cap,
    .type = RUNG_OPT_INT,
    .name = "max_output_tokens",
    .default_text = "0",
    .min = 0,
    .max = 10000000,
    .unit = "tokens",
    .summary = "Most tokens of one reply, thoughts included; 0: the provider's own.",
};
static const char *const effort_values[] = {"minimal", "low", "medium", "high", NULL};
static const struct rung_option opt_effort = {
    .struct_size = sizeof opt_effort,
    .type = RUNG_OPT_ENUM,
    .name = "effort",
    .values = effort_values,
    .summary = "How much the model shall think (thinkingLevel); not sent when absent.",
};
static const struct rung_option opt_budget = {
    .struct_size = sizeof opt_budget,
    .type = RUNG_OPT_INT,
    .name = "thinking_budget",
    .default_text = "-2",
    .min = GEMINI_UNSENT,
    .max = 10000000,
    .unit = "tokens",
    .summary =
        "Tokens for thoughts on models without levels: -1 the model's choice, 0 none; -2: not "
        "sent. It goes before effort.",
};
static const struct rung_option *const options[] = {
    &llm_opt_model, &opt_url, &opt_key, &opt_cap, &opt_effort, &opt_budget, LLM_OPTIONS, NULL};

/* "models/NAME" and "NAME" alike; what could lead elsewhere in a URL is escaped. */
static char *endpoint_of(const char *url, const char *model, const char *method)
{
    struct llm_text path = {0};
    if (strncmp(model, "models/", 7) == 0)
        model += 7;
    llm_text_puts(&path, "/models/");
    llm_add_encoded(&path, model);
    llm_text_puts(&path, method);
    char *all = path.failed ? NULL : llm_endpoint(url, "/v1beta", path.ptr);
    llm_text_free(&path);
    return all;
}

/* The address of streams: its query goes before one of the user's. */
static char *stream_of(const char *url, const char *model)
{
    struct llm_text all = {0};
    char *plain = endpoint_of(url, model, ":streamGenerateContent");
    const char *query = plain ? strchr(plain, '?') : NULL;
    if (plain)
        llm_text_add(&all, plain, query ? (size_t)(query - plain) : strlen(plain));
    llm_text_puts(&all, query ? "?alt=sse&" : "?alt=sse");
    llm_text_puts(&all, query ? query + 1 : "");
    free(plain);
    if (plain && !all.failed)
        return all.ptr;
    llm_text_free(&all);
    return NULL;
}

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct gemini *g = calloc(1, sizeof *g);
    if (!g)
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    const char *url = host->opt_string(host, set, "url");
    const char *model = host->opt_string(host, set, "model");
    int32_t status = llm_provider_init(&g->base, host, set, "gemini", error);
    g->base.dialect = &dialect;
    g->base.login = (struct llm_login){.header = "x-goog-api-key", .id_header = "x-request-id"};
    g->base.endpoint = endpoint_of(url, model, ":generateContent");
    g->base.stream_endpoint = stream_of(url, model);
    g->thinking_budget = host->opt_int(host, set, "thinking_budget");
    if (status == RUNG_OK && !g->base.stream_endpoint)
        status = llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    if (status == RUNG_OK)
        status = llm_provider_ready(&g->base, error);
    if (status != RUNG_OK)
        llm_provider_destroy(g);
    else
        *self = g;
    return status;
}

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_LLM,
    .name = "gemini",
    .summary = "Google's Gemini, through generateContent.",
    .doc = "Thoughts are kept out of the answer; their signatures go back on the next turn. "
           "docs/providers.md tells more.",
    .options = options,
    .ops = &llm_provider_ops,
    .validate = llm_provider_validate,
    .create = create,
    .start = llm_provider_start,
    .destroy = llm_provider_destroy,
};

LLM_PLUGIN("org.rung.llm.gemini", factory)
