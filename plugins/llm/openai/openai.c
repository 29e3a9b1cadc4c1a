/*
 * llm_openai: OpenAI's Chat Completions, for OpenAI and for every server that speaks it. One
 * logical call is one request and one whole reply.
 *
 * An instance is immutable after start but for one atomic: which of the two names of the cap the
 * server takes. Calls may run at once.
 */
#include "../common/provider.h"
#include "reply.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const cap_names[] = {"max_completion_tokens", "max_tokens"};

struct openai {
    struct llm_provider base; /* first */
    struct llm_login login;
    char *key_header;
    bool cap_swappable;
    _Atomic uint32_t cap; /* index of cap_names */
};

/* ---- The request ---- */

static const char *role_word(uint32_t role)
{
    return role == RUNG_MSG_SYSTEM ? "system" : role == RUNG_MSG_ASSISTANT ? "assistant" : "user";
}

/* Contents are texts, and roles alternate: some chat templates take nothing else. */
static void add_messages(struct llm_body *body, const struct rung_llm_request *request)
{
    cJSON *list = llm_body_list(body, body->root, "messages");
    struct llm_turn turn;
    uint32_t at = 0;
    while (llm_turn_next(request, &at, &turn)) {
        cJSON *message = llm_body_item(body, list);
        llm_body_text(body, message, "role", role_word(turn.role));
        llm_body_text(body, message, "content", turn.text.ptr);
        body->failed |= turn.text.failed;
        llm_text_free(&turn.text);
    }
}

static struct llm_body build(const struct openai *o, const struct rung_llm_request *request,
                             const char *cap_name)
{
    static const char *const efforts[5] = {"low", "medium", "high", "xhigh", "max"};
    const char *effort = llm_effort(&o->base, request, efforts);
    const int64_t cap = llm_cap(&o->base, request);
    struct llm_body body = llm_body_new();
    llm_body_text(&body, body.root, "model", o->base.model);
    add_messages(&body, request);
    if (cap > 0)
        llm_body_number(&body, body.root, cap_name, (double)cap);
    if (effort)
        llm_body_text(&body, body.root, "reasoning_effort", effort);
    llm_add_temperature(&o->base, request, &body, body.root);
    return body;
}

static int32_t send(const struct openai *o, struct rung_call *call,
                    const struct rung_llm_request *request, const char *cap_name,
                    struct llm_wire *wire)
{
    struct llm_body body = build(o, request, cap_name);
    const int32_t status = llm_provider_post(&o->base, call, &o->login, &body, wire);
    llm_body_free(&body);
    return status;
}

/* ---- The call ---- */

/* A prompt that the server counts at an eighth of its bytes was most likely cut (Ollama does). */
static void warn_of_cut(const struct openai *o, const struct rung_llm_request *request,
                        const struct rung_usage *usage)
{
    enum { FEWEST_BYTES = 16384, BYTES_A_TOKEN = 8 };
    uint64_t bytes = 0;
    for (uint32_t m = 0; m < request->n_messages; ++m)
        for (uint32_t p = 0; p < request->messages[m].n_parts; ++p)
            bytes += request->messages[m].parts[p].text.len;
    const int64_t counted = usage->input + (usage->cache_read > 0 ? usage->cache_read : 0) +
                            (usage->cache_write_5m > 0 ? usage->cache_write_5m : 0);
    if (usage->estimated || usage->input < 0 || bytes < FEWEST_BYTES ||
        (uint64_t)counted * BYTES_A_TOKEN >= bytes)
        return;
    llm_log(o->base.host, RUNG_LOG_WARN,
            "request %s: the server counts %lld tokens for a prompt of %llu bytes; its context may "
            "be too small, so that it cut the prompt",
            request->key, (long long)counted, (unsigned long long)bytes);
}

