/*
 * llm_anthropic: Anthropic's Messages, and servers that speak it. One logical call is one request
 * and one whole reply. An instance is immutable after start, so that calls may run at once.
 */
#include "../common/provider.h"
#include "reply.h"
#include <stdlib.h>
#include <string.h>

enum {
    MAX_MARKS = 4,      /* cache_control blocks that a request may hold */
    MIN_THINKING = 1024 /* tokens; the least budget that the API takes */
};

struct anthropic {
    struct llm_provider base; /* first */
    char *thinking;           /* "" or the type */
    int64_t thinking_budget;
    bool hour; /* cache for an hour instead of five minutes */
};

static const struct llm_login login = {
    .header = "x-api-key", .id_header = "request-id", .name = {"anthropic-version", "2023-06-01"}};

/* ---- The request ---- */

static bool is_blank(struct rung_text text)
{
    return llm_trim((struct llm_span){text.ptr, text.len}).len == 0; /* the API refuses it */
}

/* Marks beyond those that the API takes: the earliest ones are passed over. */
static uint32_t surplus_marks(const struct rung_llm_request *request)
{
    uint32_t marks = 0;
    for (uint32_t m = 0; m < request->n_messages; ++m)
        for (uint32_t p = 0; p < request->messages[m].n_parts; ++p)
            marks += request->messages[m].parts[p].cache_mark == 1 &&
                     !is_blank(request->messages[m].parts[p].text);
    return marks > MAX_MARKS ? marks - MAX_MARKS : 0;
}

static void add_block(const struct anthropic *a, struct llm_body *body, cJSON *list,
                      const struct rung_part *part, uint32_t *surplus)
{
    struct llm_text text = {0};
    cJSON *block = llm_body_item(body, list);
    llm_text_add_utf8(&text, part->text.ptr, part->text.len);
    body->failed |= text.failed;
    llm_body_text(body, block, "type", "text");
    llm_body_text(body, block, "text", text.ptr ? text.ptr : "");
    llm_text_free(&text);
    if (part->cache_mark != 1)
        return;
    if (*surplus) {
        --*surplus;
        return;
    }
    cJSON *cache = llm_body_object(body, block, "cache_control");
    llm_body_text(body, cache, "type", "ephemeral");
    if (a->hour)
        llm_body_text(body, cache, "ttl", "1h");
}

static bool has_text(const struct rung_message *message)
{
    for (uint32_t p = 0; p < message->n_parts; ++p)
        if (!is_blank(message->parts[p].text))
            return true;
    return false;
}

static void add_blocks(const struct anthropic *a, struct llm_body *body, cJSON *list,
                       const struct rung_message *message, uint32_t *surplus)
{
    for (uint32_t p = 0; p < message->n_parts; ++p)
        if (!is_blank(message->parts[p].text))
            add_block(a, body, list, &message->parts[p], surplus);
}

/* System messages become the top-level "system"; the API joins neighbours of one role itself. */
static void add_conversation(const struct anthropic *a, struct llm_body *body,
                             const struct rung_llm_request *request)
{
    uint32_t surplus = surplus_marks(request);
    cJSON *system = NULL, *messages = llm_body_list(body, body->root, "messages");
    for (uint32_t m = 0; m < request->n_messages; ++m) {
        const struct rung_message *message = &request->messages[m];
        cJSON *list;
        if (!has_text(message))
            continue;
        if (message->role == RUNG_MSG_SYSTEM) {
            list = system = system ? system : llm_body_list(body, body->root, "system");
        } else {
            cJSON *item = llm_body_item(body, messages);
            llm_body_text(body, item, "role",
                          message->role == RUNG_MSG_ASSISTANT ? "assistant" : "user");
            list = llm_body_list(body, item, "content");
        }
        add_blocks(a, body, list, message, &surplus);
    }
}

static void add_thinking(const struct anthropic *a, struct llm_body *body,
                         const struct rung_llm_request *request)
{
    static const char *const efforts[5] = {"low", "medium", "high", "xhigh", "max"};
    const char *effort = llm_effort(&a->base, request, efforts);
    if (a->thinking[0]) {
        cJSON *thinking = llm_body_object(body, body->root, "thinking");
        llm_body_text(body, thinking, "type", a->thinking);
        if (a->thinking_budget)
            llm_body_number(body, thinking, "budget_tokens", (double)a->thinking_budget);
    }
    if (effort)
        llm_body_text(body, llm_body_object(body, body->root, "output_config"), "effort", effort);
}

static int32_t complete(void *self, struct rung_call *call, const struct rung_llm_request *request,
                        struct rung_llm_response *out)
{
    const struct anthropic *a = self;
    const struct llm_asker asker = llm_provider_asker(&a->base);
    struct llm_wire wire;
    int32_t status = llm_provider_check(request, call->error);
    if (status != RUNG_OK)
        return status;
    struct llm_body body = llm_body_new();
    llm_body_text(&body, body.root, "model", a->base.model);
    llm_body_number(&body, body.root, "max_tokens", (double)llm_cap(&a->base, request));
    add_conversation(a, &body, request);
    add_thinking(a, &body, request);
    llm_add_temperature(&a->base, request, &body, body.root);
    status = llm_provider_post(&a->base, call, &login, &body, &wire);
    llm_body_free(&body);
    if (status != RUNG_OK)
        return status;
    return llm_reply_read(&anthropic_dialect, &wire, &asker, a->base.host, call, request, out);
}

