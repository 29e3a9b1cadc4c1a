/*
 * Launch plans: the `//@` lines of a candidate (docs/plans.md) to struct rung_plan, and from there,
 * at some dims and a tune point, to concrete launches. Pure; results in the caller's arena.
 */
#ifndef TASK_PLAN_H
#define TASK_PLAN_H

#include "task/task.h"
#include <rung/device.h>

/*
 * Reads the `//@` lines of source. NULL with *problem (lines "file:line: what, remedy") when they
 * are wrong: unknown directive or name, a launch without grid or block, a duplicate, no launch at
 * all. Bounds: 64 tunes of 64 values, 64 temps, 64 steps, 64 arguments.
 */
const struct rung_plan *rung_plan_parse(struct rung_arena *arena, const struct rung_task *task,
                                        const char *file, struct rung_text source,
                                        const char **problem);

/* Values of the plan's tunes, in its order. */
struct rung_point {
    uint32_t n;
    int64_t values[64];
};

/* The default point: the first values. */
struct rung_point rung_plan_default_point(const struct rung_plan *plan);
/* Number of points, capped at 1e6; and the i-th (mixed radix, the last tune fastest; 0 = default).
 */
uint64_t rung_plan_points(const struct rung_plan *plan);
struct rung_point rung_plan_point(const struct rung_plan *plan, uint64_t index);
/* "TPB=256 ROWS=2"; "" without tunes. And back; false with *problem when it names none of the
 * plan's. */
char *rung_point_text(struct rung_arena *arena, const struct rung_plan *plan,
                      const struct rung_point *point);
bool rung_point_parse(struct rung_arena *arena, const struct rung_plan *plan, const char *text,
                      struct rung_point *out, const char **problem);
/* Whether every `where` holds at these dims. An expression that fails counts as false. */
bool rung_plan_allows(const struct rung_plan *plan, const struct rung_task *task,
                      const int64_t *dims, const struct rung_point *point, uint32_t sm_count);
/*
 * The first point, in order from the default, that is allowed at all bench shapes of the task;
 * false when there is none.
 */
bool rung_plan_first_point(const struct rung_plan *plan, const struct rung_task *task,
                           uint32_t sm_count, struct rung_point *out);
/*
 * Kernel instances that the plan may launch at this point: name expressions such as
 * "softmax_rows<256>", each once. Template arguments may use tunes and integer literals, and, when
 * the task's shapes are fixed, dims. NULL with *problem when one fails.
 */
const char *const *rung_plan_expressions(struct rung_arena *arena, const struct rung_plan *plan,
                                         const struct rung_task *task,
                                         const struct rung_point *point, uint32_t *n,
                                         const char **problem);

/* Variables that the plan's `symbol` lines fill, each once, in the plan's order. */
const char *const *rung_plan_symbols(struct rung_arena *arena, const struct rung_plan *plan,
                                     uint32_t *n);

/* ---- Resolved ---- */

struct rung_resolved_arg {
    uint32_t kind;  /* rung_arg_kind: TENSOR, TEMP, I64, F64, TENSORMAP */
    uint32_t index; /* TENSOR, TEMP, TENSORMAP: of the task or plan */
    int64_t i;      /* I64; element offset for TENSOR and TEMP */
    double f;       /* F64 */
};

struct rung_resolved_step {
    uint32_t kind; /* rung_step_kind: LAUNCH, SET or SYMBOL */
    uint32_t line;
    const char *expression; /* LAUNCH: the kernel instance */
    struct rung_dim3 grid, block;
    uint32_t shared; /* dynamic, bytes */
    const struct rung_resolved_arg *args;
    uint32_t n_args;
    uint32_t flags;                              /* LAUNCH: rung_step_flag */
    struct rung_dim3 cluster;                    /* LAUNCH; 0, 0, 0: none asked for */
    uint32_t target_kind, target_index, pattern; /* SET and SYMBOL; pattern: SET */
    const char *symbol;                          /* SYMBOL: name in the source */
    int64_t offset, count;                       /* SYMBOL: elements of the target */
};

/* A tensor map that a launch of the plan takes; map.address is left to whoever has the buffers. */
struct rung_resolved_map {
    uint32_t index; /* among the plan's tensor maps */
    uint32_t line;
    uint32_t target_kind, target_index; /* RUNG_ARG_TENSOR or RUNG_ARG_TEMP */
    uint64_t offset;                    /* bytes from the target's first element to the map's */
    struct rung_tensormap map;
};

struct rung_resolved_plan {
    const int64_t *temp_elements;         /* one a temp of the plan */
    const struct rung_resolved_map *maps; /* each that `steps` take, once */
    uint32_t n_maps;
    const struct rung_resolved_step
        *steps; /* those whose `when` holds and whose grid is not empty */
    uint32_t n_steps;
};

/*
 * Evaluates everything at dims and point. NULL with *problem "line N: ..." when an expression
 * fails, a size is negative, grid or block pass what CUDA allows (grid.x < 2^31, y and z < 65536;
 * block <= 1024 threads; cluster <= 16 blocks that divide the grid), the part of a symbol lies
 * outside its target, or temps pass 2^38 bytes.
 */
const struct rung_resolved_plan *
rung_plan_resolve(struct rung_arena *arena, const struct rung_plan *plan,
                  const struct rung_task *task, const int64_t *dims, const struct rung_point *point,
                  uint32_t sm_count, const char **problem);
/*
 * Packs arguments into the kernel's parameter block: pointers from `addresses` (of tensors, then
 * temps), scalars converted to what the kernel declares. maps: what the device encoded of each
 * resolved map (rung_device_ops.tensormap), RUNG_TENSORMAP_BYTES bytes at its index times as many;
 * NULL for a plan without. false with *problem when the number of arguments differs, an integer
 * does not fit, a float meets an integer parameter, or a tensor map meets anything but 128 bytes.
 */
bool rung_plan_pack(const struct rung_resolved_step *step, const struct rung_kernel *kernel,
                    const struct rung_task *task, const struct rung_plan *plan,
                    const uint64_t *tensor_address, const uint64_t *temp_address, const void *maps,
                    void *block, struct rung_arena *arena, const char **problem);

/* The rung.host.plan/0 service. */
extern const struct rung_host_plan rung_plan_table;

/* Bundles as JSON and back (for jobs and the journal). from_json refuses bad paths and sizes over 4
 * MiB. */
cJSON *rung_bundle_to_json(const struct rung_bundle *bundle);
const struct rung_bundle *rung_bundle_from_json(struct rung_arena *arena, const cJSON *json,
                                                struct rung_error *err);

#endif
