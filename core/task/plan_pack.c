/*
 * From resolved arguments to a kernel's parameter block, by what the compiled kernel declares. The
 * artifact came from another process: offsets and sizes are checked. Pure.
 */
#include "task/plan.h"

#include <math.h>
#include <string.h>

struct packer {
    const struct rung_resolved_step *step;
    const struct rung_task *task;
    const struct rung_plan *plan;
    const char *maps; /* encoded */
    struct rung_arena *arena;
    const char **problem;
    uint32_t index; /* of the argument at hand, 0-based */
};

/* A descriptor that the hardware reads must lie at a multiple of this (PTX ISA, prefetch.tensormap
 * and cp.async.bulk.tensor). */
enum { MAP_ALIGNMENT = 64 };

static bool fail(struct packer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(struct packer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *p->problem = rung_arena_printf(p->arena, "line %u: launch %s: argument %u: %s", p->step->line,
                                    p->step->expression, p->index + 1,
                                    rung_arena_vprintf(p->arena, format, args));
    va_end(args);
    return false;
}

/* "a 4-byte integer" and the like. */
static const char *declared(struct packer *p, const struct rung_kernel_param *param)
{
    static const char *const names[] = {"value", "value", "integer", "float", "struct or array"};
    const char *name = param->type <= RUNG_PARAM_BYTES ? names[param->type] : "value";
    return rung_arena_printf(p->arena, "a %u-byte %s", param->size, name);
}

static void store(void *to, uint64_t bits, uint32_t size)
{
    memcpy(to, &bits, size); /* little-endian, as every GPU and every host of ours */
}

static bool pack_pointer(struct packer *p, const struct rung_resolved_arg *arg,
                         const struct rung_kernel_param *param, const uint64_t *tensor_address,
                         const uint64_t *temp_address, void *to)
{
    bool temp = arg->kind == RUNG_ARG_TEMP;
    const char *name = temp ? p->plan->temps[arg->index].name : p->task->tensors[arg->index].name;
    uint32_t dtype = temp ? p->plan->temps[arg->index].dtype : p->task->tensors[arg->index].dtype;
    uint64_t base = temp ? temp_address[arg->index] : tensor_address[arg->index];
    if (param->size != 8 || (param->type != RUNG_PARAM_INT && param->type != RUNG_PARAM_BITS))
        return fail(
            p,
            "'%s' is a pointer, but the kernel declares %s; declare a pointer there, or give "
            "the arguments in the kernel's order%s",
            name, declared(p, param),
            param->size == RUNG_TENSORMAP_BYTES
                ? "; a CUtensorMap takes the name of a tensormap line"
                : "");
    store(to, base + (uint64_t)arg->i * (rung_dtype_bits(dtype) / 8), 8);
    return true;
}

static bool pack_map(struct packer *p, const struct rung_resolved_arg *arg,
                     const struct rung_kernel_param *param, void *to)
{
    const char *name = p->plan->tensormaps[arg->index].name;
    if (param->size != RUNG_TENSORMAP_BYTES || param->offset % MAP_ALIGNMENT ||
        (param->type != RUNG_PARAM_BYTES && param->type != RUNG_PARAM_BITS))
        return fail(p,
                    "'%s' is a tensormap, but the kernel declares %s; declare it const "
                    "__grid_constant__ CUtensorMap %s",
                    name, declared(p, param), name);
    if (!p->maps)
        return fail(p, "tensormap %s: nothing has encoded it", name);
    memcpy(to, p->maps + (size_t)arg->index * RUNG_TENSORMAP_BYTES, RUNG_TENSORMAP_BYTES);
    return true;
}

static bool is_scalar_size(uint32_t size)
{
    return size == 1 || size == 2 || size == 4 || size == 8;
}

/* PTX declares int and unsigned alike, so that either reading of the bits must do. */
static bool pack_integer(struct packer *p, int64_t v, const struct rung_kernel_param *param,
                         void *to)
{
    int64_t lowest = param->size == 8 ? INT64_MIN : -(INT64_C(1) << (8 * param->size - 1));
    int64_t highest = param->size == 8 ? INT64_MAX : (INT64_C(1) << (8 * param->size)) - 1;
    if (v < lowest || v > highest)
        return fail(p, "%lld does not fit %s; declare it long long in the kernel", (long long)v,
                    declared(p, param));
    store(to, (uint64_t)v, param->size);
    return true;
}

static bool pack_float(struct packer *p, double v, const struct rung_kernel_param *param, void *to)
{
    if (param->size == 8) {
        memcpy(to, &v, 8);
        return true;
    }
    if (param->size != 4)
        return fail(p, "the kernel declares %s; declare it float and convert in the kernel",
                    declared(p, param));
    float f = (float)v;
    if (isinf(f) && !isinf(v))
        return fail(p, "%g does not fit a float; declare it double in the kernel", v);
    memcpy(to, &f, 4);
    return true;
}

static bool pack_scalar(struct packer *p, const struct rung_resolved_arg *arg,
                        const struct rung_kernel_param *param, void *to)
{
    bool is_float = arg->kind == RUNG_ARG_F64;
    if (param->type == RUNG_PARAM_BYTES || !is_scalar_size(param->size))
        return fail(
            p,
            "a number meets %s; declare it float, double or an integer and convert in the kernel",
            declared(p, param));
    if (param->type == RUNG_PARAM_FLOAT)
        return pack_float(p, is_float ? arg->f : (double)arg->i, param, to);
    if (!is_float)
        return pack_integer(p, arg->i, param, to);
    if (param->type == RUNG_PARAM_INT)
        return fail(
            p,
            "the value %g is a float, but the kernel declares %s; declare it float, or give an "
            "integer expression",
            arg->f, declared(p, param));
    return pack_float(p, arg->f, param, to);
}

/* Whether the parameter lies inside the block. */
static bool check_place(struct packer *p, const struct rung_kernel *kernel,
                        const struct rung_kernel_param *param)
{
    return (param->size > 0 && param->offset <= kernel->param_bytes &&
            param->size <= kernel->param_bytes - param->offset) ||
           fail(p, "the compiled kernel declares it outside its %u parameter bytes",
                kernel->param_bytes);
}

static bool pack_one(struct packer *p, const struct rung_kernel *kernel,
                     const uint64_t *tensor_address, const uint64_t *temp_address, void *block)
{
    const struct rung_resolved_arg *arg = &p->step->args[p->index];
    const struct rung_kernel_param *param = &kernel->params[p->index];
    if (!check_place(p, kernel, param))
        return false;
    void *to = (char *)block + param->offset;
    if (arg->kind == RUNG_ARG_TENSOR || arg->kind == RUNG_ARG_TEMP)
        return pack_pointer(p, arg, param, tensor_address, temp_address, to);
    if (arg->kind == RUNG_ARG_TENSORMAP)
        return pack_map(p, arg, param, to);
    return pack_scalar(p, arg, param, to);
}

bool rung_plan_pack(const struct rung_resolved_step *step, const struct rung_kernel *kernel,
                    const struct rung_task *task, const struct rung_plan *plan,
                    const uint64_t *tensor_address, const uint64_t *temp_address, const void *maps,
                    void *block, struct rung_arena *arena, const char **problem)
{
    struct packer p = {
        .step = step, .task = task, .plan = plan, .maps = maps, .arena = arena, .problem = problem};
    *problem = NULL;
    if (step->n_args != kernel->n_params) {
        *problem =
            rung_arena_printf(arena,
                              "line %u: launch %s passes %u arguments, but the kernel declares "
                              "%u parameters; args= must list one for each, in order",
                              step->line, step->expression, step->n_args, kernel->n_params);
        return false;
    }
    memset(block, 0, kernel->param_bytes);
    for (p.index = 0; p.index < step->n_args; p.index++)
        if (!pack_one(&p, kernel, tensor_address, temp_address, block))
            return false;
    return true;
}
