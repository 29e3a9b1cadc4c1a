/*
 * Task files (DESIGN section 7) to struct rung_task, and everything that follows from a task and a
 * dims vector. Pure; results in the caller's arena.
 */
#ifndef TASK_TASK_H
#define TASK_TASK_H

#include "base/diag.h"
#include "task/expr.h"
#include <rung/task.h>

/*
 * Reads a task from its settings tree; every fault goes to diags with file and line. NULL when
 * there was one. Checked here: names, types, roles, shapes that evaluate at the default and all
 * listed dims, constraints, at least one output, n_dims <= 64, tensors <= 64, elements < 2^40 a
 * tensor. The graph itself is the reference plugin's to check.
 */
const struct rung_task *rung_task_read(struct rung_arena *arena, const struct rung_node *root,
                                       struct rung_diags *diags);

/* Kinds of fill that a task may name, as rung/session.h documents them. NULL-terminated. */
extern const char *const rung_task_fill_kinds[];

/* Number of the dim or tensor or parameter of that name, or -1. */
int rung_task_dim(const struct rung_task *task, const char *name);
int rung_task_tensor(const struct rung_task *task, const char *name);
int rung_task_param(const struct rung_task *task, const char *name);

/*
 * Fills derived dims and checks constraints. RUNG_EINVAL with a message that names the dim.
 */
int32_t rung_task_complete(const struct rung_task *task, int64_t *dims, struct rung_error *err);
/* The same for dim i alone; the dims before it must be complete. */
int32_t rung_task_complete_dim(const struct rung_task *task, uint32_t i, int64_t *dims,
                               struct rung_error *err);
/* Shape of a tensor at complete dims; shape[RUNG_MAX_DIMS]. RUNG_EINVAL for sizes < 0 or > 2^40. */
int32_t rung_task_shape(const struct rung_task *task, uint32_t tensor, const int64_t *dims,
                        int64_t *shape, struct rung_error *err);
/* Elements of a shape. */
int64_t rung_shape_elements(const int64_t *shape, uint32_t n_dims);
/*
 * Names of an expression: the task's first n_dims dims, with the values in dims, and, when params
 * is true, its parameters. scope->ctx is *values; both are borrowed.
 */
struct rung_task_values {
    const struct rung_task *task;
    const int64_t *dims;
    uint32_t n_dims;
    bool params;
};
struct rung_scope rung_task_scope(const struct rung_task_values *values);
/* Sum of all tensors' elements at dims: what a check costs, roughly. -1 when the dims are wrong. */
int64_t rung_task_elements(const struct rung_task *task, const int64_t *dims);
/* "rows=7 cols=1000" in the arena. */
char *rung_task_dims_text(struct rung_arena *arena, const struct rung_task *task,
                          const int64_t *dims);
/* One bench case as the task's weights say; sum of weights. */
double rung_task_weight_sum(const struct rung_task *task);
/* Contract for prompts: dims with constraints, tensors "x: input f32 [rows, cols]", params, graph
 * line. */
char *rung_task_contract(struct rung_arena *arena, const struct rung_task *task);

#endif
