/*
 * What `show` and `export` know of a run: read from its journal alone, also while it is running.
 * Only what a table needs is kept; sources and verdicts are read again by their keys.
 */
#ifndef CLI_SHOW_DATA_H
#define CLI_SHOW_DATA_H

#include "journal/journal.h"
#include <rung/bundle.h>

struct show_variant {
    const char *key;      /* of its record */
    const char *occasion; /* "": always; "best", "final": rungs that ran later */
    const char *point, *verdict, *code, *time_kind;
    double time_ns; /* 0: none */
    bool refused;   /* by a rung that ran later */
    struct show_variant *next;
};

struct show_candidate {
    uint32_t number, idea, attempts;
    uint32_t parents[4], n_parents;
    bool repair, accepted;
    const char *note, *code, *point, *time_kind;
    double time_ns;                  /* of the best accepted variant; 0 none */
    const char *source_key;          /* of the record with its code; NULL: no reply held any */
    const struct show_variant *told; /* best accepted variant, else the last; NULL: none */
    struct show_variant *variants, **last; /* of all attempts, in order */
};

struct show_idea {
    uint32_t parent, round;
    const char *sentence, *category;
};

struct show_run {
    struct rung_journal *journal;
    struct rung_arena *arena;
    const char *task, *stop; /* stop NULL: still running, or cut */
    struct show_idea *ideas; /* [0] is idea 1 */
    uint32_t n_ideas, cap_ideas;
    struct show_candidate **candidates; /* [0] is candidate 1 */
    uint32_t n_candidates, cap_candidates;
    uint64_t replies;
    uint32_t winner;   /* as the last summary names it; 0: none yet */
    const char *final; /* the winner timed again, of the last summary, as JSON; NULL: none */
};

/* Everything is in the arena; the journal stays the caller's and must outlive the run. */
int32_t show_load(struct rung_journal *journal, struct rung_arena *arena, struct show_run *out,
                  struct rung_error *err);
/* By number, or NULL. */
const struct show_candidate *show_candidate(const struct show_run *run, const char *number);
const char *show_sentence(const struct show_run *run, uint32_t idea);
/* A candidate's code; RUNG_ENOTFOUND when no reply held any. Memory of the run's arena. */
int32_t show_bundle(const struct show_run *run, const struct show_candidate *c,
                    const struct rung_bundle **out, struct rung_error *err);
/* The record of a variant's verdict, which the caller deletes, or NULL. */
cJSON *show_verdict(const struct show_run *run, const struct show_variant *v);

#endif
