/*
 * rung/task.h - what to compute, as plugins see it. The core parses and checks task files; every
 * text below is already valid and every expression already parses.
 */
#ifndef RUNG_TASK_H
#define RUNG_TASK_H

#include <rung/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A named size. The values of all dims, in this order, are a "dims vector" (int64_t[n_dims]). */
struct rung_dim {
    uint32_t struct_size;
    uint32_t derived; /* 1: computed from earlier dims by expr; a dims vector must agree */
    const char *name;
    const char *expr;    /* derived only, else NULL */
    int64_t value;       /* default, elements */
    int64_t min, max;    /* inclusive; 1 and INT64_MAX when not stated */
    int64_t multiple_of; /* 1 when not stated */
};

/* A typed scalar argument of the task. */
struct rung_param {
    uint32_t struct_size;
    uint32_t dtype; /* RUNG_I64 or RUNG_F64 */
    const char *name;
    int64_t i64;
    double f64;
};

enum rung_role {
    RUNG_ROLE_INPUT = 1,
    RUNG_ROLE_OUTPUT = 2,
    RUNG_ROLE_INOUT = 3,
    RUNG_ROLE_WEIGHT = 4
};

/* How inputs are drawn; see rung_fill in session.h for the exact meaning of each. */
struct rung_tensor_spec {
    uint32_t struct_size;
    uint32_t role;  /* rung_role */
    uint32_t dtype; /* rung_dtype */
    uint32_t n_dims;
    const char *name;
    const char *shape[RUNG_MAX_DIMS]; /* expressions over dims; row-major */
    const char *fill;                 /* "normal" (default), "uniform", ... */
    uint64_t alignment;               /* bytes; 256 by default */
    /*
     * Expressions over dims: elements from one to the next along each axis, no two of them at one
     * place. NULL in [0]: row-major without gaps. What lies in the gaps is nobody's: kernels must
     * not write there.
     */
    const char *stride[RUNG_MAX_DIMS];
};

struct rung_shape_case {
    uint32_t struct_size;
    uint32_t reserved;
    const int64_t *dims; /* dims vector */
    double weight;       /* share in the score; > 0 */
};

enum rung_precision {
    RUNG_PRECISION_FP32 = 1,
    RUNG_PRECISION_TF32 = 2,
    RUNG_PRECISION_FP16 = 3,
    RUNG_PRECISION_BF16 = 4,
    RUNG_PRECISION_FP64 = 5,
    RUNG_PRECISION_EXACT = 6, /* integers */
};

enum rung_shape_rule {
    RUNG_SHAPES_RANGE = 1, /* right for all dims */
    RUNG_SHAPES_FIXED = 2, /* right for the bench shapes; specialising to them is honest */
};

struct rung_task {
    uint32_t struct_size;
    uint32_t n_dims;
    uint32_t n_params;
    uint32_t n_tensors;
    uint32_t n_extra;
    uint32_t n_bench;    /* at least 1 */
    uint32_t precision;  /* rung_precision */
    uint32_t shape_rule; /* rung_shape_rule */
    const char *name;
    const char *summary;
    const struct rung_dim *dims;
    const struct rung_param *params;
    const struct rung_tensor_spec *tensors; /* inputs, weights, outputs in file order */
    const struct rung_shape_case *extra;    /* check shapes that the author adds */
    const struct rung_shape_case *bench;    /* shapes that count */
    const char *reference;                  /* name of the reference plugin */
    const char *graph;                      /* its graph text, or NULL when it has none */
};

/* The first tensor that states strides, or NULL: for plugins that know only dense ones. Pure. */
static inline const struct rung_tensor_spec *rung_task_strided(const struct rung_task *task)
{
    for (uint32_t i = 0; i < task->n_tensors; i++)
        if (task->tensors[i].stride[0])
            return &task->tensors[i];
    return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
