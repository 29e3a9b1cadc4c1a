/*
 * What the files of the `ops` reference share. A graph becomes a list of values (graph nodes with
 * known shapes) first; then boxes that are wanted are propagated from the outputs to the inputs,
 * and each value is computed in its box only. An evaluation is used by one thread; threads that
 * operators start end before the operator does.
 */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "graph.h"
#include "num.h"
#include "parallel.h"
#include "window.h"

/* A box of a tensor. Nothing in it when a count is 0. */
struct ops_box {
    int64_t start[RUNG_MAX_DIMS], count[RUNG_MAX_DIMS];
};

/* Bytes of elements that may live at once, and that do. */
struct ops_memory {
    uint64_t limit, used;
};

/* Dense row-major elements of one box, counted references in plain heap memory. */
struct ops_tensor {
    uint32_t refs;
    uint32_t n_dims;
    int64_t dims[RUNG_MAX_DIMS]; /* of the box */
    uint64_t n;
    double *v;
    double *e; /* NULL: all errors are 0 */
    struct ops_memory *memory;
};

struct ops_eval;
struct ops_value;

/* One use of an operator: a value's box out of the boxes of its operands. */
struct ops_step {
    struct ops_eval *ev;
    const struct ops_value *value;
    const struct ops_box *box;    /* of the value that is wanted */
    const struct ops_box *from;   /* one an operand, as `need` gave it */
    struct ops_tensor *const *in; /* one an operand, exactly that box; NULL where it is empty */
    struct ops_tensor *out;       /* of the box's extents; e is not NULL */
};

/* How a kind of value is computed. */
struct ops_kernel {
    /* The box of operand `input` that elements `want` (not empty) of `v` depend on. NULL: all of
     * it. [pure] */
    void (*need)(const struct ops_value *v, const struct ops_box *want, uint32_t input,
                 struct ops_box *out);
    /* Fills step->out. An element's bits must not depend on the box that it is computed in. */
    int32_t (*run)(const struct ops_step *step);
    int in_place; /* out may be the memory of an operand of the same extents */
};

/* A node of the graph: shape first, elements later. Lives in the arena of the call. */
struct ops_value {
    const struct ops_kernel *kernel;
    const void *attr; /* of the kernel */
    uint32_t n_dims;
    int64_t dims[RUNG_MAX_DIMS];
    uint64_t n;
    struct ops_value **in;
    uint32_t n_in;
    uint32_t readers; /* values that still have to read it, and outputs */
    struct ops_box want;
    struct ops_tensor *data;
    struct ops_gpu_data *gpu; /* the same on the device (gpu/) */
    int is_mask;              /* an input of dtype bool */
    /* Terms of the running sum that an element is, of a product, a convolution or `sum`; what is
     * added to it may be where an honest kernel begins that sum. 0: it is no such sum. */
    uint64_t terms;
    struct ops_value *next;
};

/* A name of the graph. */
struct ops_binding {
    const char *name;
    struct ops_value *value; /* NULL: not assigned yet */
    uint32_t tensor;         /* 1 + index in the task; 0: no task tensor */
    uint32_t last_use;       /* index of the last statement that reads it */
    struct ops_binding *next;
};

/* One evaluation of a graph at some dims. */
struct ops_eval {
    struct ops_who who;
    const struct rung_task *task;
    const int64_t *dims;
    struct ops_arith arith;
    uint32_t threads;
    struct ops_memory *memory; /* outlives all tensors */
    int32_t status;            /* the first failure of building; its message is in the call */
    double flops;              /* of the task, not of the reference; fma 2, elementary function 1 */
    struct ops_binding *bindings;
    struct ops_value *first, **end; /* all values, operands before their readers */
    struct ops_value **outputs;     /* one a task tensor; NULL where the graph gave none yet */
};

#define OPS_GRAIN 65536u /* elements that are worth a thread */

/* ---- value.c: building ---- */

/*
 * Builders return a new value, or NULL when an operand is NULL, building has failed before, or it
 * fails here (ops_stop). So expressions compose, and one look at ev->status at the end is enough.
 */

