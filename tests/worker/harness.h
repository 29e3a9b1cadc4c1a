/*
 * A pool over the fake plugins and the stand-in executable, for the tests of the worker. One
 * thread, but for the counters that the pool's callbacks touch.
 */
#ifndef WORKER_HARNESS_H
#define WORKER_HARNESS_H

#include "support/support.h"

#include "base/io.h"
#include "base/log.h"
#include "base/status.h"
#include "worker/message.h"
#include "worker/pool.h"
#include <stdatomic.h>
#include <sys/types.h>

/* Under a sanitizer memory is kept from reuse, so that its growth says nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HARNESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HARNESS_SANITIZED 1
#endif
#endif
#ifndef HARNESS_SANITIZED
#define HARNESS_SANITIZED 0
#endif

struct harness {
    struct rung_arena *arena; /* reset by nobody: lives as long as the harness */
    struct rung_registry *registry;
    struct rung_pipeline pipeline;
    struct rung_stage devices[2], timers[2], rungs[3], references[1];
    struct rung_worker_spec workers[2];
    struct rung_stage baselines[4];
    const char *const *wishes; /* baselines that the task names */
    char last_json[1 << 20];   /* the last samples.json */
    const char *dirs[2];
    const struct rung_task *task;
    const struct rung_node *task_node;
    struct rung_pool *pool;
    _Atomic unsigned stored, stored_bytes;
    _Atomic unsigned marked; /* times that the rung "marker" was entered */
    char progress[4096];     /* every text, separated by | */
};

extern const char *const harness_main;    /* the stand-in executable */
extern const char *const harness_plugins; /* the folder of the fake plugins */

/* Set up but not started: one worker, rungs "first" (passes), "marker", "elsewhere" (on cuda). */
struct harness *harness_new(void);
/* The same with another "graph" of the task's reference. */
struct harness *harness_with_graph(const char *graph);
/* The same on a device with a clock, whose timer is "clock"; limits are short. */
struct harness *harness_with_clock(void);
/* Adds a baseline of the plugin "fake" under a name; settings: JSON of its group. */
void harness_add_baseline(struct harness *h, const char *name, const char *settings);
/* Judges a job of one's own; the rest as harness_judge. */
struct rung_outcome harness_run(struct harness *h, const struct rung_job *job);
/* Starts the pool, which must succeed. */
void harness_start(struct harness *h);
void harness_free(struct harness *h);
/* A bundle whose source holds "marker: WORD" for each word of a comma-separated list. */
const struct rung_bundle *harness_bundle(struct rung_arena *arena, const char *markers);
/* Judges it in all stages; the outcome lives in h->arena, its report until harness_free. */
struct rung_outcome harness_judge(struct harness *h, const char *markers);
/* Fails unless verdict and code are these. */
void harness_expect(const struct rung_outcome *outcome, uint32_t verdict, const char *code);
/* The entry of the report's rungs. */
const cJSON *harness_rung(const struct rung_outcome *outcome, int index);
/* Children of a process, and its open descriptors, by /proc. */
size_t harness_children(pid_t pid, pid_t *out, size_t max);
size_t harness_descriptors(pid_t pid);
/* Whether the process is gone within this many seconds; zombies count as gone. */
bool harness_gone(pid_t pid, double seconds);
double harness_now(void);

#endif
