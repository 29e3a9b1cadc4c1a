/* Which ideas the catalog proposes, and which of its kernels an idea means. Pure, deterministic. */
#ifndef LLM_CATALOG_CHOOSE_H
#define LLM_CATALOG_CHOOSE_H

#include "prompt.h"
#include "store.h"
#include "target.h"

enum { CHOOSE_MAX = 64 };

/*
 * At most `wanted` (<= CHOOSE_MAX) kernels that serve the task whose ideas the prompt does not list
 * yet: first those that improve on a kernel shown in the prompt, then those that improve on one
 * that was tried, then those whose predecessors were not tried, nearest first. Within each, seed
 * decides. Returns their number.
 */
uint32_t choose_ideas(const struct store *store, const struct target *target,
                      const struct prompt *prompt, uint64_t seed, uint32_t wanted,
                      const struct kernel *picks[CHOOSE_MAX]);

/*
 * The kernel that an idea's text means: the one whose sentence it holds, else the one that shares
 * most of its words, when these are at least half of the sentence's; else NULL.
 */
const struct kernel *choose_kernel(const struct store *store, const struct target *target,
                                   struct llm_span idea);

/* The plain kernel that others start from: the one with the fewest before it. NULL: none serves. */
const struct kernel *choose_first(const struct store *store, const struct target *target);

/* How many kernels a kernel improves on, one after the other. */
uint32_t choose_depth(const struct store *store, const struct kernel *kernel);

#endif
