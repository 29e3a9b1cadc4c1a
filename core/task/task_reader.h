/* What the readers of a task file's parts share; private to core/task. */
#ifndef TASK_TASK_READER_H
#define TASK_TASK_READER_H

#include "task/settings.h"
#include "task/task.h"

enum { MAX_NAMED = 64 };

struct task_reader {
    struct rung_arena *arena;
    struct rung_diags *diags;
    struct rung_task *task;
    struct rung_dim *dims;
    struct rung_param *params;
    struct rung_tensor_spec *tensors;
    int64_t defaults[MAX_NAMED];
    bool broken; /* dims or shapes are faulty: don't evaluate at the listed cases */
};

struct task_word {
    const char *name;
    uint32_t value;
};

/* The value of a text out of a table (closed by a NULL name), or 0 when absent or after a fault. */
uint32_t task_word(struct task_reader *r, const struct rung_node *group, const char *key,
                   const struct task_word *table);
/* Any required child; the fault of an absent one stands at the group. */
bool task_require(struct task_reader *r, const struct rung_node *group, const char *what,
                  const char *key);

/* After dims and tensors. */
void task_read_check(struct task_reader *r, const struct rung_node *root);
void task_read_bench(struct task_reader *r, const struct rung_node *root,
                     struct rung_task_rest *rest);
void task_read_reference(struct task_reader *r, const struct rung_node *root,
                         struct rung_task_rest *rest);

#endif
