/*
 * Names of plan expressions: dims, parameters, tunes and sm_count. Private to the plan files.
 */
#ifndef TASK_PLAN_SCOPE_H
#define TASK_PLAN_SCOPE_H

#include "task/plan.h"

enum plan_names {
    PLAN_DIMS = 1,
    PLAN_PARAMS = 2,
    PLAN_TUNES = 4,
    PLAN_SM_COUNT = 8,
    PLAN_ALL = 15,
};

/* Where values come from; dims and point may be NULL when only types are wanted. */
struct plan_scope {
    const struct rung_task *task;
    const struct rung_tune *tunes;
    uint32_t n_tunes;
    uint32_t names; /* plan_names that may be used */
    const int64_t *dims;
    const struct rung_point *point;
    uint32_t sm_count;
};

struct rung_scope rung_plan_names(const struct plan_scope *scope);
/*
 * Evaluates an integer expression of the plan; absent (NULL text) gives fallback. false with
 * *problem "line N: what" when it fails.
 */
bool rung_plan_integer(struct rung_arena *arena, const struct plan_scope *scope,
                       const struct rung_expr_text *expr, const char *what, int64_t fallback,
                       int64_t *out, const char **problem);
/*
 * Whether a template argument is an expression over known names. Everything else, such as `float`,
 * is text for the compiler.
 */
bool rung_plan_is_value(struct rung_arena *arena, const struct plan_scope *scope, const char *text);
/* "name<256, float>" of a launch; template arguments are evaluated in scope. NULL with *problem. */
const char *rung_plan_expression(struct rung_arena *arena, const struct plan_scope *scope,
                                 const struct rung_step *step, const char **problem);
/*
 * A tensor map of a target of n elements of dtype, gaps included; layout: a tensor's, NULL for a
 * temp. All of *out but its index. false with *problem when an expression fails or the map reaches
 * beyond the target. (plan_map.c)
 */
bool rung_plan_resolve_map(struct rung_arena *arena, const struct plan_scope *scope,
                           const struct rung_tensormap_spec *spec, uint32_t dtype,
                           const struct rung_layout *layout, int64_t n,
                           struct rung_resolved_map *out, const char **problem);

#endif
