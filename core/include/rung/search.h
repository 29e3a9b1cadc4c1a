/*
 * rung/search.h - a search policy: sees what happened, says what to do next. It holds no truth of
 * its own: history comes from the getters, so that the same journal gives the same actions.
 *
 * The engine calls decide() at barriers: at the start, then whenever all actions of the last
 * decision have finished. Events are ordered by candidate, whatever finished first.
 */
#ifndef RUNG_SEARCH_H
#define RUNG_SEARCH_H

#include <rung/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUNG_MAX_PARENTS 4

enum rung_event_kind {
    RUNG_EVENT_START = 1,
    RUNG_EVENT_IDEA = 2,      /* a new idea is there */
    RUNG_EVENT_CANDIDATE = 3, /* a candidate has its verdict */
    RUNG_EVENT_TUNED = 4,     /* a tune point of a candidate has its verdict */
    RUNG_EVENT_STEER = 5,     /* a person spoke: text */
    RUNG_EVENT_FAILED = 6,    /* an action could not be carried out: text says why */
};

struct rung_event {
    uint32_t struct_size;
    uint32_t kind;    /* rung_event_kind */
    uint64_t seq;     /* journal sequence number */
    uint32_t subject; /* idea or candidate number; 0 none */
    uint32_t reserved;
    const char *text;
};

/* One idea. Numbers start at 1. Texts live as long as the decide() call. */
struct rung_idea {
    uint32_t struct_size;
    uint32_t number;
    uint32_t parent; /* candidate that it wants to change; 0: from nothing */
    uint32_t round;  /* decide() count when it came */
    const char *sentence;
    const char *category; /* "memory", "parallelism", ... one word */
};

enum rung_candidate_state {
    RUNG_CANDIDATE_ACCEPTED = 1,
    RUNG_CANDIDATE_REJECTED = 2,
    RUNG_CANDIDATE_UNSUPPORTED = 3, /* not judged: device.unsupported, device.memory, internal */
};

struct rung_candidate {
    uint32_t struct_size;
    uint32_t number;
    uint32_t idea;
    uint32_t round;
    uint32_t n_parents;
    uint32_t state; /* rung_candidate_state */
    uint32_t parents[RUNG_MAX_PARENTS];
    char code[32];           /* "" when accepted */
    uint32_t time_kind;      /* rung_time_kind; 0: no time */
    uint32_t repairs;        /* replies beyond the first that it took to compile */
    double time_ns;          /* best variant, weighted over bench shapes */
    double tie_band;         /* times within a factor 1 + tie_band are ties; 0 exact */
    uint32_t n_points;       /* tune points in all */
    uint32_t n_tried;        /* tune points judged */
    const char *source_hash; /* sha-256 hex of the entry file */
};

enum rung_action_kind {
    RUNG_ACTION_IDEAS = 1,     /* ask for `count` ideas from parents[] */
    RUNG_ACTION_IMPLEMENT = 2, /* `count` candidates of `idea` from parents[] */
    RUNG_ACTION_REPAIR = 3,    /* a new candidate from parents[0], which failed a check */
    RUNG_ACTION_TUNE = 4,      /* `count` further tune points of parents[0] */
    RUNG_ACTION_STOP = 5,      /* note says why */
};

/*
 * idea 0 in IMPLEMENT stands for the first kernel: a plain, right one. count must be 1..64 for the
 * first four kinds. avoid: categories not to repeat, comma-separated, or NULL. note: text added to
 * the prompt (it never replaces the contract), or the reason of STOP.
 */
struct rung_action {
    uint32_t struct_size;
    uint32_t kind; /* rung_action_kind */
    uint32_t count;
    uint32_t idea;
    uint32_t n_parents;
    uint32_t reserved;
    uint32_t parents[RUNG_MAX_PARENTS];
    const char *role; /* "ideas", "code", "repair"; NULL: the kind's own */
    const char *avoid;
    const char *note;
    const char *tune_point; /* TUNE: "TPB=128 ROWS=2" for one point, else NULL: the engine picks */
};

/* The past, for one decide() call. Getters return NULL past the end. [main] */
struct rung_history {
    uint32_t struct_size;
    uint32_t decisions; /* decide() calls before this one */
    uint32_t n_ideas, n_candidates;
    uint64_t seed;
    double floor_ns; /* physical floor of the task; 0 not known */
    void *ctx;
    const struct rung_idea *(*idea)(const struct rung_history *, uint32_t number);
    const struct rung_candidate *(*candidate)(const struct rung_history *, uint32_t number);
    /* Share of the budget used so far, 0..1; the largest over the limits of the pipeline. */
    double (*budget_used)(const struct rung_history *);
};

struct rung_search_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [main, started] Actions in call->arena. No action and no STOP is a breach (RUNG_EMISUSE by
     * the host). The same events and history must give the same actions.
     */
    int32_t (*decide)(void *self, struct rung_call *, const struct rung_history *,
                      const struct rung_event *events, uint32_t n_events,
                      const struct rung_action **actions, uint32_t *n_actions);
};

#ifdef __cplusplus
}
#endif
#endif
