/* Reading replies of OpenAI's Responses. Pure. */
#ifndef LLM_OPENAI_RESPONSES_REPLY_H
#define LLM_OPENAI_RESPONSES_REPLY_H

#include "../common/reply.h"

/* Functions of llm_dialect. Sealed reasoning is kept as an echo of "openai_responses". */
int32_t responses_read(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                       struct rung_error *error);
int32_t responses_event(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                        struct rung_error *error);

#endif
