/* From a result message (of a worker that nothing is believed of) to struct rung_outcome. */
#ifndef WORKER_OUTCOME_H
#define WORKER_OUTCOME_H

#include "worker/job.h"

/* RUNG_EMISUSE when the message is not a whole result. Takes the report out of it. */
int32_t rung_outcome_read(struct rung_arena *arena, cJSON *message, struct rung_outcome *out,
                          struct rung_error *err);
/* The outcome of a job that no worker could finish: inconclusive, code "internal". */
void rung_outcome_lost(struct rung_arena *arena, const char *message, struct rung_outcome *out);

#endif
