/*
 * The result of a job as a message, with the object that `rung eval --json` prints (DESIGN section
 * 12) inside. Executors write it; supervisors write it for an executor that is no more. Pure; any
 * thread.
 */
#ifndef WORKER_REPORT_H
#define WORKER_REPORT_H

#include "base/json.h"

enum { RUNG_REPORT_TEXT = 16 << 10 }; /* most bytes of one text */

/* "accepted", "rejected", "unsupported", "inconclusive"; and back, 0 when it is none. */
const char *rung_verdict_name(uint32_t verdict);
uint32_t rung_verdict_of_name(const char *name);
/*
 * What a code says of a candidate: device.unsupported and device.memory are never "wrong"; internal
 * and device.lost may be tried again; every other code rejects. "" accepts.
 */
uint32_t rung_verdict_of_code(const char *code);
/* Name of a rung_verdict_status, or NULL. */
const char *rung_rung_status_name(uint32_t status);

/* Adds text, cut in its middle to about `limit` bytes, with the number of bytes cut in the gap. */
void rung_json_add_cut(cJSON *object, const char *name, struct rung_text text, size_t limit);

/* One entry of "rungs". code "" becomes null; metrics (may be NULL) is taken over. */
cJSON *rung_report_rung(const char *name, uint32_t status, const char *code,
                        struct rung_text detail, cJSON *metrics);

/* Everything of a result. The JSON parts may be NULL and are taken over by rung_result_line. */
struct rung_result {
    uint64_t id;
    uint32_t verdict;
    const char *code;
    struct rung_text message;
    const char *point;
    uint64_t points;
    bool last;    /* the executor ends after this one */
    cJSON *rungs; /* array */
    cJSON *time;  /* as printed */
    cJSON *score; /* kind, time_ns, tie_band, floor_ns, advice: for the outcome */
    cJSON *resources;
    cJSON *compile;
    cJSON *device;
    cJSON *stored;    /* array of name, sha256, bytes */
    cJSON *baselines; /* array, as printed */
    cJSON *turned;    /* the rival's turns; in the report only when there were any */
    bool draft;       /* not the result, but what it is if a guest takes the executor down */
};

/* The message as one line on the heap, at most RUNG_LINE_MAX bytes: long texts shrink until it
 * fits. */
char *rung_result_line(struct rung_result *result);

#endif
