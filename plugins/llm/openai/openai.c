/*
 * llm_openai: OpenAI's Chat Completions, for OpenAI and for every server that speaks it. What
 * differs between them is the option `dialect` (dialects.c), and what differs between models the
 * tables of models.
 */
#include "build.h"
#include "reply.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct llm_dialect dialect = {
    .build = openai_build, .read = openai_read, .event = openai_event, .end = openai_end};

static const struct rung_option opt_url = {
    .struct_size = sizeof opt_url,
    .type = RUNG_OPT_STRING,
    .name = "url",
    .default_text = "auto",
    .summary = "Base of the server's URLs; /v1 is added where no path stands, then "
               "/chat/completions. auto is the dialect's own; azure and generic have none.",
};
static const struct rung_option opt_dialect = {
    .struct_size = sizeof opt_dialect,
    .type = RUNG_OPT_ENUM,
    .name = "dialect",
    .default_text = "auto",
    .values = openai_dialect_words,
    .summary = "Which server it is; auto goes by the url: OpenAI without one, generic for a host "
               "that is not known.",
};
static const struct rung_option opt_api_version = {
    .struct_size = sizeof opt_api_version,
    .type = RUNG_OPT_STRING,
    .flags = RUNG_OPT_ADVANCED,
    .name = "api_version",
    .summary = "Azure's older API: with it requests go to /openai/deployments/MODEL, with "
               "?api-version=.",
};
static const struct rung_option opt_key = {
    .struct_size = sizeof opt_key,
    .type = RUNG_OPT_SECRET,
    .name = "key",
    .summary = "Where the key is; local servers need none.",
};
static const struct rung_option opt_key_header = {
    .struct_size = sizeof opt_key_header,
    .type = RUNG_OPT_STRING,
    .flags = RUNG_OPT_ADVANCED,
    .name = "key_header",
    .summary =
        "Header that carries the key: authorization sends \"Bearer KEY\", any other the bare "
        "key. Default: the dialect's own, api-key for azure and else authorization.",
};
static const struct rung_option opt_cap = {
    .struct_size = sizeof opt_cap,
    .type = RUNG_OPT_INT,
    .name = "max_output_tokens",
    .default_text = "0",
    .min = 0,
    .max = 10000000,
    .unit = "tokens",
    .summary = "Most tokens of one reply, reasoning included; 0: the provider's own.",
};
static const char *const cap_values[] = {"auto", "max_completion_tokens", "max_tokens", NULL};
static const struct rung_option opt_cap_field = {
    .struct_size = sizeof opt_cap_field,
    .type = RUNG_OPT_ENUM,
    .flags = RUNG_OPT_ADVANCED,
    .name = "cap_field",
    .default_text = "auto",
    .values = cap_values,
    .summary =
        "Name of the field that carries max_output_tokens; auto goes by the model and the dialect, "
        "and changes once where the server refuses the name.",
};
static const char *const effort_values[] = {"none", "minimal", "low", "medium",
                                            "high", "xhigh",   "max", NULL};
static const struct rung_option opt_effort = {
    .struct_size = sizeof opt_effort,
    .type = RUNG_OPT_ENUM,
    .name = "effort",
    .values = effort_values,
    .summary = "How much a model that reasons shall reason (reasoning_effort); which words a model "
               "takes is its own; not sent when absent.",
};
static const struct rung_option *const options[] = {
    &llm_opt_model,  &opt_dialect,     &opt_url,       &opt_key,    &opt_cap, &opt_effort,
    &opt_key_header, &opt_api_version, &opt_cap_field, LLM_OPTIONS, NULL};

