/* Tool calls and echoes out of the pieces of a Chat Completions stream. */
#ifndef LLM_OPENAI_CALLS_H
#define LLM_OPENAI_CALLS_H

#include "../common/reply.h"

/*
 * delta.tool_calls, or message.tool_calls of a whole reply. A piece belongs to the call of its
 * index, else of its id, else of its position in the list. Servers leave out the index, give all
 * parallel calls the same one, repeat ids and names, and send arguments before the name.
 */
void openai_add_calls(struct llm_reply *reply, const cJSON *calls);
/* The one call of the older "function_call". */
void openai_add_function(struct llm_reply *reply, const cJSON *function);
/* Gives ids to calls that came without. */
void openai_name_calls(struct llm_reply *reply);

/* Keeps a piece of the reasoning field that is to go back: a text, or a list of details. */
void openai_hold(struct llm_reply *reply, const cJSON *piece);
/* Makes an echo of what was held when there are calls that it belongs to. */
void openai_release(struct llm_reply *reply, const char *provider, const char *field);

#endif
