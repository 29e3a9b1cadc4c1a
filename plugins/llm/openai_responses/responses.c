/*
 * llm_openai_responses: OpenAI's Responses. Nothing is stored at the provider: each call sends the
 * whole conversation, and where tools are offered reasoning comes back sealed, to go with it.
 */
#include "reply.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- The request ---- */

static void add_content(struct llm_body *body, cJSON *list, const struct llm_turn *turn)
{
    const bool assistant = turn->role == RUNG_MSG_ASSISTANT;
    if (!turn->text.len)
        return;
    cJSON *item = llm_body_item(body, list);
    llm_body_text(body, item, "role", assistant ? "assistant" : "user");
    cJSON *part = llm_body_item(body, llm_body_list(body, item, "content"));
    llm_body_text(body, part, "type", assistant ? "output_text" : "input_text");
    llm_body_text(body, part, "text", turn->text.ptr);
    body->failed |= turn->text.failed;
}

static void add_echo(struct llm_body *body, cJSON *list, const struct rung_part *part)
{
    cJSON *json = llm_is_echo_of(part, "openai_responses") ? llm_part_json(part) : NULL;
    if (json && (!cJSON_IsObject(json) || !list || !cJSON_AddItemToArray(list, json))) {
        body->failed |= cJSON_IsObject(json);
        cJSON_Delete(json);
    }
}

static void add_part(struct llm_body *body, cJSON *list, const struct rung_part *part)
{
    if (part->kind == RUNG_PART_OPAQUE) {
        add_echo(body, list, part);
        return;
    }
    const bool call = part->kind == RUNG_PART_TOOL_CALL;
    cJSON *item = llm_body_item(body, list);
    llm_body_text(body, item, "type", call ? "function_call" : "function_call_output");
    llm_body_text(body, item, "call_id", part->id);
    if (call)
        llm_body_text(body, item, "name", part->name);
    llm_body_bytes(body, item, call ? "arguments" : "output",
                   (struct llm_span){part->text.ptr, part->text.len});
}

/* An assistant's text stands before its calls, results before what the user says. */
static void add_input(struct llm_ask *ask, struct llm_body *body)
{
    cJSON *list = llm_body_list(body, body->root, "input");
    struct llm_turn turn;
    uint32_t at = 0;
    while (llm_turn_next(ask->request, false, &at, &turn)) {
        struct llm_walk walk = {0};
        const struct rung_part *part;
        if (turn.role == RUNG_MSG_ASSISTANT)
            add_content(body, list, &turn);
        while (turn.role != RUNG_MSG_SYSTEM &&
               (part = llm_turn_part(ask->request, &turn, 0, &walk)))
            add_part(body, list, part);
        if (turn.role == RUNG_MSG_USER)
            add_content(body, list, &turn);
        llm_text_free(&turn.text);
    }
}

static void add_tools(struct llm_ask *ask, struct llm_body *body)
{
    const struct rung_llm_request *request = ask->request;
    cJSON *list = NULL;
    for (uint32_t t = 0; t < request->n_tools && llm_may(ask, LLM_TOOLS); ++t) {
        const struct rung_tool *tool = &request->tools[t];
        const char *why;
        list = list ? list : llm_body_list(body, body->root, "tools");
        cJSON *item = llm_body_item(body, list);
        llm_body_text(body, item, "type", "function");
        llm_body_text(body, item, "name", tool->name);
        llm_body_text(body, item, "description", tool->summary ? tool->summary : "");
        llm_body_value(body, item, "parameters",
                       llm_json_parse((struct llm_span){tool->schema.ptr, tool->schema.len}, &why));
    }
    if (list && llm_may(ask, LLM_SEALED))
        llm_body_words(body, body->root, "include", "reasoning.encrypted_content");
}