static int32_t validate(const struct rung_host *host, const struct rung_options *set,
                        struct rung_error *error)
{
    const char *url = host->opt_string(host, set, "url");
    const struct openai_dialect *d = openai_dialect_of(host->opt_string(host, set, "dialect"), url);
    if (strcmp(url, "auto") == 0 && !d->url)
        return llm_fail(error, RUNG_ECONFIG, "llm.url", "dialect = \"%s\" needs a 'url'", d->name);
    if (host->opt_string(host, set, "api_version")[0] && strcmp(d->name, "azure") != 0)
        return llm_fail(error, RUNG_ECONFIG, "llm.api_version",
                        "'api_version' is Azure's: it needs dialect = \"azure\"");
    return llm_provider_validate(host, set, error);
}

static void destroy(void *self)
{
    struct openai *o = self;
    free(o->key_header);
    llm_provider_destroy(o);
}

/* Azure's older form: URL/openai/deployments/MODEL/chat/completions?api-version=VERSION */
static char *deployment(const char *url, const char *model, const char *version)
{
    struct llm_text path = {0}, bare = {0};
    char *all = NULL;
    llm_text_puts(&path, "/deployments/");
    llm_add_encoded(&path, model);
    llm_text_puts(&path, "/chat/completions");
    char *base = path.failed ? NULL : llm_endpoint(url, "/openai", path.ptr);
    if (base) {
        llm_text_puts(&bare, base);
        llm_text_puts(&bare, strchr(base, '?') ? "&api-version=" : "?api-version=");
        llm_add_encoded(&bare, version);
        all = bare.failed ? NULL : strdup(bare.ptr);
    }
    free(base);
    llm_text_free(&path);
    llm_text_free(&bare);
    return all;
}

static void set_login(struct openai *o)
{
    const bool bearer = strcasecmp(o->key_header, "authorization") == 0;
    o->base.login = (struct llm_login){
        .header = o->key_header, .prefix = bearer ? "Bearer " : NULL, .id_header = "x-request-id"};
}

static uint32_t cap_field_of(const char *word, const struct openai_dialect *d)
{
    if (strcmp(word, "auto") == 0)
        return d->cap_field;
    return strcmp(word, "max_tokens") == 0 ? 2 : 1;
}

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct openai *o = calloc(1, sizeof *o);
    if (!o)
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    const char *url = host->opt_string(host, set, "url");
    const char *header = host->opt_string(host, set, "key_header");
    const char *cap_field = host->opt_string(host, set, "cap_field");
    const char *version = host->opt_string(host, set, "api_version");
    const struct openai_dialect *d = openai_dialect_of(host->opt_string(host, set, "dialect"), url);
    int32_t status = llm_provider_init(&o->base, host, set, "openai", error);
    o->dialect = d;
    o->base.dialect = &dialect;
    o->base.provider = d->name;
    o->base.echo = d->echo;
    o->base.cap_field = cap_field_of(cap_field, d);
    o->base.cap_fixed = strcmp(cap_field, "auto") != 0;
    url = strcmp(url, "auto") != 0 ? url : d->url ? d->url : "";
    o->base.endpoint = version[0] ? deployment(url, o->base.name ? o->base.name : "", version)
                                  : llm_endpoint(url, d->bare, "/chat/completions");
    o->key_header = strdup(header[0] ? header : d->key_header ? d->key_header : "authorization");
    if (status == RUNG_OK && !o->key_header)
        status = llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    if (status == RUNG_OK)
        status = llm_provider_ready(&o->base, error);
    if (status != RUNG_OK) {
        destroy(o);
        return status;
    }
    set_login(o);
    *self = o;
    return RUNG_OK;
}

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_LLM,
    .name = "openai",
    .summary = "OpenAI's Chat Completions, and every server that speaks it.",
    .doc = "For OpenAI, Azure, OpenRouter, DeepSeek, Mistral, llama.cpp, Ollama, vLLM, SGLang, LM "
           "Studio and others. docs/providers.md tells the settings of each.",
    .options = options,
    .ops = &llm_provider_ops,
    .validate = validate,
    .create = create,
    .start = llm_provider_start,
    .destroy = destroy,
};

LLM_PLUGIN("org.rung.llm.openai", factory)
