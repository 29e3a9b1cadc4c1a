/*
 * Filling a kernel's placeholders for a task. Pure.
 *
 *   {{name}}             what a tensor, dimension or attribute of the form stands for (match.h)
 *   {{UNROLL}}           one of the header's unroll values
 *
 * Elementwise chains:
 *   {{n}}                the number of elements
 *   {{ARGS}}             tensors and parameters for args=()
 *   {{POINTERS}}         the same as kernel parameters
 *   {{at:I}}             the result at element I
 *   {{load4:I}}          the I-th four of each input
 *   {{at4:x}}            the result at component x of these
 * Forms with `chain`:
 *   {{MORE_ARGS}}        ", bias, scale": what the chain needs besides, for args=()
 *   {{MORE_POINTERS}}    ", const float *__restrict__ col0, float s0": the same as parameters
 *   {{finish:V|C}}       the result of value V in column C
 * Both:
 *   {{VALUES}}           one element of each as function parameters
 *   {{HELPERS}} {{LETS}} {{EXPR}}   the chain
 */
#ifndef LLM_CATALOG_RENDER_H
#define LLM_CATALOG_RENDER_H

#include "store.h"
#include "target.h"

/* A deliberate fault, to exercise repair. */
enum mistake { MISTAKE_NONE, MISTAKE_SEMICOLON, MISTAKE_GUARD, MISTAKE_TAIL };

/* Whether every placeholder of a body is known, with the names of a form; else *line (1-based) and
 * the problem. */
bool render_check(struct llm_span body, const struct match *names, char *problem, size_t size,
                  uint32_t *line);

/*
 * A whole candidate: mark line, idea, plan lines, code. variant turns the values of each tune line
 * round and picks the unroll value. A mistake that the kernel has no place for becomes a missing
 * semicolon.
 */
void render_kernel(const struct kernel *kernel, const struct target *target, uint32_t variant,
                   enum mistake mistake, struct llm_text *out);

#endif
