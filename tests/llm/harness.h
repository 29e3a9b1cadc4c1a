/*
 * A started model backend out of the build tree, and requests of one user message. One thread an
 * instance of the harness, except that ask may run in a thread of its own.
 */
#ifndef TESTS_LLM_HARNESS_H
#define TESTS_LLM_HARNESS_H

#include "support/support.h"

#include "base/arena.h"
#include "plugin/instance.h"
#include <rung/llm.h>

struct model {
    struct rung_registry *registry;
    struct rung_arena *arena; /* options and replies; freed by model_close */
    struct rung_instance *instance;
    struct rung_cancel *cancel;
    uint64_t deadline_ns;              /* 0: none */
    struct rung_error error;           /* of the last call */
    struct rung_llm_response response; /* of the last call, whatever its status */
};

/* Opens and starts plugin `name` with options as JSON. The status of what failed first, else
 * RUNG_OK. */
int32_t model_open(struct model *model, const char *name, const char *options);
/* The same for a plugin of another kind. */
int32_t model_open_kind(struct model *model, const char *kind, const char *name,
                        const char *options);
/* The same with services of the host; NULL: none. */
int32_t model_open_with(struct model *model, const char *name, const char *options,
                        const struct rung_service *services);
void model_close(struct model *model);

/* One request with one user message; status of the call. */
int32_t model_ask(struct model *model, const char *role, const char *key, uint64_t seed,
                  const char *user);
/* The same with any messages. */
int32_t model_send(struct model *model, const struct rung_llm_request *request);
/* The text of the last reply, which has one text part. */
const char *model_text(const struct model *model);

#endif
