/* Requests of Chat Completions. Pure but for the instance's memory of refusals. */
#ifndef LLM_OPENAI_BUILD_H
#define LLM_OPENAI_BUILD_H

#include "../common/provider.h"
#include "dialects.h"

struct openai {
    struct llm_provider base; /* first */
    const struct openai_dialect *dialect;
    char *key_header;
};

void openai_build(struct llm_ask *ask, struct llm_body *body);

#endif
