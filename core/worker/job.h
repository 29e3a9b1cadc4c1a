/*
 * What crosses between orchestrator, supervisor and executor: hello, set-up, jobs, progress,
 * results, blobs. One JSON object a line, at most RUNG_LINE_MAX bytes. docs/worker-protocol.md
 * describes it.
 */
#ifndef WORKER_JOB_H
#define WORKER_JOB_H

#include "config/config.h"
#include "plugin/registry.h"
#include "task/plan.h"
#include <rung/search.h>
#include <rung/timer.h>
#include <rung/verifier.h>

enum { RUNG_LINE_MAX = 1 << 20, RUNG_PROTOCOL = 1 };

enum rung_job_stage {
    RUNG_STAGE_COMPILE = 1u << 0, /* always */
    RUNG_STAGE_CHECK = 1u << 1,
    RUNG_STAGE_TIME = 1u << 2,
    /* After timing: turns with the baselines and the rival, where times are measured. */
    RUNG_STAGE_BASELINES = 1u << 3,
};

struct rung_job {
    const char *label; /* "candidate 12, TPB=128": names the culprit in messages */
    const struct rung_bundle *bundle;
    const char *point; /* tune point text; NULL: the first that the plan allows */
    uint32_t stages;   /* rung_job_stage */
    /* Plugin of the device that must judge it, by the rungs that name it; NULL: the pool's own. */
    const char *device;
    uint32_t occasions; /* 1 << rung_when for each kind of rung that runs; 0: RUNG_WHEN_ALWAYS */
    bool fresh;         /* in an executor that has judged nothing before */
    double delta;       /* 0: the pipeline's timing.delta */
    /* BASELINES: another accepted kernel that takes turns with this one; NULL: none. */
    const struct rung_bundle *rival;
    const char *rival_label, *rival_point;
};

/* One stored artifact of a job (PTX, CUBIN, log, or what a plugin put). */
struct rung_stored {
    const char *name; /* "kernel.ptx", "kernel.cubin" */
    char sha256[RUNG_SHA256_HEX];
    uint64_t bytes;
};

enum rung_outcome_verdict {
    RUNG_ACCEPTED = 1,
    RUNG_REJECTED = 2,
    RUNG_NOT_SUPPORTED = 3, /* device.unsupported, device.memory: never "wrong" */
    RUNG_INCONCLUSIVE = 4,  /* internal, device.lost: may be tried again */
};

/* Result of a job; everything in the caller's arena but report. */
struct rung_outcome {
    uint32_t verdict;       /* rung_outcome_verdict */
    char code[32];          /* "" when accepted */
    const char *message;    /* for the model: compile log or the failing rung's detail */
    const char *point;      /* the tune point judged */
    uint64_t n_points;      /* in the plan */
    uint32_t time_kind;     /* rung_time_kind; 0: no time */
    double time_ns;         /* weighted over the bench shapes */
    double low_ns, high_ns; /* 95 % interval of a measured time; 0, 0: none */
    double tie_band;        /* 0 for measured times */
    double floor_ns;        /* physical floor; 0 not known */
    const char *advice;     /* the timer's words for the model, or "" */
    const struct rung_stored *stored;
    uint32_t n_stored;
    cJSON *report; /* the object of `rung eval --json` (DESIGN section 12); the caller deletes it */
};

#endif