static void add_schema(struct llm_ask *ask, struct llm_body *body)
{
    cJSON *schema = llm_schema(ask);
    if (!schema)
        return;
    cJSON *text = llm_body_object(body, body->root, "text");
    cJSON *format = llm_body_object(body, text, "format");
    llm_body_text(body, format, "type", "json_schema");
    llm_body_text(body, format, "name", ask->request->schema_name);
    llm_body_bool(body, format, "strict", true);
    llm_body_value(body, format, "schema", schema);
}

static void build(struct llm_ask *ask, struct llm_body *body)
{
    static const char *const efforts[LLM_LEVELS] = {"low", "medium", "high", "xhigh", "max"};
    struct llm_text system = llm_system_text(ask->request);
    llm_body_text(body, body->root, "model", ask->provider->name);
    llm_body_bool(body, body->root, "store", false);
    if (system.len)
        llm_body_text(body, body->root, "instructions", system.ptr);
    body->failed |= system.failed;
    llm_text_free(&system);
    add_input(ask, body);
    const int64_t cap = llm_cap(ask);
    if (cap > 0)
        llm_body_number(body, body->root, "max_output_tokens", (double)cap);
    const char *effort = llm_effort(ask, efforts);
    if (effort)
        llm_body_text(body, llm_body_object(body, body->root, "reasoning"), "effort", effort);
    llm_add_temperature(ask, body, body->root);
    add_tools(ask, body);
    add_schema(ask, body);
    if (ask->stream)
        llm_body_bool(body, body->root, "stream", true);
}

/* ---- Settings ---- */

static const struct llm_dialect dialect = {
    .build = build, .read = responses_read, .event = responses_event};

static const struct rung_option opt_url = {
    .struct_size = sizeof opt_url,
    .type = RUNG_OPT_STRING,
    .name = "url",
    .default_text = "https://api.openai.com/v1",
    .summary = "Base of the server's URLs; /v1 is added where no path stands, then /responses.",
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
static const char *const effort_values[] = {"none", "minimal", "low", "medium",
                                            "high", "xhigh",   "max", NULL};
static const struct rung_option opt_effort = {
    .struct_size = sizeof opt_effort,
    .type = RUNG_OPT_ENUM,
    .name = "effort",
    .values = effort_values,
    .summary =
        "How much a model that reasons shall reason (reasoning.effort); not sent when absent.",
};
static const struct rung_option *const options[] = {
    &llm_opt_model, &opt_url, &opt_key, &opt_cap, &opt_effort, &opt_key_header, LLM_OPTIONS, NULL};

struct responses {
    struct llm_provider base; /* first */
    char *key_header;
};

static void destroy(void *self)
{
    struct responses *r = self;
    free(r->key_header);
    llm_provider_destroy(r);
}

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct responses *r = calloc(1, sizeof *r);
    if (!r)
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    int32_t status = llm_provider_init(&r->base, host, set, "openai_responses", error);
    r->base.dialect = &dialect;
    r->base.endpoint = llm_endpoint(host->opt_string(host, set, "url"), "/v1", "/responses");
    r->key_header = strdup(host->opt_string(host, set, "key_header"));
    if (status == RUNG_OK && !r->key_header)
        status = llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    if (status == RUNG_OK)
        status = llm_provider_ready(&r->base, error);
    if (status != RUNG_OK) {
        destroy(r);
        return status;
    }
    const bool bearer = strcasecmp(r->key_header, "authorization") == 0;
    r->base.login = (struct llm_login){
        .header = r->key_header, .prefix = bearer ? "Bearer " : NULL, .id_header = "x-request-id"};
    *self = r;
    return RUNG_OK;
}

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_LLM,
    .name = "openai_responses",
    .summary = "OpenAI's Responses.",
    .doc = "Nothing is stored at the provider. docs/providers.md tells more.",
    .options = options,
    .ops = &llm_provider_ops,
    .validate = llm_provider_validate,
    .create = create,
    .start = llm_provider_start,
    .destroy = destroy,
};

LLM_PLUGIN("org.rung.llm.openai_responses", factory)
