/*
 * Replies of Chat Completions: {"choices":[{"message":{"content","reasoning..."},"finish_reason"}],
 * "usage":{...}}. Where servers differ, all the forms that are known are read.
 */
#include "reply.h"
#include <ctype.h>
#include <string.h>

/* ---- Text and reasoning ---- */

/* content is a text, or a list of {"type":"text","text"} beside other types. */
static void read_content(const cJSON *content, struct llm_reply *reply)
{
    if (cJSON_IsString(content))
        llm_text_puts(&reply->text, content->valuestring);
    if (!cJSON_IsArray(content))
        return;
    for (const cJSON *part = content->child; part; part = part->next) {
        const char *type = llm_json_text(part, "type"), *text = llm_json_text(part, "text");
        if (text && (!type || strcmp(type, "text") == 0 || strcmp(type, "output_text") == 0))
            llm_text_puts(&reply->text, text);
        else if (type && (strcmp(type, "thinking") == 0 || strcmp(type, "reasoning") == 0))
            reply->reasoned = true; /* Mistral's magistral models */
    }
}

static void drop_front(struct llm_text *text, size_t n)
{
    memmove(text->ptr, text->ptr + n, text->len - n + 1);
    text->len -= n;
}

/*
 * <think>...</think> before the answer, where the server leaves it in: the opening tag may be
 * missing, since some chat templates end the prompt with it. Tags in the midst of an answer stay.
 */
static void drop_thoughts(struct llm_reply *reply)
{
    static const char open[] = "<think>", close[] = "</think>";
    struct llm_text *text = &reply->text;
    if (!text->ptr)
        return;
    const char *begin = text->ptr + strspn(text->ptr, " \t\r\n");
    const bool opened = strncmp(begin, open, sizeof open - 1) == 0;
    const char *end = strstr(text->ptr, close), *other = strstr(text->ptr, open);
    if (!opened && (!end || (other && other < end)))
        return;
    reply->reasoned = true;
    size_t n = text->len;
    if (end)
        n = (size_t)(end - text->ptr) + sizeof close - 1;
    while (n < text->len && isspace((unsigned char)text->ptr[n]))
        ++n;
    drop_front(text, n);
}

static bool is_filled(const cJSON *item)
{
    if (cJSON_IsString(item))
        return item->valuestring[0] != 0;
    return cJSON_IsArray(item) && item->child;
}

static void read_message(const cJSON *message, struct llm_reply *reply)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "reasoning_details",
                                        "thinking"};
    read_content(llm_json_get(message, "content"), reply);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        reply->reasoned |= is_filled(llm_json_get(message, names[i]));
    drop_thoughts(reply);
}

/* ---- Why it ended ---- */

static int32_t ended_badly(struct rung_error *error, const struct llm_asker *asker,
                           const cJSON *choice, const char *reason)
{
    char what[300] = "";
    const cJSON *inner = llm_json_get(choice, "error");
    const char *message = llm_json_text(inner, "message");
    if (message)
        llm_excerpt(what, sizeof what, (struct llm_span){message, strlen(message)});
    return llm_fail(error, RUNG_EUNAVAILABLE, "llm.server",
                    "%s: the server failed midway (finish_reason '%s')%s%s", asker->plugin, reason,
                    what[0] ? ": " : "", what);
}

/* Servers have words of their own; one that is not known ends like "stop". */
static uint32_t finish_of(const char *reason)
{
    static const struct {
        const char *word;
        uint32_t finish;
    } words[] = {{"length", RUNG_FINISH_LENGTH},           {"max_tokens", RUNG_FINISH_LENGTH},
                 {"model_length", RUNG_FINISH_LENGTH},     {"content_filter", RUNG_FINISH_REFUSED},
                 {"refusal", RUNG_FINISH_REFUSED},         {"tool_calls", RUNG_FINISH_TOOL_CALLS},
                 {"function_call", RUNG_FINISH_TOOL_CALLS}};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strcmp(reason, words[i].word) == 0)
            return words[i].finish;
    return RUNG_FINISH_STOP;
}

