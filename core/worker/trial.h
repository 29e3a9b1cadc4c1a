/*
 * One job on its way through an executor. Everything lives in the trial's arena, which is freed
 * when the result has gone out; the JSON parts are taken over by the result. One thread.
 */
#ifndef WORKER_TRIAL_H
#define WORKER_TRIAL_H

#include "worker/executor.h"
#include "worker/report.h"

/*
 * The session's table with run() watched: the supervisor learns at which case the kernel runs, and
 * faults that cost the device are noticed whoever called.
 */
struct rung_watch {
    struct rung_session table; /* first: what plugins get */
    const struct rung_session *inner;
    struct rung_trial *trial;
    bool announce; /* tell the supervisor of every run */
};

struct rung_shape_time;
struct rung_track;
struct rung_race;

struct rung_trial {
    struct rung_executor *ex;
    struct rung_arena *arena;
    uint64_t id;
    const char *label;
    /* NULL: the candidate's own trial. Else it only takes turns with another, under this name, and
     * what becomes of it is not that other's verdict. */
    const char *guest;
    struct rung_trial *rival; /* a guest; NULL: none */
    double delta;             /* 0: the set-up's */
    uint32_t stages, occasions;
    bool named;                       /* only rungs that name this device run */
    const char *asked_point;          /* NULL: the first allowed */
    const struct rung_bundle *bundle; /* NULL: it can't be read; bundle_problem says why */
    const char *bundle_problem;
    char bundle_sha256[RUNG_SHA256_HEX];
    const struct rung_plan *plan;
    struct rung_point point;
    const char *const *expressions;
    uint32_t n_expressions;
    const char *const *symbols; /* that the plan fills */
    uint32_t n_symbols;
    struct rung_compile_result compiled;
    bool cached;
    struct rung_open_session *session;
    struct rung_watch watch;
    struct rung_stage_message stage; /* as announced last */
    uint64_t deadline_ns;            /* of that stage */
    bool sticky;                     /* the device is lost to this process */
    uint32_t shared_bytes;           /* largest of a launch seen so far */
    struct rung_track **tracks;      /* one a bench shape; NULL: not timed */
    struct rung_shape_time *times;   /* the same */
    struct rung_text advice;         /* of the timer; ptr NULL: not timed */
    const struct rung_race *race;    /* NULL: nobody took turns */
    /* The result so far. */
    uint32_t verdict;
    char code[32];
    struct rung_text message;
    cJSON *rungs, *time, *score, *stored, *baselines, *turned;
};

/* Carries out the whole job and sends its result; the trial's session and JSON are gone then. */
void rung_trial_run(struct rung_trial *trial);

/*
 * Notes a finding. A rejection beats everything but an earlier one; else the first that is not an
 * acceptance stands. code must be a stable code; text is copied.
 */
void rung_trial_settle(struct rung_trial *trial, const char *code, struct rung_text text);
/* The same, formatted. */
void rung_trial_settlef(struct rung_trial *trial, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Announces a stage to the supervisor and sets the deadline. */
void rung_trial_enter(struct rung_trial *trial, uint32_t kind, const char *stage, const char *text,
                      double limit_s);
/* The same for what is not the candidate's doing: a guest's name, and what it does. */
void rung_trial_enter_guest(struct rung_trial *trial, const char *name, const char *text,
                            double limit_s);
/* Reads the plan, compiles, opens a session: all that a kernel needs to run. false: settled. */
bool rung_trial_load(struct rung_trial *trial);
/* Tells the supervisor what the result is if a guest takes this process down. */
void rung_trial_draft(struct rung_trial *trial);
/* Announces where inside the stage the kernel runs. */
void rung_trial_at(struct rung_trial *trial, const char *where);
/* A call with the trial's arena and the stage's deadline. err is cleared. */
struct rung_call rung_trial_call(struct rung_trial *trial, struct rung_error *err);
/* A stable code from a plugin's field, or NULL when it is no code. */
const char *rung_trial_code(struct rung_trial *trial, const char code[32]);

/* compile.c: fills compiled, or settles. */
bool rung_trial_compile(struct rung_trial *trial);
extern const struct rung_host_compile rung_compile_table;
void rung_cache_clear(struct rung_executor *ex);
/* resources.c */
cJSON *rung_trial_compile_report(const struct rung_trial *trial);
cJSON *rung_trial_resources(const struct rung_trial *trial);
/* watch.c: the watched table of the trial's session; and of another session, in *watch. */
const struct rung_session *rung_trial_watch(struct rung_trial *trial, bool announce);
const struct rung_session *rung_watch_init(struct rung_watch *watch, struct rung_trial *trial,
                                           const struct rung_session *inner, bool announce);
/* check.c: every rung. */
void rung_trial_check(struct rung_trial *trial);
/* timing.c */
void rung_trial_time(struct rung_trial *trial);
/* race.c: turns with the baselines and the rival; what came of it is in baselines and turned. */
void rung_trial_race(struct rung_trial *trial);

#endif
