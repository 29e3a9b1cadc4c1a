/*
 * A plan's tensor map at some dims and a tune point. Pure; results in the caller's arena. Limits of
 * the hardware are the device's to tell (rung_device_ops.tensormap); here every element that the
 * map reaches must lie in its tensor.
 */
#include "task/plan_scope.h"

struct mapper {
    struct rung_arena *arena;
    const struct plan_scope *scope;
    const struct rung_tensormap_spec *spec;
    const struct rung_layout *layout; /* of a tensor; NULL: a temp's */
    const char **problem;
};

static bool fail(struct mapper *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(struct mapper *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *m->problem = rung_arena_printf(m->arena, "line %u: tensormap %s: %s", m->spec->line,
                                    m->spec->name, rung_arena_vprintf(m->arena, format, args));
    va_end(args);
    return false;
}

static bool number(struct mapper *m, const char *what, const struct rung_expr_text *expr,
                   int64_t fallback, int64_t most, int64_t *out)
{
    if (!rung_plan_integer(m->arena, m->scope, expr, what, fallback, out, m->problem))
        return false;
    return (*out >= 0 && *out <= most) ||
           fail(m, "%s \"%s\" is %lld, but it must lie between 0 and %lld", what,
                expr->text ? expr->text : "", (long long)*out, (long long)most);
}

/* One of the small numbers, whose limits are the device's. */
static bool small(struct mapper *m, const char *what, const struct rung_expr_text *expr,
                  int64_t fallback, uint32_t *out)
{
    int64_t v;
    if (!number(m, what, expr, fallback, INT32_MAX, &v))
        return false;
    *out = (uint32_t)v;
    return true;
}

/* dims as said, else the tensor's shape, its last axis first. */
static bool resolve_dims(struct mapper *m, struct rung_tensormap *map)
{
    for (uint32_t i = 0; i < map->n_dims; i++) {
        int64_t v, own = m->layout ? m->layout->shape[map->n_dims - 1 - i] : 0;
        if (!number(m, "dims", &m->spec->dims[i], own, INT64_MAX, &v))
            return false;
        map->dims[i] = (uint64_t)v;
    }
    return true;
}

/* strides as said, else the tensor's where its own shape is seen, else dense. */
static bool resolve_strides(struct mapper *m, uint64_t size, struct rung_tensormap *map)
{
    uint64_t dense = size;
    bool own = m->layout && !m->spec->dims[0].text;
    for (uint32_t i = 1; i < map->n_dims; i++) {
        int64_t v;
        if (__builtin_mul_overflow(i == 1 ? size : map->strides[i - 1], map->dims[i - 1], &dense) ||
            dense > INT64_MAX)
            return fail(m, "its dims pass 2^63 bytes");
        if (own)
            dense = (uint64_t)m->layout->strides[map->n_dims - 1 - i] * size;
        if (!number(m, "strides", &m->spec->strides[i], (int64_t)dense, INT64_MAX, &v))
            return false;
        map->strides[i] = (uint64_t)v;
    }
    if (own && map->n_dims && m->layout->strides[map->n_dims - 1] != 1)
        return fail(m,
                    "elements of the tensor's last axis lie %lld apart, but those of the "
                    "fastest dimension of a map are neighbours; say dims=(...) and "
                    "strides=(...) with the axis of stride 1 first",
                    (long long)m->layout->strides[map->n_dims - 1]);
    return true;
}

/* Whether the last element lies inside the target, n elements long. */
static bool check_extent(struct mapper *m, uint64_t size, int64_t n, int64_t offset,
                         const struct rung_tensormap *map)
{
    uint64_t end = ((uint64_t)offset + 1) * size, bytes = (uint64_t)n * size, step;
    bool over = false;
    for (uint32_t i = 0; i < map->n_dims; i++) {
        if (map->dims[i] == 0)
            return true; /* reaches nothing, and no device takes it */
        over |= __builtin_mul_overflow(map->dims[i] - 1, i ? map->strides[i] : size, &step) ||
                __builtin_add_overflow(end, step, &end);
    }
    return (!over && end <= bytes) ||
           fail(m,
                "its dims and strides reach %s%llu bytes far, but %llu are there: tiles may lie "
                "partly outside, dims not",
                over ? "beyond " : "", (unsigned long long)(over ? UINT64_MAX : end),
                (unsigned long long)bytes);
}

bool rung_plan_resolve_map(struct rung_arena *arena, const struct plan_scope *scope,
                           const struct rung_tensormap_spec *spec, uint32_t dtype,
                           const struct rung_layout *layout, int64_t n,
                           struct rung_resolved_map *out, const char **problem)
{
    struct mapper m = {
        .arena = arena, .scope = scope, .spec = spec, .layout = layout, .problem = problem};
    struct rung_tensormap *map = &out->map;
    uint64_t size = rung_dtype_bits(dtype) / 8;
    int64_t offset;
    *map = (struct rung_tensormap){.struct_size = sizeof *map,
                                   .dtype = dtype,
                                   .n_dims = spec->n_dims,
                                   .fill_nan = spec->fill_nan};
    if (!number(&m, "offset", &spec->offset, 0, n, &offset) || !resolve_dims(&m, map) ||
        !resolve_strides(&m, size, map))
        return false;
    for (uint32_t i = 0; i < map->n_dims; i++)
        if (!small(&m, "box", &spec->box[i], 0, &map->box[i]) ||
            !small(&m, "elements", &spec->elements[i], 1, &map->elements[i]))
            return false;
    out->target_kind = spec->target_kind;
    out->target_index = spec->target_index;
    out->line = spec->line;
    out->offset = (uint64_t)offset * size;
    return small(&m, "swizzle", &spec->swizzle, 0, &map->swizzle) &&
           small(&m, "l2", &spec->l2_promotion, 0, &map->l2_promotion) &&
           check_extent(&m, size, n, offset, map);
}
