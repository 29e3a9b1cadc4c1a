/* One tiny request to each model of a pipeline: does it answer, how fast, at what price. */
#ifndef ENGINE_LLM_PROBE_H
#define ENGINE_LLM_PROBE_H

#include <cjson/cJSON.h>
#include <rung/plugin.h>
#include <stdbool.h>
#include <stddef.h>

struct rung_probe_options {
    const char *pipeline;    /* file */
    const char *const *sets; /* PATH=VALUE */
    size_t n_sets;
    bool insecure_plugins;
};

/*
 * An array in *out (the caller deletes it), an object a model, in the pipeline's order: name,
 * plugin, model (as set), free, key (reference and whether it is there, never its value), price or
 * null, answers; when it was asked seconds, first_token_s, said_model, tokens, limits, or error.
 * What is free is not asked. Faults of the configuration are printed; RUNG_ECONFIG then. [main]
 */
int32_t rung_probe_llms(const struct rung_probe_options *options, cJSON **out,
                        struct rung_error *err);

#endif
