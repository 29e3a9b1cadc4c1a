/*
 * The job that an executor has in hand, as its supervisor sees it: enough to name the culprit and
 * to write the result when the executor can't. One thread.
 */
#ifndef WORKER_FLIGHT_H
#define WORKER_FLIGHT_H

#include "worker/message.h"

struct rung_flight {
    bool active;
    uint64_t id;
    char label[256];
    struct rung_stage_message stage; /* the last that was announced; kind 0: none */
    cJSON *rungs;                    /* entries of the report so far */
    cJSON *draft;                    /* the result if a guest ends the executor; NULL: none */
};

/* false when the message is no job. */
bool rung_flight_begin(struct rung_flight *flight, const cJSON *job);
/* Keeps what the executor said; false when it is not of this job. */
bool rung_flight_stage(struct rung_flight *flight, const cJSON *message);
bool rung_flight_rung(struct rung_flight *flight, const cJSON *message);
bool rung_flight_draft(struct rung_flight *flight, const cJSON *message);
/* The guest whose turn it is, while the candidate's result is safe; NULL: it is the candidate's. */
const char *rung_flight_guest(const struct rung_flight *flight);
void rung_flight_end(struct rung_flight *flight);

/*
 * Results, as lines on the heap; each ends the flight. names: the set-up's rungs (array of objects
 * with "name"), for those that were never reached.
 */
char *rung_flight_timed_out(struct rung_flight *flight, const cJSON *names);
/* status: of waitpid. A signal that came from outside (SIGKILL) says nothing of the candidate. */
char *rung_flight_crashed(struct rung_flight *flight, const cJSON *names, int status);
/* The draft, with why the guest has no place in it; ends the flight as well. */
char *rung_flight_spared(struct rung_flight *flight, const char *why);
char *rung_flight_broken(struct rung_flight *flight, const cJSON *names, const char *why);

#endif
