/*
 * What the catalog finds in the engine's prompts: sections of markdown, hostile input. All spans
 * point into the request. Pure.
 */
#ifndef LLM_CATALOG_PROMPT_H
#define LLM_CATALOG_PROMPT_H

#include "../common/text.h"

enum {
    PROMPT_MAX_TENSORS = 16,
    PROMPT_MAX_DIMS = 8,
    PROMPT_MAX_DIM_NAMES = 64,
    PROMPT_MAX_PARAMS = 16,
    PROMPT_MAX_TRIED = 1024,
    PROMPT_MAX_SOURCES = 16,
};

/* A line "x: input f32 [rows, cols]" of the contract. */
struct prompt_tensor {
    struct llm_span name, role, dtype;
    struct llm_span dims[PROMPT_MAX_DIMS];
    uint32_t n_dims;
    uint32_t alignment; /* bytes; 0 when the contract does not say */
    bool strided;       /* not row-major */
};

/* A fenced block that the catalog wrote: it carries "// catalog: family/stem variant N". */
struct prompt_source {
    struct llm_span body;
    struct llm_span family, stem;
    uint32_t variant;
    bool parent; /* stood under "## Parent" */
};

struct prompt {
    struct llm_span graph; /* empty when there is none */
    struct prompt_tensor tensors[PROMPT_MAX_TENSORS];
    uint32_t n_tensors;
    struct llm_span params[PROMPT_MAX_PARAMS]; /* names */
    uint32_t n_params;
    struct llm_span dim_names[PROMPT_MAX_DIM_NAMES];
    uint32_t n_dim_names;
    struct llm_span tried[PROMPT_MAX_TRIED]; /* list lines under "## Ideas so far" */
    uint32_t n_tried;
    struct llm_span idea; /* text under the last "## Idea"; empty when there is none */
    struct prompt_source sources[PROMPT_MAX_SOURCES]; /* in order; the last one is always kept */
    uint32_t n_sources;
    uint32_t wanted; /* "Propose N ideas."; 0 when not said */
    bool has_parent; /* some "## Parent" section with a fenced block */
};

/* Reads all text parts. What is beyond the bounds above is left out. */
void prompt_read(const struct rung_llm_request *request, struct prompt *prompt);

/* Whether the task has a dim of that name. */
bool prompt_has_dim(const struct prompt *prompt, struct llm_span name);

#endif