static int32_t read_finish(const cJSON *choice, const cJSON *message, const struct llm_asker *asker,
                           struct llm_reply *reply, struct rung_error *error)
{
    const char *reason = llm_json_text(choice, "finish_reason");
    const char *refusal = llm_json_text(message, "refusal");
    if (llm_json_get(choice, "error") || (reason && strcmp(reason, "error") == 0) ||
        (reason && strcmp(reason, "insufficient_system_resource") == 0))
        return ended_badly(error, asker, choice, reason ? reason : "");
    reply->finish = finish_of(reason ? reason : "");
    const bool unsaid = !reason || !reason[0];
    if (is_filled(llm_json_get(message, "tool_calls")))
        reply->finish = RUNG_FINISH_TOOL_CALLS;
    else if (refusal && refusal[0] && !reply->text.len)
        reply->finish = RUNG_FINISH_REFUSED;
    else if (unsaid && !reply->text.len)
        return llm_malformed(error, asker, "has neither text nor a finish_reason");
    return RUNG_OK;
}

/* ---- Tokens ---- */

/*
 * prompt_tokens holds the cached ones, completion_tokens the reasoning; but some servers (xAI)
 * count reasoning beside it, which their total_tokens tells.
 */
static void read_usage(const cJSON *usage, struct rung_usage *u)
{
    const cJSON *in = llm_json_get(usage, "prompt_tokens_details");
    const cJSON *out = llm_json_get(usage, "completion_tokens_details");
    const int64_t prompt = llm_json_count(usage, "prompt_tokens");
    const int64_t made = llm_json_count(usage, "completion_tokens");
    const int64_t total = llm_json_count(usage, "total_tokens");
    if (!usage || (prompt < 0 && made < 0))
        return;
    u->estimated = 0;
    u->cache_read = llm_json_count(in, "cached_tokens");
    if (u->cache_read < 0)
        u->cache_read = llm_json_count(usage, "prompt_cache_hit_tokens"); /* DeepSeek */
    u->cache_write_5m = llm_json_count(in, "cache_write_tokens");
    u->input = llm_tokens_less(llm_tokens_less(prompt, u->cache_read), u->cache_write_5m);
    u->reasoning = llm_json_count(out, "reasoning_tokens");
    const bool beside =
        u->reasoning > 0 && prompt >= 0 && made >= 0 && total == prompt + made + u->reasoning;
    u->output = beside ? made : llm_tokens_less(made, u->reasoning);
}

static int32_t read_reply(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                          struct rung_error *error)
{
    const cJSON *choices = llm_json_get(json, "choices");
    const cJSON *choice = cJSON_IsArray(choices) ? choices->child : NULL;
    const cJSON *message = llm_json_get(choice, "message");
    reply->model = llm_json_text(json, "model");
    reply->request_id = llm_json_text(json, "id");
    read_usage(llm_json_get(json, "usage"), &reply->usage);
    if (!cJSON_IsObject(message)) {
        if (llm_json_get(choice, "error"))
            return ended_badly(error, asker, choice, "error");
        return llm_malformed(error, asker, "has no choices[0].message");
    }
    read_message(message, reply);
    return read_finish(choice, message, asker, reply, error);
}

const struct llm_dialect openai_dialect = {.read = read_reply};

/* ---- The cap that it doesn't know ---- */

static bool mentions(const char *hay, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = strstr(hay, word); at; at = strstr(at + 1, word)) {
        const bool begins = at == hay || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
        if (begins && !isalnum((unsigned char)at[n]) && at[n] != '_')
            return true;
    }
    return false;
}

bool openai_refuses_cap(const struct llm_wire *wire, const char *cap)
{
    static const char *const unknown[] = {"unsupported", "not support",   "unrecognized",
                                          "unknown",     "not permitted", "unexpected",
                                          "not allowed", "extra",         NULL};
    char text[2048];
    const bool is_old = strcmp(cap, "max_tokens") == 0;
    if (wire->status != 400 && wire->status != 422)
        return false;
    llm_excerpt(text, sizeof text, wire->body);
    for (char *c = text; *c; ++c)
        *c = (char)tolower((unsigned char)*c);
    if (!mentions(text, cap) || strstr(text, "too large") || strstr(text, "context"))
        return false;
    if (mentions(text, is_old ? "max_completion_tokens" : "max_tokens"))
        return true;
    for (size_t i = 0; unknown[i]; ++i)
        if (strstr(text, unknown[i]))
            return true;
    return false;
}