static int32_t complete(void *self, struct rung_call *call, const struct rung_llm_request *request,
                        struct rung_llm_response *out)
{
    struct openai *o = self;
    const struct llm_asker asker = llm_provider_asker(&o->base);
    struct llm_wire wire;
    int32_t status = llm_provider_check(request, call->error);
    if (status != RUNG_OK)
        return status;
    const uint32_t cap = atomic_load(&o->cap);
    status = send(o, call, request, cap_names[cap], &wire);
    if (status == RUNG_OK && o->cap_swappable && llm_cap(&o->base, request) > 0 &&
        openai_refuses_cap(&wire, cap_names[cap])) {
        llm_log(o->base.host, RUNG_LOG_INFO, "the server doesn't take %s; sending %s from now on",
                cap_names[cap], cap_names[!cap]);
        atomic_store(&o->cap, !cap);
        status = send(o, call, request, cap_names[!cap], &wire);
    }
    if (status == RUNG_OK)
        status = llm_reply_read(&openai_dialect, &wire, &asker, o->base.host, call, request, out);
    if (status == RUNG_OK)
        warn_of_cut(o, request, &out->usage);
    return status;
}

/* ---- Settings ---- */

/* OpenAI and Azure know the newer name; most others know the older one only. */
static uint32_t cap_of(const char *name, const char *url)
{
    if (strcmp(name, "auto") != 0)
        return strcmp(name, cap_names[1]) == 0;
    return !strstr(url, "//api.openai.com") && !strstr(url, ".openai.azure.com");
}

static const struct rung_option opt_url = {
    .struct_size = sizeof opt_url,
    .type = RUNG_OPT_STRING,
    .name = "url",
    .default_text = "https://api.openai.com/v1",
    .summary = "Base of the server's URLs; /v1 is added where no path stands, then "
               "/chat/completions.",
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
    .default_text = "authorization",
    .summary =
        "Header that carries the key: authorization sends \"Bearer KEY\", any other the bare "
        "key (Azure: api-key).",
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
        "Name of the field that carries max_output_tokens; auto goes by the url, and changes "
        "once where the server refuses the name.",
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
static const struct rung_option *const options[] = {&llm_opt_model,
                                                    &opt_url,
                                                    &opt_key,
                                                    &opt_cap,
                                                    &opt_effort,
                                                    &llm_opt_temperature,
                                                    &llm_opt_timeout,
                                                    &opt_key_header,
                                                    &opt_cap_field,
                                                    &llm_opt_headers,
                                                    &llm_opt_body,
                                                    &llm_opt_plain,
                                                    NULL};

static void destroy(void *self)
{
    struct openai *o = self;
    llm_provider_free(&o->base);
    free(o->key_header);
    free(o);
}

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct openai *o = calloc(1, sizeof *o);
    if (!o)
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    const char *url = host->opt_string(host, set, "url");
    const char *cap_field = host->opt_string(host, set, "cap_field");
    int32_t status = llm_provider_init(&o->base, host, set, "openai", error);
    o->base.endpoint = llm_endpoint(url, "/v1", "/chat/completions");
    o->key_header = strdup(host->opt_string(host, set, "key_header"));
    if (status == RUNG_OK && (!o->base.endpoint || !o->key_header))
        status = llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    if (status != RUNG_OK) {
        destroy(o);
        return status;
    }
    const bool bearer = strcasecmp(o->key_header, "authorization") == 0;
    o->login = (struct llm_login){
        .header = o->key_header, .prefix = bearer ? "Bearer " : NULL, .id_header = "x-request-id"};
    o->cap_swappable = strcmp(cap_field, "auto") == 0;
    atomic_init(&o->cap, cap_of(cap_field, url));
    *self = o;
    return RUNG_OK;
}

static int32_t start(void *self, struct rung_error *error)
{
    struct openai *o = self;
    return llm_provider_start(&o->base, error);
}

static const struct rung_llm_ops ops = {.struct_size = sizeof ops, .complete = complete};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_LLM,
    .name = "openai",
    .summary = "OpenAI's Chat Completions, and every server that speaks it.",
    .doc = "For OpenAI, Azure, OpenRouter, DeepSeek, Mistral, llama.cpp, Ollama, vLLM, SGLang, LM "
           "Studio and others. docs/providers.md tells the settings of each. Replies are not "
           "streamed, and tools are not offered to the model.",
    .options = options,
    .ops = &ops,
    .validate = llm_provider_validate,
    .create = create,
    .start = start,
    .destroy = destroy,
};
static const struct rung_factory *const factories[] = {&factory, NULL};

static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC,
    .struct_size = sizeof plugin,
    .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT,
    .id = "org.rung.llm.openai",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
