/*
 * What the files of the `ops` reference share: tensors of values and bounds, and one evaluation.
 * An evaluation is used by one thread; tensors are counted references in plain heap memory.
 */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "graph.h"
#include "num.h"
#include "parallel.h"

/* A dense row-major result. In a dry evaluation (shapes and work only) v and e are NULL. */
struct ops_tensor {
    uint32_t refs;
    uint32_t n_dims;
    int64_t dims[RUNG_MAX_DIMS];
    uint64_t n;
    double *v;
    double *e; /* NULL: all errors are 0 */
};

/* A name of the graph that has a value now. */
struct ops_binding {
    const char *name;
    struct ops_tensor *value;            /* NULL: an input that was not needed yet */
    const struct rung_tensor_view *view; /* inputs */
    uint32_t tensor;                     /* 1 + index in the task; 0: no task tensor */
    uint32_t last_use;                   /* index of the last statement that reads it */
    struct ops_binding *next;
};

/* One evaluation of a graph at some dims. */
struct ops_eval {
    struct ops_who who;
    const struct rung_task *task;
    const int64_t *dims;
    struct ops_arith arith;
    int dry;
    uint32_t threads;
    double flops; /* of the task, not of the reference; fma 2, elementary function 1 */
    struct ops_binding *bindings;
    struct ops_tensor **outputs; /* one a task tensor; NULL where the graph gave none yet */
};

#define OPS_GRAIN 65536u /* elements that are worth a thread */

/* ---- tensor.c ---- */

/* New tensor of a shape, with one reference. with_errors = 0 leaves e NULL. RUNG_ENOMEM, or
 * RUNG_ECONFIG when the number of elements overflows. */
int32_t ops_tensor_new(struct ops_eval *ev, uint32_t n_dims, const int64_t *dims, int with_errors,
                       struct ops_tensor **out);
/* Gives e to a tensor that has none. */
int32_t ops_tensor_need_errors(struct ops_eval *ev, struct ops_tensor *t);
void ops_tensor_drop(struct ops_tensor *t);
/* A 0-dimensional tensor. */
int32_t ops_scalar(struct ops_eval *ev, struct ops_num value, struct ops_tensor **out);
/* An input in float64; its error is that of rounding to the task's precision. */
int32_t ops_decode(struct ops_eval *ev, const struct rung_tensor_view *view,
                   struct ops_tensor **out);
/*
 * Turns v and e of an output (e not NULL) into value and bound of what a kernel stores: rounding to
 * the dtype, overflow to infinity, subnormals that flush. bound = INFINITY: anything passes.
 */
void ops_finish(const struct ops_eval *ev, struct ops_tensor *t, uint32_t dtype);
/* "[2, 3]" into a buffer, for messages. */
const char *ops_shape_text(uint32_t n_dims, const int64_t *dims, char *buf, uint64_t size);

/* ---- map.c ---- */

/* Both consume their operands, reuse their memory when nobody else holds it, and give one
 * reference. flops: an element. Shapes broadcast as in PyTorch; a mismatch is RUNG_ECONFIG at
 * `column`. */
int32_t ops_map1(struct ops_eval *ev, ops_unary f, double flops, struct ops_tensor *a,
                 struct ops_tensor **out);
int32_t ops_map2(struct ops_eval *ev, uint32_t column, ops_binary f, double flops,
                 struct ops_tensor *a, struct ops_tensor *b, struct ops_tensor **out);

/* ---- rows.c ---- */

/* The elements that one reduction sees, gathered; e is never NULL. */
struct ops_row {
    uint64_t n;
    const double *v, *e;
};

struct ops_row_options {
    int unbiased; /* var */
};

typedef struct ops_num (*ops_reduce_fn)(const struct ops_row *row,
                                        const struct ops_row_options *opt,
                                        const struct ops_arith *ar);
typedef void (*ops_scan_fn)(const struct ops_row *row, double *v, double *e,
                            const struct ops_arith *ar);

/* axes: bit i set = dimension i is reduced. Consumes a. flops: an input element. */
int32_t ops_reduce(struct ops_eval *ev, ops_reduce_fn f, const struct ops_row_options *opt,
                   double flops, uint32_t axes, int keepdim, struct ops_tensor *a,
                   struct ops_tensor **out);
/* Rows to rows of the same shape. Consumes a. */
int32_t ops_scan(struct ops_eval *ev, ops_scan_fn f, double flops, uint32_t axes,
                 struct ops_tensor *a, struct ops_tensor **out);

/* ---- reduce.c, softmax.c: one row ---- */

struct ops_num ops_row_sum(const struct ops_row *, const struct ops_row_options *,
                           const struct ops_arith *);
struct ops_num ops_row_mean(const struct ops_row *, const struct ops_row_options *,
                            const struct ops_arith *);
struct ops_num ops_row_max(const struct ops_row *, const struct ops_row_options *,
                           const struct ops_arith *);
struct ops_num ops_row_min(const struct ops_row *, const struct ops_row_options *,
                           const struct ops_arith *);
struct ops_num ops_row_prod(const struct ops_row *, const struct ops_row_options *,
                            const struct ops_arith *);
struct ops_num ops_row_var(const struct ops_row *, const struct ops_row_options *,
                           const struct ops_arith *);
struct ops_num ops_row_norm(const struct ops_row *, const struct ops_row_options *,
                            const struct ops_arith *);
struct ops_num ops_row_logsumexp(const struct ops_row *, const struct ops_row_options *,
                                 const struct ops_arith *);
void ops_row_softmax(const struct ops_row *, double *v, double *e, const struct ops_arith *);
void ops_row_log_softmax(const struct ops_row *, double *v, double *e, const struct ops_arith *);
void ops_row_cumsum(const struct ops_row *, double *v, double *e, const struct ops_arith *);
/* Mean of a row with the error that enters second order only (see ops_row_var). */
struct ops_num ops_row_centre(const struct ops_row *, const struct ops_row_options *,
                              const struct ops_arith *);

/* ---- matmul.c ---- */

/* torch.matmul of 1-, 2- or n-dimensional operands. Consumes both. */
int32_t ops_matmul(struct ops_eval *ev, uint32_t column, struct ops_tensor *a, struct ops_tensor *b,
                   struct ops_tensor **out);
/* Exchanges two dimensions. Consumes a. */
int32_t ops_transpose(struct ops_eval *ev, uint32_t d0, uint32_t d1, struct ops_tensor *a,
                      struct ops_tensor **out);

/* ---- table.c: calls ---- */

int32_t ops_call(struct ops_eval *ev, const struct ops_node *node, struct ops_tensor **out);
/* Names of all operators, for messages; sorted. */
const char *const *ops_names(uint32_t *n);

/* ---- eval.c ---- */

/* Value of an expression, with one reference for the caller. */
int32_t ops_expression(struct ops_eval *ev, const struct ops_node *node, struct ops_tensor **out);
/* The same for the argument of exp: a difference may be fused into the exponential. */
int32_t ops_exponent(struct ops_eval *ev, const struct ops_node *node, struct ops_tensor **out);
/*
 * Runs the task's graph. views: one a task tensor; NULL in a dry run. On success every output has
 * its tensor in ev->outputs (one reference each), of the declared shape. Always call ops_eval_end.
 */
int32_t ops_eval_run(struct ops_eval *ev, const struct rung_tensor_view *views);
void ops_eval_end(struct ops_eval *ev);

#endif
