/* The servers that speak Chat Completions; see dialects.h. */
#include "dialects.h"
#include <stddef.h>
#include <string.h>

const char *const openai_dialect_words[] = {
    "auto",   "openai", "azure",  "openrouter", "deepseek", "mistral", "llama_cpp",
    "ollama", "vllm",   "sglang", "lmstudio",   "generic",  NULL};

/*
 * Local servers take a seed; hosted ones have given it up, or refuse it. Mistral refuses fields
 * that it doesn't know, and tells usage in the last chunk unasked. DeepSeek has no schema for
 * replies, and wants its reasoning back within a turn of tool calls, as OpenRouter does for the
 * models behind it.
 */
static const struct openai_dialect dialects[] = {
    {.name = "openai",
     .hosts = "//api.openai.com",
     .url = "https://api.openai.com/v1",
     .bare = "/v1",
     .cap_field = 1,
     .schema = OPENAI_SCHEMA_STRICT,
     .effort = OPENAI_EFFORT_WORD,
     .usage = true},
    {.name = "azure",
     .hosts = ".azure.com",
     .bare = "/openai/v1",
     .key_header = "api-key",
     .cap_field = 1,
     .schema = OPENAI_SCHEMA_STRICT,
     .effort = OPENAI_EFFORT_WORD,
     .usage = true},
    {.name = "openrouter",
     .hosts = "//openrouter.ai",
     .url = "https://openrouter.ai/api/v1",
     .bare = "/api/v1",
     .cap_field = 2,
     .schema = OPENAI_SCHEMA_STRICT,
     .effort = OPENAI_EFFORT_OBJECT,
     .usage = true,
     .echo = "reasoning_details"},
    {.name = "deepseek",
     .hosts = "//api.deepseek.com",
     .url = "https://api.deepseek.com",
     .bare = "/v1",
     .cap_field = 2,
     .usage = true,
     .echo = "reasoning_content"},
    {.name = "mistral",
     .hosts = "//api.mistral.ai",
     .url = "https://api.mistral.ai",
     .bare = "/v1",
     .cap_field = 2,
     .schema = OPENAI_SCHEMA_STRICT,
     .seed = "random_seed"},
    {.name = "llama_cpp",
     .url = "http://127.0.0.1:8080",
     .bare = "/v1",
     .cap_field = 2,
     .schema = OPENAI_SCHEMA_OBJECT,
     .effort = OPENAI_EFFORT_WORD,
     .usage = true,
     .seed = "seed"},
    {.name = "ollama",
     .url = "http://127.0.0.1:11434",
     .bare = "/v1",
     .cap_field = 2,
     .schema = OPENAI_SCHEMA_STRICT,
     .effort = OPENAI_EFFORT_WORD,
     .usage = true,
     .seed = "seed"},
    {.name = "vllm",
     .url = "http://127.0.0.1:8000",
     .bare = "/v1",
     .cap_field = 2,
     .schema = OPENAI_SCHEMA_STRICT,
     .effort = OPENAI_EFFORT_WORD,
     .usage = true,
     .seed = "seed"},
    {.name = "sglang",
     .url = "http://127.0.0.1:30000",
     .bare = "/v1",
     .cap_field = 2,
     .schema = OPENAI_SCHEMA_STRICT,
     .effort = OPENAI_EFFORT_WORD,
     .usage = true,
     .seed = "seed"},
    {.name = "lmstudio",
     .url = "http://127.0.0.1:1234",
     .bare = "/v1",
     .cap_field = 2,
     .schema = OPENAI_SCHEMA_STRICT,
     .effort = OPENAI_EFFORT_WORD,
     .usage = true,
     .seed = "seed"},
    {.name = "generic",
     .bare = "/v1",
     .cap_field = 2,
     .schema = OPENAI_SCHEMA_STRICT,
     .effort = OPENAI_EFFORT_WORD,
     .usage = true},
};

enum { N_DIALECTS = sizeof dialects / sizeof *dialects };

const struct openai_dialect *openai_dialect_of(const char *word, const char *url)
{
    const bool automatic = strcmp(word, "auto") == 0;
    if (automatic && strcmp(url, "auto") == 0)
        return &dialects[0];
    for (size_t i = 0; i < N_DIALECTS; ++i)
        if (automatic ? dialects[i].hosts && strstr(url, dialects[i].hosts)
                      : strcmp(word, dialects[i].name) == 0)
            return &dialects[i];
    return &dialects[N_DIALECTS - 1];
}
