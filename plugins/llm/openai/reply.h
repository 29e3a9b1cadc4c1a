/* Reading replies of OpenAI Chat Completions and its many relatives. Pure. */
#ifndef LLM_OPENAI_REPLY_H
#define LLM_OPENAI_REPLY_H

#include "../common/reply.h"

extern const struct llm_dialect openai_dialect;

/*
 * Whether the error turns away the member `cap` of the request ("max_tokens" or
 * "max_completion_tokens") as such, rather than its value: it names the other one, or says that
 * this one isn't known.
 */
bool openai_refuses_cap(const struct llm_wire *wire, const char *cap);

#endif
