/* Reading replies of Gemini's generateContent. Pure. */
#ifndef LLM_GEMINI_REPLY_H
#define LLM_GEMINI_REPLY_H

#include "../common/reply.h"

/* Functions of llm_dialect. Signatures of thoughts are kept as echoes of "gemini". */
int32_t gemini_read(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                    struct rung_error *error);
int32_t gemini_event(const cJSON *json, const struct llm_asker *asker, struct llm_reply *reply,
                     struct rung_error *error);
void gemini_end(const struct llm_asker *asker, struct llm_reply *reply);

#endif
