/* Reading replies of Anthropic's Messages. Pure. */
#ifndef LLM_ANTHROPIC_REPLY_H
#define LLM_ANTHROPIC_REPLY_H

#include "../common/reply.h"

extern const struct llm_dialect anthropic_dialect;

#endif
