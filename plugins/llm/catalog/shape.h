/*
 * The `tensors` and `let` lines of a form: element types and shapes with wildcards (match.h).
 *
 *   tensors: x f32 [rows.., @axis, cols..]; w f32 [cols..]; y f32
 *   let: ta = 0, tb = 1, b = x
 *
 * A tensor without brackets may have any shape. Pure.
 */
#ifndef LLM_CATALOG_SHAPE_H
#define LLM_CATALOG_SHAPE_H

#include "match.h"

/* Whether the line lists a tensor of that name. */
bool shape_lists(const char *tensors, struct llm_span name);

/* Binds the names of all shapes; false when a type or shape is another. The tensors' own names and
 * the attributes are bound already. */
bool shape_match(const char *tensors, const struct prompt *prompt, struct match *match);

/* Binds what a `let` line (or NULL) states. */
bool shape_constants(const char *let, struct match *match);

/* Whether both lines (let may be NULL) are well written; else the problem. */
bool shape_check(const char *tensors, const char *let, char *problem, size_t size);

/* Binds each name to itself. */
void shape_itself(const char *tensors, struct match *match);

#endif
