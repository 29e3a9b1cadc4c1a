/*
 * Tools that models can be offered: a table of name, words for the model, and what carries it out.
 * rung_tool_names (config) lists the same names.
 */
#ifndef ENGINE_TOOLS_H
#define ENGINE_TOOLS_H

#include "engine/engine.h"

struct engine_tool {
    const char *name;
    const char *summary; /* for the model */
    const char *schema;  /* JSON schema of the arguments */
    /*
     * [any thread] Carries a call out; arguments is an object. *result is for the model and lives
     * in arena: what is wrong with the arguments is a result too. Fails only as the run's workers
     * do.
     */
    int32_t (*run)(struct engine *e, const cJSON *arguments, struct rung_arena *arena,
                   const char **result, struct rung_error *err);
};

/* NULL when there is none of that name. */
const struct engine_tool *engine_tool_find(const char *name);
/* What a model is offered, by its own list or the pipeline's; *n of them, memory of arena. */
const struct rung_tool *engine_tools_offered(const struct engine *e, const struct engine_llm *llm,
                                             struct rung_arena *arena, uint32_t *n);
/*
 * One call of a model's, answered in words whatever is wrong with it: a tool that is not offered,
 * arguments that are no JSON object. Answered from the journal under `key` when it was answered
 * before.
 */
int32_t engine_tool_call(struct engine *e, const struct engine_llm *llm,
                         const struct rung_part *call, const char *key, struct rung_arena *arena,
                         const char **result, struct rung_error *err);

/* ---- tools_compile.c ---- */
extern const struct engine_tool engine_tool_compile;

#endif
