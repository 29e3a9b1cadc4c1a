/* Reading replies of OpenAI Chat Completions and its many relatives. Pure. */
#ifndef LLM_OPENAI_REPLY_H
#define LLM_OPENAI_REPLY_H

#include "../common/reply.h"

/*
 * Functions of llm_dialect. Reasoning that a server wants back with its tool calls is kept as an
 * echo by the name of the asker's provider.
 */
int32_t openai_read(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                    struct rung_error *error);
int32_t openai_event(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                     struct rung_error *error);
void openai_end(const struct llm_asker *asker, struct llm_reply *reply);

#endif
