/* The plugins of a pipeline: installed, and content with their settings. */
#include "config/validate.h"
#include "base/status.h"

#include <errno.h>
#include <rung/llm.h>
#include <string.h>
#include <unistd.h>

const struct rung_options *rung_stage_options(const struct rung_validation *v, const char *kind,
                                              const struct rung_stage *stage,
                                              const struct rung_loaded **loaded)
{
    struct rung_error err = rung_error_init();
    if (rung_registry_load(v->registry, kind, stage->plugin, loaded, &err)) {
        RUNG_DIAG_AT(v->diags, stage->place, "%s", err.message);
        return NULL;
    }
    const struct rung_options *options = rung_options_read(
        v->arena, (*loaded)->factory, stage->settings, stage->keys, v->data_dir, v->diags);
    if (options && rung_instance_validate(*loaded, options, stage->name, v->data_dir, &err)) {
        RUNG_DIAG_AT(v->diags, stage->place, "%s", err.message);
        return NULL;
    }
    return options;
}

/* word: the kind's; a rung may know no plugins of that kind at all. */
static void check_stage(const struct rung_validation *v, const char *word,
                        const struct rung_stage *stage)
{
    const struct rung_loaded *loaded;
    const char *kind = rung_kind_of_word(word);
    if (kind)
        rung_stage_options(v, kind, stage, &loaded);
    else
        RUNG_DIAG_AT(v->diags, stage->place,
                     "no %s plugin '%s' is installed; there is none of that kind", word,
                     stage->plugin);
}

static void check_stages(const struct rung_validation *v, const char *word,
                         const struct rung_stage *stages, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        check_stage(v, word, &stages[i]);
}

void rung_pipeline_add_path(const struct rung_pipeline *pipeline, struct rung_registry *registry)
{
    size_t n = 0;
    while (pipeline->plugin_path[n])
        n++;
    while (n > 0)
        rung_registry_add_dir(registry, pipeline->plugin_path[--n]);
}

/* ---- What searches -------------------------------------------------------------------------- */

/* A budget in money holds only where each call's cost is known. */
static void check_price(const struct rung_validation *v, const struct rung_pipeline *pipeline,
                        const struct rung_stage *llm)
{
    struct rung_price price = rung_price_find(v->arena, v->data_dir, llm, v->diags);
    if (price.given || pipeline->budget.usd <= 0 || pipeline->budget.allow_unknown_price)
        return;
    RUNG_DIAG_AT(v->diags, llm->place,
                 "budget.usd is set, so llm '%s' must say what it costs, in USD per million "
                 "tokens: price = { input = 3.0; output = 15.0; }; no item of prices.cfg matches "
                 "it, and budget.allow_unknown_price = true starts all the same",
                 llm->name);
}

static void check_llm(const struct rung_validation *v, const struct rung_pipeline *pipeline,
                      const struct rung_stage *llm)
{
    const struct rung_loaded *loaded;
    if (rung_stage_options(v, RUNG_KIND_LLM, llm, &loaded) &&
        !(loaded->factory->capabilities & RUNG_LLM_FREE))
        check_price(v, pipeline, llm);
}

static void check_contexts(const struct rung_validation *v, const struct rung_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->n_contexts; i++)
        if (access(pipeline->contexts[i].path, R_OK) != 0)
            RUNG_DIAG_AT(v->diags, pipeline->contexts[i].settings, "%s: can't be read: %s",
                         pipeline->contexts[i].path, strerror(errno));
    if (pipeline->n_contexts && !rung_kind_of_word("context"))
        RUNG_DIAG_AT(v->notes, pipeline->contexts[0].settings,
                     "'context' is not used: no context plugin is installed");
}

void rung_validate_search(const struct rung_validation *v, const struct rung_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->n_llms; i++)
        check_llm(v, pipeline, &pipeline->llms[i]);
    check_stage(v, "search", &pipeline->search);
    check_stages(v, "examples", pipeline->examples, pipeline->n_examples);
    check_contexts(v, pipeline);
}

/* ---- What judges ---------------------------------------------------------------------------- */

static bool is_installed(const struct rung_validation *v, const char *kind, const char *name,
                         struct rung_error *err)
{
    char *path, sha256[RUNG_SHA256_HEX];
    return rung_registry_locate(v->registry, kind, name, &path, sha256, v->arena, err) == RUNG_OK;
}

/* "auto" does without devices that are not installed; one asked for by name must be there. */
static void check_devices(const struct rung_validation *v, const struct rung_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->n_devices; i++) {
        struct rung_error err = rung_error_init();
        const struct rung_stage *device = &pipeline->devices[i];
        if (is_installed(v, RUNG_KIND_DEVICE, device->plugin, &err))
            check_stage(v, "device", device);
        else
            RUNG_DIAG_AT(v->notes, device->place, "\"auto\" does without it: %s", err.message);
    }
    for (uint32_t i = 0; i < pipeline->n_workers; i++) {
        struct rung_error err = rung_error_init();
        const struct rung_worker_spec *w = &pipeline->workers[i];
        if (strcmp(w->device, "auto") != 0 && !is_installed(v, RUNG_KIND_DEVICE, w->device, &err))
            RUNG_DIAG_AT(v->diags, w->settings, "%s", err.message);
    }
}

static void check_rungs(const struct rung_validation *v, const struct rung_pipeline *pipeline)
{
    check_stages(v, "verifier", pipeline->rungs, pipeline->n_rungs);
    for (uint32_t i = 0; i < pipeline->n_rungs; i++) {
        const char *const *on = pipeline->rungs[i].on_devices;
        for (; on && *on; on++) {
            struct rung_error err = rung_error_init();
            if (!is_installed(v, RUNG_KIND_DEVICE, *on, &err))
                RUNG_DIAG_AT(v->diags, rung_node_get(pipeline->rungs[i].settings, "on"), "%s",
                             err.message);
        }
    }
}

void rung_validate_ladder(const struct rung_validation *v, const struct rung_pipeline *pipeline)
{
    check_stage(v, "codegen", &pipeline->codegen);
    check_stage(v, "compiler", &pipeline->compiler);
    check_devices(v, pipeline);
    check_stages(v, "reference", pipeline->references, pipeline->n_references);
    check_rungs(v, pipeline);
    check_stages(v, "timer", pipeline->timers, pipeline->n_timers);
    check_stages(v, "baseline", pipeline->baselines, pipeline->n_baselines);
    check_stages(v, "profiler", pipeline->profiles, pipeline->n_profiles);
}
