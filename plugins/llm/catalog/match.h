/*
 * Whether a task is one that a catalog file serves, and what its placeholders then stand for.
 *
 * A form states tasks with wildcards: `y = layernorm(x, w, b, axis=axis, eps=eps)` with the tensors
 * `x f32 [rows.., @axis, cols..]; w f32 [cols..]; ...`. Names that the tensors line lists stand for
 * tensors of the task, other names for an attribute (a number, a dim or a parameter). In a shape,
 * `n` is one dimension, `n..` the product of any number of them, `@axis` the place where dimension
 * number `axis` begins, `#n` a dimension that is a plain number, 3 a dimension of 3. A name that
 * comes twice must be the same text twice. `chain(...)` around it all stands for elementwise
 * functions of the result, or none.
 *
 * Pure; spans of patterns point into the store, of tasks into the request.
 */
#ifndef LLM_CATALOG_MATCH_H
#define LLM_CATALOG_MATCH_H

#include "graph.h"
#include "prompt.h"
#include "store.h"

enum { MATCH_MAX_BINDINGS = 40, MATCH_MAX_TEXT = 320 /* bytes, with its NUL */ };

struct binding {
    char name[32];
    char text[MATCH_MAX_TEXT];
};

struct match {
    struct binding bindings[MATCH_MAX_BINDINGS];
    uint32_t n;
    const struct graph_node *core; /* what stands inside `chain`; NULL: the form has none */
};

/* Whether a form is well written; else the problem. */
bool match_check(const struct form *form, char *problem, size_t size);

/* Whether the task is one of the form's; *out is filled only then. */
bool match_form(const struct form *form, const struct prompt *prompt, const struct graph *task,
                struct match *out);

/* Each name of the form bound to itself (attributes to their standard value or 1), so that a kernel
 * can be shown as an example without a task. */
void match_itself(const struct form *form, struct match *out);

/* Binds a name; false when it stands for another text already, or for want of room. */
bool match_bind(struct match *match, struct llm_span name, struct llm_span text);

/* The text of a name, or NULL. */
const char *match_text(const struct match *match, struct llm_span name);

/* The operator that stands outermost in a form's graph inside any `chain`. */
bool match_operator(const struct form *form, char *name, size_t size);

#endif
