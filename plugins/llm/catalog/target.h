/*
 * What a prompt's task is to the catalog: the kernels of one of its families that serve it, with
 * the texts that fill their placeholders, or a reason why there are none. Spans point into the
 * request. One thread a target.
 */
#ifndef LLM_CATALOG_TARGET_H
#define LLM_CATALOG_TARGET_H

#include "graph.h"
#include "match.h"
#include "prompt.h"
#include "store.h"

struct target {
    const char *family;  /* a folder of the catalog; NULL: see reason */
    char reason[1024];   /* why the catalog has nothing; whole sentences */
    bool names_operator; /* reason is the whole message, with what there is instead */
    /* By kernel of the store: 1 + its form; 0: not for this task. */
    uint8_t form[STORE_MAX_KERNELS];

    struct graph graph; /* of the task */
    struct match match; /* of the kernel that target_bind chose */

    /* An elementwise chain, or what follows the core of a form with `chain`. */
    struct llm_span output;                     /* tensor name */
    struct llm_span inputs[PROMPT_MAX_TENSORS]; /* tensors that the chain reads */
    uint32_t n_inputs;
    const char *element;                        /* C type of these tensors: "float" or "__half" */
    struct llm_span scalars[PROMPT_MAX_PARAMS]; /* task parameters that it uses */
    uint32_t n_scalars;
    struct llm_text elements; /* elementwise: the output's number of elements, over dims */
    struct llm_text helpers;  /* device functions that expr and lets call */
    struct llm_text lets;     /* "const float t0 = ...;" lines */
    struct llm_text expr;     /* the result of one element, over v0.. and s0.. */
};

/* Never fails: what is not understood is a reason. The graph is parsed, nothing is bound yet. Free
 * with target_free. */
void target_read(const struct prompt *prompt, const struct store *store, struct target *target);
void target_free(struct target *target);

/* Whether a kernel of the store serves the task. */
bool target_has(const struct target *target, const struct store *store,
                const struct kernel *kernel);

/* Fills the texts for a kernel that serves the task. */
void target_bind(struct target *target, const struct prompt *prompt, const struct store *store,
                 const struct kernel *kernel);

/* Fills the texts of a kernel's first form for no task: each name stands for itself. */
void target_bind_itself(struct target *target, const struct store *store,
                        const struct kernel *kernel);

/*
 * Writes lets, expr, helpers, inputs and scalars of an elementwise graph; false with the reason set
 * when it is none that the catalog knows. With a core, that node of the graph is v0, and the only
 * further tensors are vectors along the output's last dimension: c0, c1, ...
 */
bool target_emit(const struct prompt *prompt, const struct graph *graph,
                 const struct graph_node *core, struct target *target);

/* Whether a function of the graph language is elementwise and known. */
bool target_is_function(struct llm_span name);

/* Sets the reason and returns false. */
bool target_refuse(struct target *target, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The tensor of that name, or NULL. */
const struct prompt_tensor *target_tensor(const struct prompt *prompt, struct llm_span name);

/* Writes dims [from, to) of a tensor as one factor of a product; "1" for none. */
void target_put_product(struct llm_text *text, const struct prompt_tensor *tensor, uint32_t from,
                        uint32_t to);

#endif
