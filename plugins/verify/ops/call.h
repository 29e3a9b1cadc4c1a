/*
 * Calls of operators: arguments bound to parameters, and the builders of each operator. Names and
 * meaning are PyTorch's.
 */
#ifndef OPS_CALL_H
#define OPS_CALL_H

#include "ops.h"

#define OPS_MAX_PARAMS 9

struct ops_bound;
typedef struct ops_value *(*ops_call_fn)(struct ops_eval *ev, const struct ops_bound *b);

struct ops_op {
    const char *name;
    const char *params[OPS_MAX_PARAMS]; /* the first `required` must be given */
    uint32_t required;
    double flops; /* an element; an elementary function is 1 */
    ops_call_fn call;
    ops_unary unary;
    ops_binary binary;
    ops_reduce_fn reduce;
    ops_scan_fn scan;
    uint32_t variant; /* of the operator: dimensions of windows, kind of a comparison, ... */
    int variadic;     /* tensors by position; parameters by name only */
};

/* A call with its arguments in the order of the operator's parameters; NULL where not given. */
struct ops_bound {
    const struct ops_op *op;
    const struct ops_node *node;
    const struct ops_node *arg[OPS_MAX_PARAMS];
    uint32_t column[OPS_MAX_PARAMS];
};

/* ---- args.c: failures are recorded in ev, and a harmless value comes back ---- */

/* "OPERATOR: PARAMETER what" at the argument, or at the call where it is not given. */
void *ops_wrong(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot, const char *what);
int64_t ops_int_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                    int64_t standard);
int ops_flag_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot, int standard);
/* Index in the NULL-ended list of words of the bare word that is given; 0 when none is. */
uint32_t ops_word_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                      const char *const *words);
/* An axis of a tensor of n_dims; negative ones count from the end. */
uint32_t ops_axis_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                      uint32_t n_dims, int64_t standard);
/* An axis or a list of axes, as a mask; all when not given. */
uint32_t ops_axes_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                      uint32_t n_dims);
/* A number for each of n dimensions, or one for all; at most `most` each. */
void ops_each_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot, uint32_t n,
                  int64_t standard, int64_t least, int64_t *out);
/* A list of at most RUNG_MAX_DIMS numbers (or one number); returns how many. */
uint32_t ops_list_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot, int64_t *out);
/* NULL when it is not given. */
struct ops_value *ops_tensor_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot);
/* A number where it is not given. */
struct ops_value *ops_number_arg(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                                 double standard);
/* Whether the tensor has so many dimensions; else fails with operator, shape and the remedy. */
int ops_has_dims(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                 const struct ops_value *x, uint32_t least, uint32_t most, const char *remedy);
struct ops_value *ops_number(struct ops_eval *ev, double v);

/* x combined with the argument in a slot; x passes through when it is not given. */
struct ops_value *ops_combine(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                              ops_binary f, double flops, struct ops_value *x);
/* A vector over channels (dimension 1 of x) that broadcasts against x. */
struct ops_value *ops_channels(struct ops_eval *ev, const struct ops_bound *b, uint32_t slot,
                               const struct ops_value *x);

#define OPS_CALL(name) struct ops_value *name(struct ops_eval *ev, const struct ops_bound *b)

/* ---- call_math.c ---- */
OPS_CALL(ops_call_unary);
OPS_CALL(ops_call_gelu);
OPS_CALL(ops_call_binary);
OPS_CALL(ops_call_compare);
OPS_CALL(ops_call_clamp);
OPS_CALL(ops_call_hardtanh);
OPS_CALL(ops_call_slope);
OPS_CALL(ops_call_where);
OPS_CALL(ops_call_reduce);
OPS_CALL(ops_call_arg);
OPS_CALL(ops_call_scan);
OPS_CALL(ops_call_matmul);
/* ---- call_norm.c ---- */
OPS_CALL(ops_call_layernorm);
OPS_CALL(ops_call_rmsnorm);
OPS_CALL(ops_call_groupnorm);
OPS_CALL(ops_call_batchnorm);
OPS_CALL(ops_call_instancenorm);
OPS_CALL(ops_call_attention);
/* ---- call_loss.c ---- */
OPS_CALL(ops_call_difference_loss);
OPS_CALL(ops_call_binary_cross_entropy);
OPS_CALL(ops_call_kl_div);
OPS_CALL(ops_call_nll_loss);
/* ---- call_layout.c ---- */
OPS_CALL(ops_call_transpose);
OPS_CALL(ops_call_permute);
OPS_CALL(ops_call_reshape);
OPS_CALL(ops_call_flatten);
OPS_CALL(ops_call_squeeze);
OPS_CALL(ops_call_unsqueeze);
OPS_CALL(ops_call_slice);
OPS_CALL(ops_call_narrow);
OPS_CALL(ops_call_select);
OPS_CALL(ops_call_flip);
OPS_CALL(ops_call_triangle);
OPS_CALL(ops_call_concat);
/* ---- call_window.c ---- */
OPS_CALL(ops_call_conv);
OPS_CALL(ops_call_conv_transpose);
OPS_CALL(ops_call_pool);
OPS_CALL(ops_call_adaptive_pool);

#endif
