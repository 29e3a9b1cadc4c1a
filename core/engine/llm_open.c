/* The pipeline's models before the first request: prices, gates, caps. */
#include "engine/llm.h"
#include "base/status.h"
#include "base/diag.h"

#include <stdio.h>
#include <string.h>

/* Requests at once before any has been answered. */
enum { FIRST_WINDOW = 2 };

static bool has_option(const struct rung_factory *factory, const char *name)
{
    for (size_t i = 0; factory->options && factory->options[i]; i++)
        if (strcmp(factory->options[i]->name, name) == 0)
            return true;
    return false;
}

/* What the plugin's setting of that name says, where it has one. */
static uint32_t cap_of(const struct rung_instance *instance)
{
    if (!has_option(instance->factory, "max_output_tokens"))
        return 0;
    int64_t cap = instance->host->opt_int(instance->host, instance->options, "max_output_tokens");
    return cap > 0 && cap <= UINT32_MAX ? (uint32_t)cap : 0;
}

static struct llm_gate *gate_of(const struct engine *e, const struct engine_llm *llm)
{
    uint32_t most = llm->stage->parallel;
    if (llm->free)
        return most ? llm_gate_new(most, most) : NULL;
    return llm_gate_new(FIRST_WINDOW, most ? most : e->pipeline->limits.llm_parallel);
}

int32_t engine_llms_open(struct engine *e, struct rung_error *err)
{
    struct rung_diags diags = {0};
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++) {
        struct engine_llm *llm = &e->llms[i];
        llm->free = (llm->instance->factory->capabilities & RUNG_LLM_FREE) != 0;
        llm->price = rung_price_find(e->arena, e->data_dir, llm->stage, &diags);
        llm->cap = cap_of(llm->instance);
        llm->gate = gate_of(e, llm);
    }
    size_t n = diags.n;
    fputs(rung_buf_text(&diags.text), stderr);
    rung_diags_free(&diags);
    return n ? rung_fail(err, RUNG_ECONFIG, "config", "%zu faults in prices.cfg", n) : RUNG_OK;
}

void engine_llms_close(struct engine *e)
{
    for (uint32_t i = 0; e->llms && i < e->pipeline->n_llms; i++)
        llm_gate_free(e->llms[i].gate);
}

struct engine_llm *engine_llm_named(struct engine *e, const char *name)
{
    for (uint32_t i = 0; i < e->pipeline->n_llms; i++)
        if (strcmp(e->llms[i].stage->name, name) == 0)
            return &e->llms[i];
    return NULL;
}
