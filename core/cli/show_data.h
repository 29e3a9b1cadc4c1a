/* What `show` and `export` know of a run: read from its journal alone, also while it is running. */
#ifndef CLI_SHOW_DATA_H
#define CLI_SHOW_DATA_H

#include "journal/journal.h"

struct show_variant {
    const char *point, *verdict, *code, *message, *time_kind;
    double time_ns; /* 0: none */
    const char *stored_sha[8], *stored_name[8];
    size_t n_stored;
    struct show_variant *next;
};

struct show_candidate {
    uint32_t number, idea, attempts;
    uint32_t parents[4], n_parents;
    bool repair, accepted;
    const char *note, *code, *message, *point, *time_kind;
    double time_ns;                /* of the best accepted variant; 0 none */
    char *bundle;                  /* JSON text; NULL when no reply held one */
    struct show_variant *variants; /* of all attempts, in order */
};

struct show_idea {
    uint32_t parent, round;
    const char *sentence, *category;
};

struct show_run {
    struct rung_arena *arena;
    const char *task, *stop; /* stop NULL: still running, or cut */
    struct show_idea *ideas; /* [0] is idea 1 */
    uint32_t n_ideas, cap_ideas;
    struct show_candidate *candidates; /* [0] is candidate 1 */
    uint32_t n_candidates, cap_candidates;
    uint64_t replies;
};

/* Everything is in the arena. */
int32_t show_load(struct rung_journal *journal, struct rung_arena *arena, struct show_run *out,
                  struct rung_error *err);
/* By number, or NULL. */
const struct show_candidate *show_candidate(const struct show_run *run, const char *number);
const char *show_sentence(const struct show_run *run, uint32_t idea);

#endif