/* ---- Settings ---- */

static const struct rung_option opt_url = {
    .struct_size = sizeof opt_url,
    .type = RUNG_OPT_STRING,
    .name = "url",
    .default_text = "https://api.anthropic.com/v1",
    .summary = "Base of the server's URLs; /v1 is added where no path stands, then /messages.",
};
static const struct rung_option opt_key = {
    .struct_size = sizeof opt_key,
    .type = RUNG_OPT_SECRET,
    .name = "key",
    .summary = "Where the key is; local servers need none.",
};
static const struct rung_option opt_cap = {
    .struct_size = sizeof opt_cap,
    .type = RUNG_OPT_INT,
    .name = "max_output_tokens",
    .default_text = "16000",
    .min = 1,
    .max = 10000000,
    .unit = "tokens",
    .summary = "Most tokens of one reply, thinking included; the API wants one.",
};
static const char *const effort_values[] = {"low", "medium", "high", "xhigh", "max", NULL};
static const struct rung_option opt_effort = {
    .struct_size = sizeof opt_effort,
    .type = RUNG_OPT_ENUM,
    .name = "effort",
    .values = effort_values,
    .summary = "How much the model shall spend on an answer (output_config.effort); not sent when "
               "absent.",
};
static const char *const thinking_values[] = {"adaptive", "enabled", "disabled", NULL};
static const struct rung_option opt_thinking = {
    .struct_size = sizeof opt_thinking,
    .type = RUNG_OPT_ENUM,
    .name = "thinking",
    .values = thinking_values,
    .summary =
        "Whether the model thinks before it answers; enabled needs thinking_budget; not sent "
        "when absent.",
};
static const struct rung_option opt_budget = {
    .struct_size = sizeof opt_budget,
    .type = RUNG_OPT_INT,
    .name = "thinking_budget",
    .default_text = "0",
    .min = 0,
    .max = 10000000,
    .unit = "tokens",
    .summary = "Tokens for thinking = \"enabled\": 1024 or more, fewer than max_output_tokens.",
};
static const char *const cache_values[] = {"5m", "1h", NULL};
static const struct rung_option opt_cache = {
    .struct_size = sizeof opt_cache,
    .type = RUNG_OPT_ENUM,
    .flags = RUNG_OPT_ADVANCED,
    .name = "cache",
    .default_text = "5m",
    .values = cache_values,
    .summary = "How long the provider keeps the parts of prompts that the engine marks.",
};
static const struct rung_option *const options[] = {
    &llm_opt_model,   &opt_url,      &opt_key,         &opt_cap,
    &opt_effort,      &opt_thinking, &opt_budget,      &llm_opt_temperature,
    &llm_opt_timeout, &opt_cache,    &llm_opt_headers, &llm_opt_body,
    &llm_opt_plain,   NULL};

static int32_t validate(const struct rung_host *host, const struct rung_options *set,
                        struct rung_error *error)
{
    const bool enabled = strcmp(host->opt_string(host, set, "thinking"), "enabled") == 0;
    const int64_t budget = host->opt_int(host, set, "thinking_budget");
    if (!enabled && budget)
        return llm_fail(error, RUNG_ECONFIG, "anthropic.thinking",
                        "'thinking_budget' needs thinking = \"enabled\"");
    if (enabled &&
        (budget < MIN_THINKING || budget >= host->opt_int(host, set, "max_output_tokens")))
        return llm_fail(error, RUNG_ECONFIG, "anthropic.thinking",
                        "thinking = \"enabled\" needs a 'thinking_budget' of %d or more, below "
                        "'max_output_tokens'",
                        MIN_THINKING);
    return llm_provider_validate(host, set, error);
}

static void destroy(void *self)
{
    struct anthropic *a = self;
    llm_provider_free(&a->base);
    free(a->thinking);
    free(a);
}

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct anthropic *a = calloc(1, sizeof *a);
    if (!a)
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    int32_t status = llm_provider_init(&a->base, host, set, "anthropic", error);
    a->base.endpoint = llm_endpoint(host->opt_string(host, set, "url"), "/v1", "/messages");
    a->thinking = strdup(host->opt_string(host, set, "thinking"));
    a->thinking_budget = host->opt_int(host, set, "thinking_budget");
    a->hour = strcmp(host->opt_string(host, set, "cache"), "1h") == 0;
    if (status == RUNG_OK && (!a->base.endpoint || !a->thinking))
        status = llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    if (status != RUNG_OK)
        destroy(a);
    else
        *self = a;
    return status;
}

static int32_t start(void *self, struct rung_error *error)
{
    struct anthropic *a = self;
    return llm_provider_start(&a->base, error);
}

static const struct rung_llm_ops ops = {.struct_size = sizeof ops, .complete = complete};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_LLM,
    .name = "anthropic",
    .summary = "Anthropic's Messages.",
    .doc = "Parts of prompts that the engine marks are cached by the provider. Replies are not "
           "streamed, and tools are not offered to the model. docs/providers.md tells more.",
    .options = options,
    .ops = &ops,
    .validate = validate,
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
    .id = "org.rung.llm.anthropic",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
