/* Reading replies of Gemini's generateContent. Pure. */
#ifndef LLM_GEMINI_REPLY_H
#define LLM_GEMINI_REPLY_H

#include "../common/reply.h"

extern const struct llm_dialect gemini_dialect;

#endif
