/* Settings of Messages, for its own API and for Bedrock; see build.h. */
#include "build.h"
#include <stdlib.h>
#include <string.h>

const struct rung_option anthropic_opt_cap = {
    .struct_size = sizeof anthropic_opt_cap,
    .type = RUNG_OPT_INT,
    .name = "max_output_tokens",
    .default_text = "16000",
    .min = 1,
    .max = 10000000,
    .unit = "tokens",
    .summary = "Most tokens of one reply, thinking included; the API wants one.",
};
static const char *const effort_values[] = {"low", "medium", "high", "xhigh", "max", NULL};
const struct rung_option anthropic_opt_effort = {
    .struct_size = sizeof anthropic_opt_effort,
    .type = RUNG_OPT_ENUM,
    .name = "effort",
    .values = effort_values,
    .summary = "How much the model shall spend on an answer (output_config.effort); not sent when "
               "absent.",
};
static const char *const thinking_values[] = {"adaptive", "enabled", "disabled", NULL};
const struct rung_option anthropic_opt_thinking = {
    .struct_size = sizeof anthropic_opt_thinking,
    .type = RUNG_OPT_ENUM,
    .name = "thinking",
    .values = thinking_values,
    .summary =
        "Whether the model thinks before it answers; enabled needs thinking_budget; not sent "
        "when absent.",
};
const struct rung_option anthropic_opt_budget = {
    .struct_size = sizeof anthropic_opt_budget,
    .type = RUNG_OPT_INT,
    .name = "thinking_budget",
    .default_text = "0",
    .min = 0,
    .max = 10000000,
    .unit = "tokens",
    .summary = "Tokens for thinking = \"enabled\": 1024 or more, fewer than max_output_tokens.",
};
static const char *const cache_values[] = {"5m", "1h", NULL};
const struct rung_option anthropic_opt_cache = {
    .struct_size = sizeof anthropic_opt_cache,
    .type = RUNG_OPT_ENUM,
    .flags = RUNG_OPT_ADVANCED,
    .name = "cache",
    .default_text = "5m",
    .values = cache_values,
    .summary = "How long the provider keeps the parts of prompts that the engine marks.",
};

int32_t anthropic_validate(const struct rung_host *host, const struct rung_options *set,
                           struct rung_error *error)
{
    const bool enabled = strcmp(host->opt_string(host, set, "thinking"), "enabled") == 0;
    const int64_t budget = host->opt_int(host, set, "thinking_budget");
    if (!enabled && budget)
        return llm_fail(error, RUNG_ECONFIG, "anthropic.thinking",
                        "'thinking_budget' needs thinking = \"enabled\"");
    if (enabled && (budget < ANTHROPIC_LEAST_THINKING ||
                    budget >= host->opt_int(host, set, "max_output_tokens")))
        return llm_fail(error, RUNG_ECONFIG, "anthropic.thinking",
                        "thinking = \"enabled\" needs a 'thinking_budget' of %d or more, below "
                        "'max_output_tokens'",
                        ANTHROPIC_LEAST_THINKING);
    return llm_provider_validate(host, set, error);
}

void anthropic_destroy(void *self)
{
    struct anthropic *a = self;
    free(a->thinking);
    llm_provider_destroy(a);
}

int32_t anthropic_init(struct anthropic *a, const struct rung_host *host,
                       const struct rung_options *set, const char *plugin, struct rung_error *error)
{
    int32_t status = llm_provider_init(&a->base, host, set, plugin, error);
    a->thinking = strdup(host->opt_string(host, set, "thinking"));
    a->thinking_budget = host->opt_int(host, set, "thinking_budget");
    a->hour = strcmp(host->opt_string(host, set, "cache"), "1h") == 0;
    if (status == RUNG_OK && !a->thinking)
        status = llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    return status;
}
