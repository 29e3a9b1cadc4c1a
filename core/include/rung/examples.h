/*
 * rung/examples.h - kernels that show a model how a candidate looks. Runs in the orchestrator.
 */
#ifndef RUNG_EXAMPLES_H
#define RUNG_EXAMPLES_H

#include <rung/task.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rung_example {
    uint32_t struct_size;
    uint32_t same_task;      /* 1: computes the task itself; 0: something like it */
    double score;            /* 0..1, how near the example's task is to the asked one */
    const char *title;       /* one line: "row softmax, a warp a row" */
    struct rung_text source; /* a whole candidate, plan lines included */
};

struct rung_examples_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [worker] At most `max` examples, the best first, in call->arena. None is an answer: RUNG_OK
     * with *n = 0.
     */
    int32_t (*examples)(void *self, struct rung_call *, const struct rung_task *, uint32_t max,
                        const struct rung_example **out, uint32_t *n);
};

#ifdef __cplusplus
}
#endif
#endif
