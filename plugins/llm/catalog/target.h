/*
 * What a prompt's task is to the catalog: one of its operators with the texts that fill the
 * placeholders of its kernels, or a reason why it has none. Spans point into the request.
 */
#ifndef LLM_CATALOG_TARGET_H
#define LLM_CATALOG_TARGET_H

#include "graph.h"
#include "prompt.h"

struct target {
    const char *family; /* "softmax" or "elementwise"; NULL: see reason */
    char reason[256];   /* why the catalog has nothing; one sentence */

    struct llm_span output;                     /* tensor name */
    struct llm_span inputs[PROMPT_MAX_TENSORS]; /* tensor names; softmax has one */
    uint32_t n_inputs;

    struct llm_text rows, cols; /* softmax: expressions over dims */

    struct llm_span scalars[PROMPT_MAX_PARAMS]; /* elementwise: task parameters that are used */
    uint32_t n_scalars;
    struct llm_text elements; /* elementwise: the output's number of elements, over dims */
    struct llm_text helpers;  /* elementwise: device functions that expr and lets call */
    struct llm_text lets;     /* elementwise: "const float t0 = ...;" lines */
    struct llm_text expr;     /* elementwise: the result of one element, over v0.. and s0.. */
};

/* Never fails: what is not understood is a reason. Free with target_free. */
void target_read(const struct prompt *prompt, struct target *target);
void target_free(struct target *target);

/*
 * Writes lets, expr, helpers, inputs and scalars of an elementwise graph; false with the reason set
 * when it is none that the catalog knows.
 */
bool target_emit(const struct prompt *prompt, const struct graph *graph, struct target *target);

/* Sets the reason and returns false. */
bool target_refuse(struct target *target, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The tensor of that name, or NULL. */
const struct prompt_tensor *target_tensor(const struct prompt *prompt, struct llm_span name);

#endif
