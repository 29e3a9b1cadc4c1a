/*
 * The directive tensormap: a view of a tensor or temp that the bulk copy engine reads and writes
 * tiles of. The text is hostile; results live in the reader's arena.
 */
#include "task/plan_reader.h"

#include <string.h>

enum key {
    KEY_BOX,
    KEY_DIMS,
    KEY_STRIDES,
    KEY_ELEMENTS,
    KEY_SWIZZLE,
    KEY_L2,
    KEY_OOB,
    N_KEYS,
};

enum { MOST_DIMS = 5 };

static const char *const key_names[N_KEYS] = {"box",     "dims", "strides", "elements",
                                              "swizzle", "l2",   "oob"};
static const struct plan_keys map_keys = {.directive = "tensormap",
                                          .names = key_names,
                                          .n = N_KEYS,
                                          .word = N_KEYS,
                                          .list =
                                              "box, dims, strides, elements, swizzle, l2 and oob"};

static void usage(struct plan_reader *r)
{
    rung_plan_fault(r, "write tensormap NAME = TENSOR box=(64, 32): elements of a tile, fastest "
                       "dimension first; then dims=(...), strides=(BYTES, ...), elements=(...), "
                       "swizzle=128, l2=128, oob=nan where needed");
}

void rung_plan_read_tensormap(struct plan_reader *r, const char *rest)
{
    const char *text;
    char *name = rung_plan_word(r->arena, rest, &text);
    if (!*name || *text != '=') {
        usage(r);
        return;
    }
    if (!rung_plan_new_name(r, "tensormap", name))
        return;
    if (r->n_maps == PLAN_MAX) {
        rung_plan_fault(r, "a plan has at most 64 tensormaps");
        return;
    }
    r->map_texts[r->n_maps] = text + 1 + strspn(text + 1, " \t");
    r->maps[r->n_maps++] = (struct rung_tensormap_spec){
        .struct_size = sizeof(struct rung_tensormap_spec), .line = r->line, .name = name};
}

/* "x" or "x + offset". */
static bool read_target(struct plan_reader *r, const char *text, struct rung_tensormap_spec *map)
{
    struct rung_arg arg = {.struct_size = sizeof arg};
    const char *what = rung_arena_printf(r->arena, "tensormap %s", map->name);
    if (!rung_plan_take_pointer(r, what, text, &arg)) {
        rung_plan_fault(r, "%s: \"%.200s\" is no tensor or temp", what, text);
        return false;
    }
    map->target_kind = arg.kind;
    map->target_index = arg.index;
    map->offset = arg.expr;
    return true;
}

/* A list of exactly n expressions, if there is one. */
static bool read_list(struct plan_reader *r, const char *key, const char *text, uint32_t n,
                      struct rung_expr_text *out)
{
    struct rung_expr_text list[MOST_DIMS] = {0};
    uint32_t got = text ? rung_plan_take_list(r, "tensormap", key, text, MOST_DIMS, list) : 0;
    if (!text)
        return true;
    if (got && got != n)
        rung_plan_fault(r, "tensormap: %s=%.200s has %u items, but %u are needed%s", key, text, got,
                        n,
                        strcmp(key, "strides") == 0
                            ? ": bytes from one to the next along each dimension but the fastest"
                            : ", one for each of box");
    for (uint32_t i = 0; got == n && i < n; i++)
        out[i] = list[i];
    return got == n;
}

static bool read_one(struct plan_reader *r, const char *key, const char *text,
                     struct rung_expr_text *out)
{
    return !text || rung_plan_take_expr(r, key, text, NULL, out);
}

/* What dimensions it has when the plan does not say: the tensor's. */
static bool check_shape(struct plan_reader *r, const struct rung_tensormap_spec *map)
{
    if (map->dims[0].text)
        return true;
    if (map->target_kind == RUNG_ARG_TEMP) {
        rung_plan_fault(r,
                        "tensormap %s: a temp has no shape; say dims=(...), fastest dimension "
                        "first",
                        map->name);
        return false;
    }
    const struct rung_tensor_spec *t = &r->task->tensors[map->target_index];
    if (map->offset.text)
        rung_plan_fault(r,
                        "tensormap %s: with an offset say dims=(...) too: what lies behind it has "
                        "another shape than %s",
                        map->name, t->name);
    else if (t->n_dims != map->n_dims)
        rung_plan_fault(r,
                        "tensormap %s: box has %u items, but %s has %u dimensions; say one item "
                        "for each, or dims=(...) to see it in another shape",
                        map->name, map->n_dims, t->name, t->n_dims);
    return !map->offset.text && t->n_dims == map->n_dims;
}

static void read_map(struct plan_reader *r, struct rung_tensormap_spec *map, const char *text)
{
    const char *values[N_KEYS], *keys = rung_plan_first_key(&map_keys, text);
    size_t n = (size_t)(keys - text);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t' || text[n - 1] == ','))
        n--;
    if (!rung_plan_take_keys(r, &map_keys, keys, values) ||
        !read_target(r, rung_arena_strndup(r->arena, text, n), map))
        return;
    if (!values[KEY_BOX]) {
        rung_plan_fault(r, "tensormap %s lacks box=(...)", map->name);
        return;
    }
    map->n_dims = rung_plan_take_list(r, "tensormap", "box", values[KEY_BOX], MOST_DIMS, map->box);
    const char *oob = values[KEY_OOB] ? values[KEY_OOB] : "zero";
    map->fill_nan = strcmp(oob, "nan") == 0;
    if (!map->fill_nan && strcmp(oob, "zero") != 0)
        rung_plan_fault(r, "tensormap %s: oob=%.200s must be zero or nan", map->name, oob);
    if (map->n_dims && read_list(r, "dims", values[KEY_DIMS], map->n_dims, map->dims) &&
        read_list(r, "strides", values[KEY_STRIDES], map->n_dims - 1, map->strides + 1) &&
        read_list(r, "elements", values[KEY_ELEMENTS], map->n_dims, map->elements) &&
        read_one(r, "swizzle", values[KEY_SWIZZLE], &map->swizzle) &&
        read_one(r, "l2", values[KEY_L2], &map->l2_promotion))
        check_shape(r, map);
}

void rung_plan_check_tensormaps(struct plan_reader *r)
{
    for (uint32_t i = 0; i < r->n_maps; i++) {
        r->line = r->maps[i].line;
        read_map(r, &r->maps[i], r->map_texts[i]);
    }
}
