/* Reading replies of Anthropic's Messages. Pure. */
#ifndef LLM_ANTHROPIC_REPLY_H
#define LLM_ANTHROPIC_REPLY_H

#include "../common/reply.h"

/* Functions of llm_dialect. Thinking that is signed is kept as an echo of "anthropic". */
int32_t anthropic_read(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                       struct rung_error *error);
int32_t anthropic_event(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                        struct rung_error *error);
void anthropic_end(const struct llm_asker *asker, struct llm_reply *reply);

#endif
