/*
 * rung/bundle.h - a candidate's source (bundle), what a compiler made of it (artifact) and how it
 * is launched (plan). All are plain data that turn into JSON without loss.
 */
#ifndef RUNG_BUNDLE_H
#define RUNG_BUNDLE_H

#include <rung/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rung_file {
    uint32_t struct_size;
    uint32_t reserved;
    const char *path;      /* relative, no "..", [A-Za-z0-9_./-] */
    struct rung_text text; /* UTF-8 */
};

struct rung_bundle {
    uint32_t struct_size;
    uint32_t n_files;
    const char *language;          /* "cuda" */
    const struct rung_file *files; /* at least one */
    uint32_t entry; /* index of the file that is compiled and carries the plan lines */
    uint32_t reserved;
};

/* ---- Plan: symbolic, before shapes are known --------------------------------------------------
 */

/* An expression in the plan language and the line of the entry file that it stands in (1-based). */
struct rung_expr_text {
    uint32_t struct_size;
    uint32_t line;
    const char *text;
};

struct rung_tune {
    uint32_t struct_size;
    uint32_t n_values; /* at least 1 */
    const char *name;
    const int64_t *values; /* the first is the default */
};

struct rung_temp {
    uint32_t struct_size;
    uint32_t dtype;
    const char *name;
    struct rung_expr_text count; /* elements */
};

enum rung_arg_kind {
    RUNG_ARG_TENSOR = 1,    /* index into task tensors */
    RUNG_ARG_TEMP = 2,      /* index into plan temps */
    RUNG_ARG_I64 = 3,       /* expr */
    RUNG_ARG_F64 = 4,       /* expr */
    RUNG_ARG_TENSORMAP = 5, /* index into plan tensor maps: 128 bytes by value */
    RUNG_ARG_BYTES = 6,     /* reserved for structs by value */
};

struct rung_arg {
    uint32_t struct_size;
    uint32_t kind;  /* rung_arg_kind */
    uint32_t index; /* TENSOR, TEMP, TENSORMAP */
    uint32_t reserved;
    struct rung_expr_text expr; /* I64, F64; for TENSOR and TEMP the element offset or NULL text */
    struct rung_text bytes;     /* BYTES */
};

enum rung_step_kind {
    RUNG_STEP_LAUNCH = 1,
    RUNG_STEP_SET = 2,    /* fill target with a 32-bit pattern; `zero` makes these */
    RUNG_STEP_COPY = 3,   /* reserved */
    RUNG_STEP_SYMBOL = 4, /* copy target to a __constant__ or __device__ variable */
};

enum rung_step_flag {
    RUNG_STEP_COOPERATIVE = 1u << 0, /* LAUNCH: all blocks resident, grid-wide barriers work */
};

struct rung_step {
    uint32_t struct_size;
    uint32_t kind; /* rung_step_kind */
    uint32_t line; /* in the entry file */
    uint32_t device_index;
    struct rung_expr_text when; /* NULL text: always */

    const char *kernel; /* LAUNCH: name without template arguments */
    uint32_t n_template_args;
    uint32_t n_args;
    const struct rung_expr_text *template_args;
    const struct rung_arg *args;
    struct rung_expr_text grid[3], block[3]; /* NULL text: 1 */
    struct rung_expr_text shared;            /* bytes of dynamic shared memory; NULL text: 0 */

    uint32_t target_kind; /* SET, SYMBOL: RUNG_ARG_TENSOR or RUNG_ARG_TEMP */
    uint32_t target_index;
    uint32_t pattern;                 /* SET */
    uint32_t flags;                   /* rung_step_flag */
    struct rung_expr_text cluster[3]; /* LAUNCH: blocks a cluster; all NULL text: none asked for */
    const char *symbol;               /* SYMBOL: the variable's name in the source, "ns::c_w" */
    struct rung_expr_text offset;     /* SYMBOL: first element of the target; NULL text: 0 */
    struct rung_expr_text count;      /* SYMBOL: elements; NULL text: all from offset on */
};

/*
 * A tensor map (rung/device.h) of a tensor or temp, passed to kernels by value. Lists have the
 * fastest dimension first; NULL texts stand behind their ends.
 */
