/* Errors of providers; see fault.h. */
#include "fault.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE = 512, NAME = 96, HAYSTACK = MESSAGE + 3 * NAME };

struct fault {
    uint32_t status;
    char message[MESSAGE];
    char type[NAME];
    char code[NAME];
    char hay[HAYSTACK]; /* all of these in lower case, to search in */
};

/* ---- The forms of a body ---- */

static struct llm_span span_of(const char *text)
{
    return (struct llm_span){text, strlen(text)};
}

/* Google answers some errors as a list of one. */
static const cJSON *object_of(const cJSON *json)
{
    return cJSON_IsArray(json) ? json->child : json;
}

bool llm_is_fault(const cJSON *json)
{
    const cJSON *object = object_of(json);
    const char *type = llm_json_text(object, "type");
    return llm_json_get(object, "error") || (type && strcmp(type, "error") == 0);
}

/* A member that is a text or a number, as text. */
static void copy_scalar(char out[NAME], const cJSON *object, const char *name)
{
    const cJSON *item = llm_json_get(object, name);
    if (cJSON_IsString(item))
        llm_excerpt(out, NAME, span_of(item->valuestring));
    else if (cJSON_IsNumber(item))
        snprintf(out, NAME, "%.0f", item->valuedouble);
}

static bool copy_message(char out[MESSAGE], const cJSON *item)
{
    if (cJSON_IsString(item)) {
        llm_excerpt(out, MESSAGE, span_of(item->valuestring));
        return true;
    }
    if (!cJSON_IsArray(item) && !cJSON_IsObject(item))
        return false;
    char *text = cJSON_PrintUnformatted(item);
    if (text)
        llm_excerpt(out, MESSAGE, span_of(text));
    free(text);
    return text != NULL;
}

/* {"error":{...}}, {"error":"..."}, {"detail":...}, {"message":...}; else the bytes themselves. */
static void read_body(struct fault *f, const struct llm_wire *wire, const cJSON *json)
{
    const cJSON *top = object_of(json), *error = llm_json_get(top, "error");
    const cJSON *from = cJSON_IsObject(error) ? error : top;
    copy_scalar(f->type, from, "type");
    copy_scalar(f->code, from, "code");
    if (!f->type[0])
        copy_scalar(f->type, from, "status");
    bool found = copy_message(f->message, llm_json_get(from, "message")) ||
                 copy_message(f->message, cJSON_IsObject(error) ? NULL : error) ||
                 copy_message(f->message, llm_json_get(top, "detail"));
    if (!found)
        llm_excerpt(f->message, MESSAGE, wire->body);
    /* The reasons that a provider gives as details, such as API_KEY_INVALID, count as its code. */
    char reason[NAME] = "";
    const cJSON *details = llm_json_get(from, "details");
    if (cJSON_IsArray(details))
        copy_scalar(reason, details->child, "reason");
    snprintf(f->hay, sizeof f->hay, "%s %s %s %s", f->type, f->code, reason, f->message);
    for (char *c = f->hay; *c; ++c)
        *c = (char)tolower((unsigned char)*c);
}

static bool says(const struct fault *f, const char *const *phrases)
{
    for (; *phrases; ++phrases)
        if (strstr(f->hay, *phrases))
            return true;
    return false;
}

/* The status that an error inside a reply of status 200 stands for. */
static uint32_t status_of_type(const struct fault *f)
{
    static const struct {
        const char *word;
        uint32_t status;
    } words[] = {{"overloaded", 529},
                 {"rate_limit", 429},
                 {"resource_exhausted", 429},
                 {"authentication", 401},
                 {"invalid_api_key", 401},
                 {"permission", 403},
                 {"not_found", 404},
                 {"invalid_request", 400},
                 {"invalid_argument", 400},
                 {"request_too_large", 413},
                 {"insufficient_quota", 429},
                 {"content_filter", 400},
                 {"content_policy", 400},
                 {"context_length", 400},
                 {"rate limit", 429},
                 {"too many requests", 429},
                 {"throttl", 429}};
    const long code = strtol(f->code, NULL, 10);
    if (code >= 400 && code <= 599)
        return (uint32_t)code;
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strstr(f->hay, words[i].word))
            return words[i].status;
    return 500;
}

/* ---- What it means ---- */

/* How each server says that a prompt is too long. */
static const char *const context_phrases[] = {
    "context_length",        /* OpenAI's code */
    "context length",        /* OpenAI, vLLM, SGLang, Mistral, DeepSeek, LM Studio, Ollama */
    "context window",        /* Responses, OpenRouter */
    "context size",          /* llama.cpp */
    "context_size",          /* its type, exceed_context_size_error */
    "context limit",         /* Anthropic, with max_tokens */
    "prompt is too long",    /* Anthropic */
    "input is too long",     /* Bedrock */
    "input token count",     /* Gemini */
    "prompt token count",    /* Copilot's proxies */
    "maximum prompt length", /* xAI */
    "max_model_len",         /* vLLM */
    "model token limit",     /* Moonshot */
    "reduce the length",     /* Groq */
    "prompt too long",       "string_above_max", NULL};
static const char *const filter_phrases[] = {"content_filter",
                                             "content filter",
                                             "content_policy",
                                             "content management policy",
                                             "moderation",
                                             "invalid_prompt",
                                             "usage policy",
                                             "data_inspection_failed",
                                             NULL};
