/* Choosing ideas and kernels; see choose.h. */
#include "choose.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_WORDS = 64, MIN_WORD = 4 /* shorter words say little */ };

struct rank {
    const struct kernel *kernel;
    uint32_t tier; /* lower is better */
    uint64_t order;
};

static bool contains(struct llm_span text, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= text.len; ++i)
        if (strncasecmp(text.ptr + i, part, n) == 0)
            return true;
    return false;
}

static bool was_tried(const struct prompt *prompt, const struct kernel *kernel)
{
    for (uint32_t i = 0; i < prompt->n_tried; ++i)
        if (contains(prompt->tried[i], kernel->idea))
            return true;
    return false;
}

/* Whether a kernel of that stem and of kernel's family is shown in the prompt. */
static bool is_shown(const struct prompt *prompt, const struct kernel *kernel, const char *stem)
{
    for (uint32_t i = 0; i < prompt->n_sources; ++i)
        if (llm_span_is(prompt->sources[i].family, kernel->family) &&
            llm_span_is(prompt->sources[i].stem, stem))
            return true;
    return false;
}

/*
 * 0: improves on a shown kernel. 1: on one that was tried; the first kernel counts as tried,
 * because every search begins with one. 2 and up: on kernels that were not, by how many.
 * UINT32_MAX: not at all, because it is the first kernel and there are others to go on from.
 */
static uint32_t tier_of(const struct store *store, const struct prompt *prompt,
                        const struct kernel *kernel)
{
    if (!kernel->after)
        return prompt->has_parent ? UINT32_MAX : 1;
    if (is_shown(prompt, kernel, kernel->after))
        return 0;
    const struct llm_span family = {kernel->family, strlen(kernel->family)};
    uint32_t tier = 0;
    do {
        const struct llm_span after = {kernel->after, strlen(kernel->after)};
        kernel = store_find(store, family, after); /* store_open saw to it that this ends */
        ++tier;
    } while (kernel->after && !was_tried(prompt, kernel));
    return tier;
}

static int by_rank(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->tier != y->tier)
        return x->tier < y->tier ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return strcmp(x->kernel->stem, y->kernel->stem);
}

uint32_t choose_ideas(const struct store *store, const struct target *target,
                      const struct prompt *prompt, uint64_t seed, uint32_t wanted,
                      const struct kernel *picks[CHOOSE_MAX])
{
    struct rank ranks[STORE_MAX_KERNELS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < store->n && n < sizeof ranks / sizeof *ranks; ++i) {
        const struct kernel *kernel = &store->kernels[i];
        if (!target_has(target, store, kernel) || was_tried(prompt, kernel))
            continue;
        const uint32_t tier = tier_of(store, prompt, kernel);
        if (tier == UINT32_MAX)
            continue;
        const uint64_t hash = llm_hash(LLM_HASH_START ^ seed, kernel->stem, strlen(kernel->stem));
        ranks[n++] = (struct rank){kernel, tier, hash};
    }
    qsort(ranks, n, sizeof *ranks, by_rank);
    if (n > wanted)
        n = wanted;
    for (uint32_t i = 0; i < n; ++i)
        picks[i] = ranks[i].kernel;
    return n;
}

/* Next word of letters, off the front; empty at the end. */
static struct llm_span next_word(struct llm_span *rest)
{
    while (rest->len && !isalnum((unsigned char)rest->ptr[0])) {
        rest->ptr++;
        rest->len--;
    }
    size_t n = 0;
    while (n < rest->len && isalnum((unsigned char)rest->ptr[n]))
        ++n;
    const struct llm_span word = {rest->ptr, n};
    rest->ptr += n;
    rest->len -= n;
    return word;
}

static bool has_word(struct llm_span text, struct llm_span word)
{
    for (struct llm_span w = next_word(&text); w.len; w = next_word(&text))
        if (w.len == word.len && strncasecmp(w.ptr, word.ptr, w.len) == 0)
            return true;
    return false;
}

/* Share in thousandths of the sentence's longer words that stand in the text. */
static uint32_t overlap(const char *sentence, struct llm_span text)
{
    struct llm_span rest = {sentence, strlen(sentence)};
    uint32_t words = 0, shared = 0;
    for (struct llm_span w = next_word(&rest); w.len && words < MAX_WORDS; w = next_word(&rest)) {
        if (w.len < MIN_WORD)
            continue;
        ++words;
        shared += has_word(text, w);
    }
    return words ? shared * 1000 / words : 0;
}

const struct kernel *choose_kernel(const struct store *store, const struct target *target,
                                   struct llm_span idea)
{
    const struct kernel *best = NULL;
    uint32_t best_overlap = 499;
    if (idea.len > 4096)
        idea.len = 4096;
    for (uint32_t i = 0; i < store->n; ++i) {
        const struct kernel *kernel = &store->kernels[i];
        if (!target_has(target, store, kernel))
            continue;
        if (contains(idea, kernel->idea))
            return kernel;
        const uint32_t share = overlap(kernel->idea, idea);
        if (share > best_overlap) {
            best = kernel;
            best_overlap = share;
        }
    }
    return best;
}

uint32_t choose_depth(const struct store *store, const struct kernel *kernel)
{
    const struct llm_span family = {kernel->family, strlen(kernel->family)};
    uint32_t depth = 0;
    for (; kernel->after; ++depth)
        kernel = store_find(store, family, (struct llm_span){kernel->after, strlen(kernel->after)});
    return depth;
}

const struct kernel *choose_first(const struct store *store, const struct target *target)
{
    const struct kernel *first = NULL;
    uint32_t least = 0;
    for (uint32_t i = 0; i < store->n; ++i) {
        const struct kernel *kernel = &store->kernels[i];
        if (!target_has(target, store, kernel))
            continue;
        const uint32_t depth = choose_depth(store, kernel);
        if (!first || depth < least) {
            first = kernel;
            least = depth;
        }
    }
    return first;
}
