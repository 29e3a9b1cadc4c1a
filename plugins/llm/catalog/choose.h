/* Which ideas the catalog proposes, and which of its kernels an idea means. Pure, deterministic. */
#ifndef LLM_CATALOG_CHOOSE_H
#define LLM_CATALOG_CHOOSE_H

#include "prompt.h"
#include "store.h"

enum { CHOOSE_MAX = 64 };

/*
 * At most `wanted` (<= CHOOSE_MAX) kernels of the family whose ideas the prompt does not list yet:
 * first those that improve on a kernel shown in the prompt, then those that improve on one that was
 * tried, then those whose predecessors were not tried, nearest first. Within each, seed decides.
 * Returns their number.
 */
uint32_t choose_ideas(const struct store *store, const char *family, const struct prompt *prompt,
                      uint64_t seed, uint32_t wanted, const struct kernel *picks[CHOOSE_MAX]);

/*
 * The kernel that an idea's text means: the one whose sentence it holds, else the one that shares
 * most of its words, when these are at least half of the sentence's; else NULL.
 */
const struct kernel *choose_kernel(const struct store *store, const char *family,
                                   struct llm_span idea);

/* The plain kernel that others start from: the first without `after`. NULL when there is none. */
const struct kernel *choose_first(const struct store *store, const char *family);

#endif
