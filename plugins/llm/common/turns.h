/*
 * A conversation as servers want it: turns whose roles alternate, with their texts joined, and the
 * tool calls, results and echoes in them. Pure; the request is borrowed.
 */
#ifndef LLM_COMMON_TURNS_H
#define LLM_COMMON_TURNS_H

#include "json.h"

/* Messages of one role in a row, as one. */
struct llm_turn {
    uint32_t role;        /* rung_message_role */
    uint32_t first, end;  /* its messages */
    struct llm_text text; /* texts of a message are joined as they are, messages by an empty line */
};

/*
 * The turn from message *at on, which moves behind it; messages that hold nothing are passed over.
 * False at the end. fold: what the system says is the user's. The caller frees the text of each
 * turn; system messages come as turns of their own.
 */
bool llm_turn_next(const struct rung_llm_request *request, bool fold, uint32_t *at,
                   struct llm_turn *turn);

/* Walks over the parts of a turn that are no text and no empty echo. {0} begins. */
struct llm_walk {
    uint32_t message, part;
    bool begun;
};
/* The next part of that kind (0: any but text), or NULL at the end. */
const struct rung_part *llm_turn_part(const struct rung_llm_request *request,
                                      const struct llm_turn *turn, uint32_t kind,
                                      struct llm_walk *walk);

/* All that the system says, joined by empty lines; the caller frees it. */
struct llm_text llm_system_text(const struct rung_llm_request *request);

/* The JSON of a part of `plugin`: an echo's value, or a call's arguments as an object; NULL: none.
 */
cJSON *llm_part_json(const struct rung_part *part);
/* Whether an echo is one of this plugin's. */
bool llm_is_echo_of(const struct rung_part *part, const char *plugin);

/*
 * llm_check_request, and what turns need: something that is no system message, known kinds of
 * parts, ids and names of calls and results, tools with a name of [A-Za-z0-9_-]{1,64} and a schema
 * that is a JSON object, a schema of the reply that is one. RUNG_EINVAL llm.request.
 */
int32_t llm_turns_check(const struct rung_llm_request *request, struct rung_error *error);

#endif
