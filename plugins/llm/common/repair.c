/* A refusal that names a parameter of the request; see repair.h. */
#include "repair.h"
#include <ctype.h>
#include <string.h>

/* By what names servers call each of them, in lower case. */
static const struct {
    uint32_t knob;
    const char *word;
} names[] = {
    {LLM_TEMPERATURE, "temperature"},
    {LLM_SEED, "seed"},
    {LLM_SEED, "random_seed"},
    {LLM_EFFORT, "reasoning_effort"},
    {LLM_EFFORT, "reasoning.effort"},
    {LLM_EFFORT, "reasoning"},
    {LLM_EFFORT, "output_config.effort"},
    {LLM_EFFORT, "effort"},
    {LLM_EFFORT, "thinking_level"},
    {LLM_EFFORT, "thinking level"},
    {LLM_EFFORT, "thinkinglevel"},
    {LLM_THINKING, "thinking"},
    {LLM_EFFORT, "thinking"}, /* Ollama; where thinking itself was sent, it is that */
    {LLM_THINKING, "thinking_budget"},
    {LLM_THINKING, "thinkingbudget"},
    {LLM_THINKING, "thinking_config"},
    {LLM_THINKING, "budget_tokens"},
    {LLM_SCHEMA, "response_format"},
    {LLM_SCHEMA, "json_schema"},
    {LLM_SCHEMA, "text.format"},
    {LLM_SCHEMA, "output_config.format"},
    {LLM_SCHEMA, "output_format"},
    {LLM_SCHEMA, "structured outputs"},
    {LLM_SCHEMA, "response_json_schema"},
    {LLM_SCHEMA, "responsejsonschema"},
    {LLM_SCHEMA, "response_mime_type"},
    {LLM_SCHEMA, "responsemimetype"},
    {LLM_USAGE, "stream_options"},
    {LLM_USAGE, "include_usage"},
    {LLM_STREAM, "stream"},
    {LLM_STREAM, "streaming"},
    {LLM_TOOLS, "tools"},
    {LLM_TOOLS, "functions"},
    {LLM_TOOLS, "function calling"},
    {LLM_CACHE, "cache_control"},
    {LLM_SEALED, "include"},
    {LLM_SEALED, "encrypted content"},
    {LLM_SEALED, "encrypted_content"},
    {LLM_ROLE, "developer"},
    {LLM_ROLE, "system role"},
    {LLM_ROLE, "system message"},
    {LLM_ROLE, "message role"},
};

enum { N_NAMES = sizeof names / sizeof *names, HAYSTACK = 2048 };

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Where the word stands by itself, or NULL. */
static const char *mention(const char *hay, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = strstr(hay, word); at; at = strstr(at + 1, word))
        if ((at == hay || !is_letter(at[-1])) && !is_letter(at[n]))
            return at;
    return NULL;
}

static void lower(char *text)
{
    for (; *text; ++text)
        *text = (char)tolower((unsigned char)*text);
}

/* Whether it is the name that is turned away: the other one is named, or this one isn't known. */
static bool refuses_cap(const char *hay, const char *cap)
{
    static const char *const unknown[] = {"unsupported", "not support",   "unrecognized",
                                          "unknown",     "not permitted", "unexpected",
                                          "not allowed", "extra",         NULL};
    const bool is_old = strcmp(cap, "max_tokens") == 0;
    if (!mention(hay, cap) || strstr(hay, "too large") || strstr(hay, "context"))
        return false;
    if (mention(hay, is_old ? "max_completion_tokens" : "max_tokens"))
        return true;
    for (size_t i = 0; unknown[i]; ++i)
        if (strstr(hay, unknown[i]))
            return true;
    return false;
}

static uint32_t first_mention(const char *hay, uint32_t sent, const char **word)
{
    const char *best = NULL;
    uint32_t knob = 0;
    for (size_t i = 0; i < N_NAMES; ++i) {
        const char *at = sent & names[i].knob ? mention(hay, names[i].word) : NULL;
        if (at && (!best || at < best)) {
            best = at;
            knob = names[i].knob;
            *word = names[i].word;
        }
    }
    return knob;
}

uint32_t llm_repair(const struct llm_wire *wire, const cJSON *json, uint32_t sent, const char *cap,
                    const char **word)
{
    char hay[HAYSTACK], param[128] = "";
    const char *named = llm_json_text(llm_json_get(json, "error"), "param");
    if (wire->status != 400 && wire->status != 422)
        return 0;
    llm_excerpt(hay, sizeof hay, wire->body);
    lower(hay);
    if ((sent & LLM_CAP) && refuses_cap(hay, cap)) {
        *word = cap;
        return LLM_CAP;
    }
    if (named)
        llm_excerpt(param, sizeof param, (struct llm_span){named, strlen(named)});
    lower(param);
    const uint32_t knob = first_mention(param, sent, word);
    return knob ? knob : first_mention(hay, sent, word);
}
