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
 * there was one. Checked here: names, types, roles, shapes and strides that hold at the default and
 * all listed dims, constraints, at least one output, n_dims <= 64, tensors <= 64, elements < 2^40 a
 * tensor. The graph itself is the reference plugin's to check.
 */
const struct rung_task *rung_task_read(struct rung_arena *arena, const struct rung_node *root,
                                       struct rung_diags *diags);

/* Work that a task file states: a number, or an expression over dims. */
struct rung_task_amount {
    bool given;
    double value;
    const char *expr; /* NULL: value */
};

/* What a task file says that plugins are not shown. Lives with the task's settings tree. */
struct rung_task_rest {
    const char *const *baselines;           /* bench.baselines; NULL-terminated */
    const struct rung_node *baselines_node; /* NULL: none named */
    struct rung_task_amount flops, bytes;   /* in place of the reference's own numbers */
    const struct rung_node *reference;      /* the group: rung_reference_keys and options */
};

/* The same with the rest; texts of *rest are the tree's. */
const struct rung_task *rung_task_read_all(struct rung_arena *arena, const struct rung_node *root,
                                           struct rung_task_rest *rest, struct rung_diags *diags);
struct rung_work;
/*
 * Puts what the task states in place of the reference's numbers, at complete dims; where an
 * expression has no value above 0 there, the reference's stays.
 */
void rung_task_work_at(const struct rung_task *task, const struct rung_task_rest *rest,
                       const int64_t *dims, struct rung_work *work);
/*
 * A stated amount at complete dims, above 0. RUNG_EINVAL with what is wrong with the expression
 * there. Of an amount that is not given: *out stays.
 */
int32_t rung_task_amount_at(const struct rung_task *task, const struct rung_task_amount *amount,
                            const int64_t *dims, double *out, struct rung_error *err);

/* Every key of a task file, and the task's own keys in `reference`. NULL-terminated. */
extern const char *const rung_task_keys[];
extern const char *const rung_reference_keys[];

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
/* Where the elements of a tensor lie, in elements from the first one. */
struct rung_layout {
    int64_t shape[RUNG_MAX_DIMS];
    int64_t strides[RUNG_MAX_DIMS];
    int64_t elements; /* of the shape */
    int64_t extent;   /* from the first element to the last, gaps included; 0 without elements */
};
/*
 * Shape and strides at complete dims. RUNG_EINVAL as rung_task_shape, and for stated strides that
 * are below 1, put two elements in one place or reach beyond 2^40. (task_layout.c)
 */
int32_t rung_task_layout(const struct rung_task *task, uint32_t tensor, const int64_t *dims,
                         struct rung_layout *out, struct rung_error *err);
/* Elements of a shape. */
int64_t rung_shape_elements(const int64_t *shape, uint32_t n_dims);
/* An expression over all dims, at complete dims; what: its name in messages. RUNG_EINVAL. */
int32_t rung_task_integer(const struct rung_task *task, const int64_t *dims, const char *text,
                          const char *what, int64_t *out, struct rung_error *err);
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
/* Contract for prompts: dims with constraints, tensors "x: input f32 [rows, cols]", strides,
 * params, graph line. */
char *rung_task_contract(struct rung_arena *arena, const struct rung_task *task);

#endif
