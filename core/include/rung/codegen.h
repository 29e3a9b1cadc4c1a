/*
 * rung/codegen.h - a candidate language: what the model is told to write, and how its reply is
 * read. Pure: no files, no processes, no network. Runs in the orchestrator.
 */
#ifndef RUNG_CODEGEN_H
#define RUNG_CODEGEN_H

#include <rung/bundle.h>
#include <rung/task.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rung_reply_flag {
    /* The conversation asked for plan lines only: they are joined to the code of `base`. */
    RUNG_REPLY_PLAN_ONLY = 1u << 0,
};

struct rung_reply_request {
    uint32_t struct_size;
    uint32_t flags; /* rung_reply_flag */
    const struct rung_task *task;
    struct rung_text reply; /* markdown, hostile */
    /* The candidate that this one changes; its plan is inherited where the kernels' signatures
     * stayed and the reply has no plan. NULL: none. */
    const struct rung_bundle *parent;
    const struct rung_bundle *base; /* code without a plan from an earlier reply; NULL: none */
};

/*
 * code is "" on success, else reply.none, reply.truncated, reply.refused or plan.error. With
 * plan.error, bundle may hold code whose launch stayed unclear: a cheap repair then asks for plan
 * lines only, and gives it back as `base`.
 */
struct rung_reply_result {
    uint32_t struct_size;
    uint32_t reserved;
    char code[32];
    struct rung_text message; /* for the model: what is wrong and what to send instead */
    struct rung_text note; /* what the reader did ("took the second of 2 blocks"); may be empty */
    const struct rung_bundle *bundle; /* NULL unless code is "" or plan.error */
    const struct rung_plan *plan;     /* NULL unless code is ""; the plan that the bundle carries */
};

struct rung_codegen_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /* [worker] The candidate contract for this task: how to write the code and the plan lines. */
    int32_t (*contract)(void *self, struct rung_call *, const struct rung_task *,
                        struct rung_text *out);
    /* [worker] From a reply to a bundle. A bad reply is a result. */
    int32_t (*read_reply)(void *self, struct rung_call *, const struct rung_reply_request *,
                          struct rung_reply_result *out);
    /* [worker] From a file of the user (`rung eval`): path is only for messages and file names. */
    int32_t (*read_source)(void *self, struct rung_call *, const struct rung_task *,
                           const char *path, struct rung_text source,
                           struct rung_reply_result *out);
};

#ifdef __cplusplus
}
#endif
#endif
