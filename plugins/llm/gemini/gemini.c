/*
 * llm_gemini: Gemini's generateContent. One logical call is one request and one whole reply. An
 * instance is immutable after start, so that calls may run at once.
 */
#include "../common/provider.h"
#include "reply.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct gemini {
    struct llm_provider base; /* first */
    int64_t thinking_budget;  /* UNSENT: not sent */
};

enum { UNSENT = -2 };

static const struct llm_login login = {.header = "x-goog-api-key", .id_header = "x-request-id"};

/* ---- The request ---- */

static void add_text(struct llm_body *body, cJSON *object, const struct llm_turn *turn)
{
    cJSON *part = llm_body_item(body, llm_body_list(body, object, "parts"));
    llm_body_text(body, part, "text", turn->text.ptr);
    body->failed |= turn->text.failed;
}

/* What the system says comes as one instruction, wherever it stands. */
static void add_system(struct llm_body *body, const struct rung_llm_request *request)
{
    struct llm_turn all = {0}, turn;
    uint32_t at = 0;
    while (llm_turn_next(request, &at, &turn)) {
        if (turn.role == RUNG_MSG_SYSTEM) {
            llm_text_puts(&all.text, all.text.len ? "\n\n" : "");
            llm_text_add(&all.text, turn.text.ptr, turn.text.len);
        }
        body->failed |= turn.text.failed;
        llm_text_free(&turn.text);
    }
    if (all.text.len)
        add_text(body, llm_body_object(body, body->root, "systemInstruction"), &all);
    llm_text_free(&all.text);
}

static void add_contents(struct llm_body *body, const struct rung_llm_request *request)
{
    cJSON *list = llm_body_list(body, body->root, "contents");
    struct llm_turn turn;
    uint32_t at = 0;
    while (llm_turn_next(request, &at, &turn)) {
        if (turn.role != RUNG_MSG_SYSTEM) {
            cJSON *item = llm_body_item(body, list);
            llm_body_text(body, item, "role", turn.role == RUNG_MSG_ASSISTANT ? "model" : "user");
            add_text(body, item, &turn);
        }
        llm_text_free(&turn.text);
    }
}

static void add_config(const struct gemini *g, struct llm_body *body,
                       const struct rung_llm_request *request)
{
    static const char *const levels[5] = {"low", "medium", "high", "high", "high"};
    const char *effort = llm_effort(&g->base, request, levels);
    const int64_t cap = llm_cap(&g->base, request);
    cJSON *config = llm_body_object(body, body->root, "generationConfig");
    if (cap > 0)
        llm_body_number(body, config, "maxOutputTokens", (double)cap);
    llm_add_temperature(&g->base, request, body, config);
    if (g->thinking_budget != UNSENT) {
        llm_body_number(body, llm_body_object(body, config, "thinkingConfig"), "thinkingBudget",
                        (double)g->thinking_budget);
    } else if (effort) {
        char level[16] = "";
        for (size_t i = 0; effort[i] && i < sizeof level - 1; ++i)
            level[i] = (char)toupper((unsigned char)effort[i]);
        llm_body_text(body, llm_body_object(body, config, "thinkingConfig"), "thinkingLevel",
                      level);
    }
}

static int32_t complete(void *self, struct rung_call *call, const struct rung_llm_request *request,
                        struct rung_llm_response *out)
{
    const struct gemini *g = self;
    const struct llm_asker asker = llm_provider_asker(&g->base);
    struct llm_wire wire;
    int32_t status = llm_provider_check(request, call->error);
    if (status != RUNG_OK)
        return status;
    struct llm_body body = llm_body_new();
    add_system(&body, request);
    add_contents(&body, request);
    add_config(g, &body, request);
    status = llm_provider_post(&g->base, call, &login, &body, &wire);
    llm_body_free(&body);
    if (status != RUNG_OK)
        return status;
    return llm_reply_read(&gemini_dialect, &wire, &asker, g->base.host, call, request, out);
}

/* ---- Settings ---- */

static const struct rung_option opt_url = {
    .struct_size = sizeof opt_url,
    .type = RUNG_OPT_STRING,
    .name = "url",
    .default_text = "https://generativelanguage.googleapis.com/v1beta",
    .summary = "Base of the server's URLs; /v1beta is added where no path stands, then "
               "/models/MODEL:generateContent.",
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
    .min = UNSENT,
    .max = 10000000,
    .unit = "tokens",
    .summary =
        "Tokens for thoughts on models without levels: -1 the model's choice, 0 none; -2: not "
        "sent. It goes before effort.",
};
static const struct rung_option *const options[] = {&llm_opt_model,
                                                    &opt_url,
                                                    &opt_key,
                                                    &opt_cap,
                                                    &opt_effort,
                                                    &opt_budget,
                                                    &llm_opt_temperature,
                                                    &llm_opt_timeout,
                                                    &llm_opt_headers,
                                                    &llm_opt_body,
                                                    &llm_opt_plain,
                                                    NULL};

/* "models/NAME" and "NAME" alike; what could lead elsewhere in a URL is escaped. */
static char *path_of(const char *model)
{
    struct llm_text path = {0};
    if (strncmp(model, "models/", 7) == 0)
        model += 7;
    llm_text_puts(&path, "/models/");
    for (; *model; ++model) {
        if (isalnum((unsigned char)*model) || strchr("-_~", *model) ||
            (*model == '.' && model[1] != '.'))
            llm_text_add(&path, model, 1);
        else
            llm_text_printf(&path, "%%%02X", (unsigned char)*model);
    }
    llm_text_puts(&path, ":generateContent");
    if (!path.failed)
        return path.ptr;
    llm_text_free(&path);
    return NULL;
}

static void destroy(void *self)
{
    struct gemini *g = self;
    llm_provider_free(&g->base);
    free(g);
}

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct gemini *g = calloc(1, sizeof *g);
    if (!g)
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    int32_t status = llm_provider_init(&g->base, host, set, "gemini", error);
    char *path = path_of(host->opt_string(host, set, "model"));
    if (path)
        g->base.endpoint = llm_endpoint(host->opt_string(host, set, "url"), "/v1beta", path);
    free(path);
    g->thinking_budget = host->opt_int(host, set, "thinking_budget");
    if (status == RUNG_OK && !g->base.endpoint)
        status = llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    if (status != RUNG_OK)
        destroy(g);
    else
        *self = g;
    return status;
}

static int32_t start(void *self, struct rung_error *error)
{
    struct gemini *g = self;
    return llm_provider_start(&g->base, error);
}

static const struct rung_llm_ops ops = {.struct_size = sizeof ops, .complete = complete};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_LLM,
    .name = "gemini",
    .summary = "Google's Gemini, through generateContent.",
    .doc =
        "Thoughts are kept out of the answer. Replies are not streamed, and tools are not offered "
        "to the model. docs/providers.md tells more.",
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
    .id = "org.rung.llm.gemini",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
