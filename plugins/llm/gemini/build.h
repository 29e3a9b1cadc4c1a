/* Requests of Gemini's generateContent. Pure. */
#ifndef LLM_GEMINI_BUILD_H
#define LLM_GEMINI_BUILD_H

#include "../common/provider.h"

enum { GEMINI_UNSENT = -2 };

struct gemini {
    struct llm_provider base; /* first */
    int64_t thinking_budget;  /* GEMINI_UNSENT: not sent */
};

void gemini_build(struct llm_ask *ask, struct llm_body *body);

#endif
