/* A conversation as the standard input of a program. Pure. */
#ifndef LLM_COMMAND_RENDER_H
#define LLM_COMMAND_RENDER_H

#include "../common/turns.h"

/*
 * As text: each message is a line "# system", "# user" or "# assistant", an empty line and its
 * text; messages are parted by an empty line. A tool's call stands there as "[call NAME ID]
 * ARGUMENTS", a result as "[result NAME ID] TEXT", each on lines of their own. A conversation of
 * one user message is its bare text.
 */
void command_render_text(const struct rung_llm_request *request, struct llm_text *out);

/*
 * As one line of JSON:
 * {"key","role","seed","messages":[{"role","content","tool_calls","tool_results"
 * }],"tools","schema","max_output_tokens","temperature","effort"}; what is not set is left out.
 */
void command_render_json(const struct rung_llm_request *request, struct llm_text *out);

#endif