/* A quota that waiting doesn't refill. Gemini's "exceeded your current quota" is no such thing. */
static const char *const quota_phrases[] = {"insufficient_quota",
                                            "insufficient_user_quota",
                                            "exceeded_current_quota_error",
                                            "credit balance is too low",
                                            "billing_error",
                                            "billing_not_active",
                                            "billing_hard_limit",
                                            "insufficient balance",
                                            "insufficient credits",
                                            "insufficient_balance",
                                            "specified api usage limits",
                                            "specified workspace api usage limits",
                                            "arrearage",
                                            NULL};
static const char *const key_phrases[] = {"api_key_invalid", "api key not valid", "invalid_api_key",
                                          "expired_api_key", NULL};
static const char *const model_phrases[] = {"model_not_found",
                                            "not a valid model",
                                            "model not exist",
                                            "invalid model name",
                                            "model identifier is invalid",
                                            "invalid_model",
                                            NULL};

static bool is_context(const struct fault *f)
{
    const bool may = f->status == 400 || f->status == 422 || f->status == 500;
    return f->status == 413 || (may && says(f, context_phrases));
}

static bool is_filter(const struct fault *f)
{
    return (f->status == 400 || f->status == 403 || f->status == 422) && says(f, filter_phrases);
}

static bool is_passing(uint32_t status)
{
    return status == 408 || status == 409 || status == 424 || status == 425 || status >= 500;
}

enum { SHORT = 160 };

static const char *shortened(char out[SHORT], struct llm_span text)
{
    llm_excerpt(out, SHORT, text);
    return out;
}

static int32_t report(struct rung_error *error, const struct llm_asker *asker,
                      const struct fault *f, int32_t status, const char *symbol, const char *remedy)
{
    char url[SHORT];
    /* A query may hold what others shouldn't read. */
    const struct llm_span plain = {asker->url, strcspn(asker->url, "?#")};
    return llm_fail(error, status, symbol, "%s: %s: HTTP %u: %s%s%s", asker->plugin,
                    shortened(url, plain), f->status, f->message[0] ? f->message : "no message",
                    remedy[0] ? "; " : "", remedy);
}

static int32_t report_key(struct rung_error *error, const struct llm_asker *asker,
                          const struct fault *f)
{
    char remedy[256], where[SHORT];
    const char *colon = strchr(asker->key, ':');
    shortened(where, span_of(colon ? colon + 1 : ""));
    if (strncmp(asker->key, "env:", 4) == 0)
        snprintf(remedy, sizeof remedy, "the key comes from the environment variable %s", where);
    else if (colon)
        snprintf(remedy, sizeof remedy, "the key comes from the file %s", where);
    else
        snprintf(remedy, sizeof remedy,
                 "no key is set: key = \"env:VARIABLE\" or \"file:PATH\" says where it is");
    return report(error, asker, f, RUNG_ECONFIG, "llm.key", remedy);
}

static int32_t report_rest(struct rung_error *error, const struct llm_asker *asker,
                           const struct fault *f, const struct llm_wire *wire)
{
    char text[256], part[SHORT];
    if (f->status == 404 || (f->status == 400 && says(f, model_phrases))) {
        snprintf(text, sizeof text, "model '%s' is not known there, or the url is wrong",
                 shortened(part, span_of(asker->model)));
        return report(error, asker, f, RUNG_ECONFIG, "llm.model", text);
    }
    if (f->status >= 300 && f->status < 400) {
        snprintf(text, sizeof text, "redirects are not followed; it points to '%s'",
                 shortened(part, llm_header(wire, "location")));
        return report(error, asker, f, RUNG_ECONFIG, "llm.request", text);
    }
    return report(error, asker, f, RUNG_ECONFIG, "llm.request", "");
}

/* What may go away by itself; x-should-retry has the last word. */
static int32_t report_passing(struct rung_error *error, const struct llm_asker *asker,
                              const struct fault *f, const struct llm_wire *wire, const cJSON *json)
{
    if (llm_span_is(llm_header(wire, "x-should-retry"), "false"))
        return report(error, asker, f, RUNG_ECONFIG, "llm.request",
                      "the server asks not to try again");
    error->retry_after_ms = llm_retry_after_ms(wire, json);
    return f->status == 429 ? report(error, asker, f, RUNG_ERATELIMIT, "llm.rate", "")
                            : report(error, asker, f, RUNG_EUNAVAILABLE, "llm.overloaded", "");
}

int32_t llm_fault_read(const struct llm_wire *wire, const cJSON *json,
                       const struct llm_asker *asker, struct llm_turned_away *away,
                       struct rung_error *error)
{
    struct fault f = {.status = wire->status};
    read_body(&f, wire, json);
    if (f.status >= 200 && f.status < 300)
        f.status = status_of_type(&f);
    if (is_context(&f) || is_filter(&f)) {
        away->finish = is_context(&f) ? RUNG_FINISH_CONTEXT : RUNG_FINISH_REFUSED;
        snprintf(away->word, sizeof away->word, "%s", f.code[0] ? f.code : f.type);
        return RUNG_OK;
    }
    error->retry_after_ms = 0;
    if (f.status == 402 ||
        ((f.status == 429 || f.status == 400 || f.status == 403) && says(&f, quota_phrases)))
        return report(error, asker, &f, RUNG_EBUDGET, "llm.quota",
                      "the account's quota or credit is used up");
    if (f.status == 401 || f.status == 403 || (f.status == 400 && says(&f, key_phrases)))
        return report_key(error, asker, &f);
    if (f.status == 429 || is_passing(f.status) ||
        llm_span_is(llm_header(wire, "x-should-retry"), "true"))
        return report_passing(error, asker, &f, wire, json);
    return report_rest(error, asker, &f, wire);
}
