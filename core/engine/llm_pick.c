/* Which model answers a request. */
#include "engine/llm.h"

#include <stdlib.h>
#include <string.h>

static bool serves(const struct engine_llm *llm, const char *role)
{
    const char *const *roles = llm->stage->roles;
    for (size_t i = 0; roles && roles[i]; i++)
        if (strcmp(roles[i], role) == 0)
            return true;
    return !roles || !roles[0];
}

static bool ready(const struct engine_llm *llm, const char *role)
{
    return serves(llm, role) && !atomic_load(&llm->stopped);
}

/* The same request goes to the same model after a resume. */
struct engine_llm *llm_pick(struct engine *e, const char *role, const char *key)
{
    char hex[RUNG_SHA256_HEX];
    double total = 0, at;
    struct engine_llm *last = NULL;
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++)
        total += ready(&e->llms[i], role) ? e->llms[i].stage->weight : 0;
    rung_sha256(key, strlen(key), hex);
    hex[13] = 0;
    at = (double)strtoull(hex, NULL, 16) / (double)(UINT64_C(1) << 52) * total;
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++) {
        if (!ready(&e->llms[i], role) || (total > 0 && e->llms[i].stage->weight <= 0))
            continue;
        last = &e->llms[i];
        at -= last->stage->weight;
        if (at < 0)
            return last;
    }
    return last;
}

struct engine_llm *llm_pick_other(struct engine *e, const char *role, uint64_t given_up)
{
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++)
        if (!(given_up >> i & 1) && ready(&e->llms[i], role))
            return &e->llms[i];
    return NULL;
}

bool llm_all_stopped(const struct engine *e, const char *role)
{
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++)
        if (ready(&e->llms[i], role))
            return false;
    return true;
}
