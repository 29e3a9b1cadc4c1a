/*
 * Parts of `rung worker`. The supervisor is one thread around one poll: lines between the
 * orchestrator (descriptors moved from 0 and 1) and its executor, deadlines, heartbeats, the log
 * pipe.
 */
#ifndef WORKER_SUPERVISOR_H
#define WORKER_SUPERVISOR_H

#include "worker/flight.h"
#include "worker/line.h"
#include "worker/spawn.h"

enum rung_executor_state {
    RUNG_EXECUTOR_NONE,     /* no set-up yet */
    RUNG_EXECUTOR_STARTING, /* has the set-up, has not answered */
    RUNG_EXECUTOR_READY,
    RUNG_EXECUTOR_ENDING, /* killed or dying; not reaped */
};

struct rung_executor_side {
    enum rung_executor_state state;
    struct rung_executor_pipes pipes;
    struct rung_line_in in;
    struct rung_line_out out;
    uint64_t deadline_ns; /* 0: none */
    uint64_t ending_ns;   /* since when it is ENDING */
    bool was_ready;
    bool planned; /* its end says nothing: we ended it, or it said that it would */
    bool reaped;
    bool served; /* it has answered a job */
    int status;  /* of waitpid, once reaped */
};

/* What the executor prints on descriptors 1 and 2, on its way to log lines. */
struct rung_log_tap {
    struct rung_buf line;
    uint64_t sent, dropped; /* bytes, of the current job */
    char step[512];         /* what the executor's set-up does, in its own words */
};

/* How an executor that sets itself up tells, on its log, which plugin it is at. */
#define RUNG_STEP_PREFIX "rung: set-up: "

struct rung_supervisor {
    struct rung_line_in in;
    struct rung_line_out out;
    struct rung_executor_side executor;
    struct rung_flight flight;
    struct rung_log_tap tap;
    struct rung_buf pending; /* lines for the executor that is about to start */
    char *setup;             /* the line, for every executor */
    cJSON *setup_json;
    double start_s, silence_s;
    bool announced;       /* "ready" went out */
    unsigned idle_deaths; /* in a row, without a result between them */
    uint64_t heard_ns, beat_ns;
    bool leaving;
    int exit_status;
};

/* supervisor.c: lines to the orchestrator. `line` is freed. */
void rung_supervisor_say(struct rung_supervisor *s, char *line);
/* Says "refused" and ends the loop. */
void rung_supervisor_refuse(struct rung_supervisor *s, int32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* supervise.c: the executor's life. */
void rung_executor_launch(struct rung_supervisor *s);
/* Kills the process group; the state is ENDING from now on. */
void rung_executor_kill(struct rung_supervisor *s);
/* Ends an executor that has judged something, between jobs; the next lines wait for a new one. */
void rung_executor_renew(struct rung_supervisor *s);
/* Reads the executor's lines and acts on them. */
void rung_executor_listen(struct rung_supervisor *s);
/* Enforces the deadline, reaps, writes the result of a crash, starts another. */
void rung_executor_attend(struct rung_supervisor *s, uint64_t now);
/* Sends a line to the executor, or keeps it for the next one. */
void rung_executor_pass(struct rung_supervisor *s, const char *line, size_t n);
/* Collects whatever children have ended, orphans of the executor too. */
void rung_executor_reap(struct rung_supervisor *s);

/* tap.c */
void rung_tap_read(struct rung_supervisor *s);
/* Reports what was dropped and starts counting anew. */
void rung_tap_new_job(struct rung_supervisor *s);

#endif