struct rung_tensormap_spec {
    uint32_t struct_size;
    uint32_t line;
    const char *name;
    uint32_t target_kind; /* RUNG_ARG_TENSOR or RUNG_ARG_TEMP */
    uint32_t target_index;
    struct rung_expr_text offset; /* first element of the target; NULL text: 0 */
    uint32_t n_dims;              /* 1 to 5 */
    uint32_t fill_nan;            /* 1: out of bounds reads as NaN, else 0 */
    /* elements; [0] NULL text: the tensor's shape, its last axis first */
    struct rung_expr_text dims[5];
    /* bytes between neighbours; [0] has none; [1] NULL text: dense */
    struct rung_expr_text strides[5];
    struct rung_expr_text box[5];       /* elements of a tile */
    struct rung_expr_text elements[5];  /* of the box, every how many; NULL text: 1 */
    struct rung_expr_text swizzle;      /* bytes: 0, 32, 64, 128; NULL text: 0 */
    struct rung_expr_text l2_promotion; /* bytes: 0, 64, 128, 256; NULL text: 0 */
};

struct rung_plan {
    uint32_t struct_size;
    uint32_t n_tunes;
    uint32_t n_where;
    uint32_t n_temps;
    uint32_t n_steps;
    uint32_t reserved;
    const struct rung_tune *tunes;
    const struct rung_expr_text *where; /* all must be true for a tune point at given dims */
    const struct rung_temp *temps;
    const struct rung_step *steps; /* in order, on one stream */
    const struct rung_tensormap_spec *tensormaps;
    uint32_t n_tensormaps;
    uint32_t reserved2;
};

/* ---- Artifact ---- */

enum rung_format { RUNG_FORMAT_PTX = 1, RUNG_FORMAT_CUBIN = 2, RUNG_FORMAT_OPAQUE = 3 };

/* How a kernel parameter is declared. */
enum rung_ptype {
    RUNG_PARAM_BITS = 1,
    RUNG_PARAM_INT = 2,
    RUNG_PARAM_FLOAT = 3,
    RUNG_PARAM_BYTES = 4, /* array: a struct by value */
};

struct rung_kernel_param {
    uint32_t struct_size;
    uint32_t type;      /* rung_ptype; PTX says .u64 for pointers and .u32/.s32/.f32 for scalars */
    uint32_t offset;    /* bytes in the parameter block */
    uint32_t size;      /* bytes */
    uint32_t alignment; /* bytes */
    uint32_t reserved;
};

struct rung_kernel {
    uint32_t struct_size;
    uint32_t n_params;
    const char *expression; /* as asked: "softmax_rows<256>" */
    const char *symbol;     /* lowered name in the code */
    const struct rung_kernel_param *params;
    uint32_t param_bytes;
    uint32_t registers;     /* a thread; 0 = not known */
    uint32_t static_shared; /* bytes */
    uint32_t local_bytes;   /* a thread, spills included */
    uint32_t spill_bytes;   /* stores + loads as ptxas counts them */
    uint32_t max_threads;   /* a block; 0 = not known */
};

enum rung_symbol_flag { RUNG_SYMBOL_CONST = 1u << 0 /* __constant__; else __device__ */ };

/* A variable of module scope. */
struct rung_symbol {
    uint32_t struct_size;
    uint32_t flags;         /* rung_symbol_flag */
    const char *expression; /* as asked: "ns::c_w"; NULL when nobody asked for it */
    const char *symbol;     /* lowered name in the code */
    uint64_t bytes;         /* 0 = not known */
};

/* One form of the code. Several forms of one compile stand side by side (PTX and CUBIN). */
struct rung_code {
    uint32_t struct_size;
    uint32_t format;  /* rung_format */
    const char *arch; /* "compute_90", "sm_90" */
    const void *bytes;
    uint64_t n_bytes;
};

struct rung_artifact {
    uint32_t struct_size;
    uint32_t n_codes;
    uint32_t n_kernels;
    uint32_t reserved;
    const struct rung_code *codes;
    const struct rung_kernel *kernels;
    const struct rung_plan *plan;      /* NULL: the bundle's plan lines count */
    const char *compiler;              /* "nvrtc 13.0" */
    const struct rung_symbol *symbols; /* all variables of module scope */
    uint32_t n_symbols;
    uint32_t reserved2;
};

#ifdef __cplusplus
}
#endif
#endif