/* Records the first failure, RUNG_ECONFIG with "graph:COLUMN: message", and returns NULL. */
void *ops_stop(struct ops_eval *ev, uint32_t column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A value of a kernel over `in` (borrowed). `attr_size` bytes of attr are copied to the arena. */
struct ops_value *ops_value_new(struct ops_eval *ev, uint32_t column,
                                const struct ops_kernel *kernel, uint32_t n_dims,
                                const int64_t *dims, struct ops_value *const *in, uint32_t n_in,
                                const void *attr, uint64_t attr_size);
/* Input of the task; view NULL in a dry run. */
struct ops_value *ops_input(struct ops_eval *ev, uint32_t tensor,
                            const struct rung_tensor_view *view);
/* A value without dimensions. */
struct ops_value *ops_scalar(struct ops_eval *ev, struct ops_num number);
/* "[2, 3]" into a buffer, for messages. */
const char *ops_shape_text(uint32_t n_dims, const int64_t *dims, char *buf, uint64_t size);

/* ---- value.c: boxes and running ---- */

struct ops_box ops_whole(const struct ops_value *v);
int ops_box_empty(const struct ops_box *box, uint32_t n_dims);
/* Makes *box the smallest box that holds both. */
void ops_box_join(struct ops_box *box, const struct ops_box *other, uint32_t n_dims);
/* Copies elements of `box` out of dense elements of `in`, which holds it. */
void ops_copy_box(const double *from, double *to, uint32_t n_dims, const struct ops_box *in,
                  const struct ops_box *box);
/* Adds a reader of a box of v. */
void ops_want(struct ops_value *v, const struct ops_box *box);
/* Computes what is wanted; each that wanted takes its box afterwards. */
int32_t ops_run(struct ops_eval *ev);
/* A reference to a box that was wanted of v; elements without readers left are dropped. */
int32_t ops_take(struct ops_eval *ev, struct ops_value *v, const struct ops_box *box,
                 struct ops_tensor **out);
/* Drops all elements. */
void ops_values_end(struct ops_eval *ev);

/* ---- tensor.c ---- */

/* New tensor, with one reference. with_errors = 0 leaves e NULL. RUNG_ENOMEM, also where the
 * evaluation would need more than it may. */
int32_t ops_tensor_new(struct ops_eval *ev, uint32_t n_dims, const int64_t *dims, int with_errors,
                       struct ops_tensor **out);
/* Gives e to a tensor that has none. */
int32_t ops_tensor_need_errors(struct ops_eval *ev, struct ops_tensor *t);
/* Takes e away. */
void ops_tensor_drop_errors(struct ops_tensor *t);
void ops_tensor_drop(struct ops_tensor *t);
/* A box of an input in float64; its error is that of rounding to the task's precision. */
int32_t ops_decode(struct ops_eval *ev, const struct rung_tensor_view *view,
                   const struct ops_box *box, struct ops_tensor **out);
/*
 * Turns v and e of an output (e not NULL) into value and bound of what a kernel stores: rounding to
 * the dtype, overflow to infinity, subnormals that flush. bound = INFINITY: anything passes.
 */
void ops_finish(const struct ops_eval *ev, struct ops_tensor *t, uint32_t dtype);
/* Row-major strides of dense dims. */
void ops_strides(uint32_t n_dims, const int64_t *dims, int64_t *strides);
/* Steps a row-major index over dims; `at` follows by strides. */
static inline void ops_advance(uint32_t n, const int64_t *dims, const int64_t *strides,
                               int64_t *index, int64_t *at)
{
    for (uint32_t d = n; d-- > 0;) {
        *at += strides[d];
        if (++index[d] < dims[d])
            return;
        *at -= strides[d] * dims[d];
        index[d] = 0;
    }
}

static inline struct ops_num ops_at(const struct ops_tensor *t, int64_t at)
{
    return (struct ops_num){t->v[at], t->e ? t->e[at] : 0};
}

/* ---- map.c: element by element, broadcasting as in PyTorch ---- */

/* flops: an element. Shapes that do not broadcast fail at `column`. */
struct ops_value *ops_map1(struct ops_eval *ev, ops_unary f, double flops, struct ops_value *a);
struct ops_value *ops_map2(struct ops_eval *ev, uint32_t column, ops_binary f, double flops,
                           struct ops_value *a, struct ops_value *b);
/* The same for an f that judges infinite, undefined and unconstrained operands itself. */
struct ops_value *ops_map2_exact(struct ops_eval *ev, uint32_t column, ops_binary f, double flops,
                                 struct ops_value *a, struct ops_value *b);
struct ops_value *ops_map3(struct ops_eval *ev, uint32_t column, ops_ternary f, double flops,
                           struct ops_value *a, struct ops_value *b, struct ops_value *c);
/* Common shape of two, right-aligned; 0 when two extents differ and neither is 1. */
int ops_broadcast(uint32_t n_a, const int64_t *a, uint32_t n_b, const int64_t *b, uint32_t *n_dims,
                  int64_t *dims);
/* An output that is read again may have been rounded to its dtype: relative u more. */
struct ops_value *ops_stored(struct ops_eval *ev, double u, struct ops_value *a);

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

/* axes: bit i set = dimension i is reduced. opt may be NULL. flops: an input element. */
struct ops_value *ops_reduce(struct ops_eval *ev, ops_reduce_fn f,
                             const struct ops_row_options *opt, double flops, uint32_t axes,
                             int keepdim, struct ops_value *a);
/* Rows to rows of the same shape. */
struct ops_value *ops_scan(struct ops_eval *ev, ops_scan_fn f, double flops, uint32_t axes,
                           struct ops_value *a);

/* ---- reduce.c, arg.c, softmax.c: one row ---- */

#define OPS_REDUCE(name)                                                                           \
    struct ops_num name(const struct ops_row *, const struct ops_row_options *,                    \
                        const struct ops_arith *)
OPS_REDUCE(ops_row_sum);
OPS_REDUCE(ops_row_mean);
OPS_REDUCE(ops_row_max);
OPS_REDUCE(ops_row_min);
OPS_REDUCE(ops_row_argmax);
OPS_REDUCE(ops_row_argmin);
OPS_REDUCE(ops_row_prod);
OPS_REDUCE(ops_row_var);
OPS_REDUCE(ops_row_norm);
OPS_REDUCE(ops_row_logsumexp);
/* Mean of a row with the error that enters second order only (see ops_row_var). */
OPS_REDUCE(ops_row_centre);

void ops_row_softmax(const struct ops_row *, double *v, double *e, const struct ops_arith *);
/* The same where a product follows before the division, as in attention. */
void ops_row_softmax_fused(const struct ops_row *, double *v, double *e, const struct ops_arith *);
void ops_row_log_softmax(const struct ops_row *, double *v, double *e, const struct ops_arith *);
void ops_row_cumsum(const struct ops_row *, double *v, double *e, const struct ops_arith *);
void ops_row_cumprod(const struct ops_row *, double *v, double *e, const struct ops_arith *);

/* ---- layout.c, compose.c: elements that only move ---- */

/* Dimension i of the result is dimension perm[i] of a. */
struct ops_value *ops_permute(struct ops_eval *ev, const uint32_t *perm, struct ops_value *a);
struct ops_value *ops_swap_axes(struct ops_eval *ev, uint32_t d0, uint32_t d1, struct ops_value *a);
/* The same elements in row-major order; the numbers of elements must agree. */
struct ops_value *ops_reshape(struct ops_eval *ev, uint32_t column, uint32_t n_dims,
                              const int64_t *dims, struct ops_value *a);
/* Elements start, start + step, ... (count of them) along an axis; step may be negative. */
struct ops_value *ops_slice(struct ops_eval *ev, uint32_t axis, int64_t start, int64_t step,
                            int64_t count, struct ops_value *a);
struct ops_value *ops_concat(struct ops_eval *ev, uint32_t column, uint32_t axis,
                             struct ops_value *const *in, uint32_t n_in);
/* `fill` where column - row > diagonal (upper = 0) or < diagonal (upper = 1). */
struct ops_value *ops_triangle(struct ops_eval *ev, int upper, int64_t diagonal, double fill,
                               struct ops_value *a);
/* x[..., index at axis, ...] for whole-number indices of x's shape without the axis; where the
 * index is `ignored`, 0; outside, no constraint. */
struct ops_value *ops_pick(struct ops_eval *ev, uint32_t axis, int64_t ignored, struct ops_value *x,
                           struct ops_value *index);

/* ---- matmul.c, conv.c, pool.c ---- */

/* torch.matmul of 1-, 2- or n-dimensional operands with equal or absent batch dimensions. */
struct ops_value *ops_matmul(struct ops_eval *ev, uint32_t column, struct ops_value *a,
                             struct ops_value *b);

/* x [batch, channels, space...], w [out, channels / groups, kernel...] or, transposed, [channels,
 * out / groups, kernel...]. win->out holds the extents of the result. */
struct ops_value *ops_conv(struct ops_eval *ev, const struct ops_window *win, int64_t groups,
                           int transposed, struct ops_value *x, struct ops_value *w);

/* adaptive: windows split the input into out parts, and kernel, stride and padding are unused. */
struct ops_value *ops_pool(struct ops_eval *ev, const struct ops_window *win,
                           enum ops_pool_kind kind, int adaptive, struct ops_value *x);

/* ---- table.c: calls ---- */

struct ops_value *ops_call(struct ops_eval *ev, const struct ops_node *node);

/* ---- eval.c ---- */

/* Value of an expression. */
struct ops_value *ops_expression(struct ops_eval *ev, const struct ops_node *node);
/* The same for the argument of exp: a difference may be fused into the exponential. */
struct ops_value *ops_exponent(struct ops_eval *ev, const struct ops_node *node);
/*
 * Builds the task's graph. views: one a task tensor; NULL in a dry run. On success every output has
 * its value in ev->outputs, of the declared shape. Always call ops_eval_end.
 */
int32_t ops_eval_build(struct ops_eval *ev, const struct rung_tensor_view *views);
void ops_eval_end(struct ops_eval *ev);

#endif
