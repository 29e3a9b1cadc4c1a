/* Requests of Anthropic's Messages, for its own API and for Bedrock. Pure. */
#ifndef LLM_ANTHROPIC_BUILD_H
#define LLM_ANTHROPIC_BUILD_H

#include "../common/provider.h"

enum { ANTHROPIC_LEAST_THINKING = 1024 }; /* tokens; the least budget that the API takes */

/* Settings of an instance, behind its provider. */
struct anthropic {
    struct llm_provider base; /* first */
    char *thinking;           /* "" or the type */
    int64_t thinking_budget;
    bool hour;    /* cache for an hour instead of five minutes */
    bool bedrock; /* anthropic_version in the body, the model in the URL, no streams */
};

extern const struct rung_option anthropic_opt_cap, anthropic_opt_effort, anthropic_opt_thinking,
    anthropic_opt_budget, anthropic_opt_cache;

/* llm_provider_validate, and what thinking and its budget ask of each other. */
int32_t anthropic_validate(const struct rung_host *host, const struct rung_options *set,
                           struct rung_error *error);
/* llm_provider_init and the settings above. On an error the instance is destroyed. */
int32_t anthropic_init(struct anthropic *a, const struct rung_host *host,
                       const struct rung_options *set, const char *plugin,
                       struct rung_error *error);
void anthropic_destroy(void *self);
void anthropic_build(struct llm_ask *ask, struct llm_body *body);

#endif
