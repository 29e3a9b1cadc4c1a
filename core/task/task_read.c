/*
 * Task files: from settings to struct rung_task, with every fault told at its place. Pure; one
 * thread an arena.
 */
#include "task/task_reader.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

enum { MAX_ALIGNMENT = 4096, DEFAULT_ALIGNMENT = 256 };

/* All required children, from a NULL-terminated list. */
static bool require_all(struct task_reader *r, const struct rung_node *group, const char *what,
                        const char *const *keys)
{
    bool complete = true;
    for (; *keys; keys++)
        complete = task_require(r, group, what, *keys) && complete;
    return complete;
}

static bool check_name(struct task_reader *r, const struct rung_node *node, const char *what,
                       const char *name)
{
    if (!rung_expr_is_name(name))
        RUNG_DIAG_AT(
            r->diags, node,
            "'%s' can't name a %s: names are [A-Za-z_][A-Za-z0-9_]*, at most 63 characters, and "
            "no words of the plan language (sm_count, and, or, not, min, max, ceil_div, sizeof, "
            "true, false)",
            name, what);
    else if (rung_task_dim(r->task, name) >= 0 || rung_task_param(r->task, name) >= 0 ||
             rung_task_tensor(r->task, name) >= 0)
        RUNG_DIAG_AT(r->diags, node,
                     "the name '%s' stands twice; dims, params and tensors share one "
                     "space of names",
                     name);
    else
        return true;
    return false;
}

/* ---- Dims ----------------------------------------------------------------------------------- */

static const char *const dim_keys[] = {"value", "expr", "min", "max", "multiple_of", NULL};

static void read_dim_group(struct task_reader *r, const struct rung_node *node,
                           struct rung_dim *dim)
{
    const struct rung_node *value = rung_node_get(node, "value"),
                           *expr = rung_node_get(node, "expr");
    dim->min = rung_config_int(node, "min", 1, 0, INT64_MAX, r->diags);
    dim->max = rung_config_int(node, "max", INT64_MAX, dim->min, INT64_MAX, r->diags);
    dim->multiple_of = rung_config_int(node, "multiple_of", 1, 1, INT64_MAX, r->diags);
    if (!value == !expr)
        RUNG_DIAG_AT(r->diags, node, "dim '%s' needs either 'value' or 'expr'", dim->name);
    dim->value = rung_config_int(node, "value", 1, 0, INT64_MAX, r->diags);
    dim->expr = expr ? rung_config_string(node, "expr", NULL, r->diags) : NULL;
    rung_diag_unknown(r->diags, node, "a dim", dim_keys);
}

static void read_dim(struct task_reader *r, const struct rung_node *node)
{
    struct rung_dim *dim = &r->dims[r->task->n_dims];
    *dim = (struct rung_dim){.struct_size = sizeof *dim,
                             .name = node->name,
                             .value = 1,
                             .min = 1,
                             .max = INT64_MAX,
                             .multiple_of = 1};
    size_t before = r->diags->n;
    if (strcmp(node->name, "weight") == 0)
        RUNG_DIAG_AT(r->diags, node, "a dim can't be named 'weight', a key of bench.shapes");
    if (!check_name(r, node, "dim", node->name))
        return;
    if (node->type == RUNG_NODE_INT)
        dim->value = node->i;
    else if (node->type == RUNG_NODE_STRING)
        dim->expr = node->s;
    else if (node->type == RUNG_NODE_GROUP)
        read_dim_group(r, node, dim);
    else
        RUNG_DIAG_AT(r->diags, node,
                     "dim '%s' must be an integer, an expression such as \"cols / 4\", or "
                     "a group with value, min, max, multiple_of",
                     node->name);
    dim->derived = dim->expr != NULL;
    uint32_t i = r->task->n_dims++;
    r->defaults[i] = dim->value;
    struct rung_error err = rung_error_init();
    if (r->diags->n == before && rung_task_complete_dim(r->task, i, r->defaults, &err) != RUNG_OK)
        RUNG_DIAG_AT(r->diags, node, "%s", err.message);
    dim->value = r->defaults[i];
}

static void read_dims(struct task_reader *r, const struct rung_node *root)
{
    const struct rung_node *group = rung_config_child(root, "dims", RUNG_NODE_GROUP, r->diags);
    size_t before = r->diags->n, n = group ? rung_node_count(group) : 0;
    if (n > MAX_NAMED)
        RUNG_DIAG_AT(r->diags, group, "a task has at most 64 dims");
    r->dims = RUNG_ARENA_NEW(r->arena, struct rung_dim, MAX_NAMED);
    r->task->dims = r->dims;
    for (const struct rung_node *c = n && n <= MAX_NAMED ? group->first : NULL; c; c = c->next)
        read_dim(r, c);
    r->broken |= r->diags->n != before;
}

/* ---- Parameters ----------------------------------------------------------------------------- */

static const char *const param_keys[] = {"name", "dtype", "value", NULL};

static void read_param(struct task_reader *r, const struct rung_node *node)
{
    static const struct task_word dtypes[] = {{"i64", RUNG_I64}, {"f64", RUNG_F64}, {NULL, 0}};
    struct rung_param *p = &r->params[r->task->n_params];
    *p = (struct rung_param){.struct_size = sizeof *p};
    p->name = rung_config_string(node, "name", NULL, r->diags);
    p->dtype = task_word(r, node, "dtype", dtypes);
    bool complete = require_all(r, node, "a parameter", param_keys);
    rung_diag_unknown(r->diags, node, "a parameter", param_keys);
    if (!complete || !p->name || !p->dtype || !check_name(r, node, "parameter", p->name))
        return;
    if (p->dtype == RUNG_I64)
        p->i64 = rung_config_int(node, "value", 0, INT64_MIN, INT64_MAX, r->diags);
    else
        p->f64 = rung_config_float(node, "value", 0, -INFINITY, INFINITY, r->diags);
    r->task->n_params++;
}

/* A list of at most `most` groups, each given to read. */
static void read_groups(struct task_reader *r, const struct rung_node *list, size_t most,
                        void (*read)(struct task_reader *, const struct rung_node *))
{
    if (list && rung_node_count(list) > most) {
        RUNG_DIAG_AT(r->diags, list, "'%s' has %zu items; %zu are allowed", list->name,
                     rung_node_count(list), most);
        return;
    }
    for (struct rung_node *c = list ? list->first : NULL; c; c = c->next) {
        c->used = true;
        if (c->type == RUNG_NODE_GROUP)
            read(r, c);
        else
            RUNG_DIAG_AT(r->diags, c, "'%s' must hold groups { ... }, but this is %s", list->name,
                         rung_node_type_name(c->type));
    }
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static const char *const tensor_keys[] = {"name",    "role", "dtype", "shape",
                                          "strides", "fill", "align", NULL};
static const struct task_word roles[] = {{"input", RUNG_ROLE_INPUT},
                                         {"output", RUNG_ROLE_OUTPUT},
                                         {"inout", RUNG_ROLE_INOUT},
                                         {"weight", RUNG_ROLE_WEIGHT},
                                         {NULL, 0}};
static const struct task_word dtypes_all[] = {
    {"f64", RUNG_F64}, {"f32", RUNG_F32}, {"f16", RUNG_F16}, {"bf16", RUNG_BF16}, {"i8", RUNG_I8},
    {"u8", RUNG_U8},   {"i32", RUNG_I32}, {"i64", RUNG_I64}, {"bool", RUNG_BOOL}, {NULL, 0}};

/* what: "size" or "stride". */
static bool check_size(struct task_reader *r, const struct rung_node *node, const char *what,
                       const char *text)
{
    struct rung_task_values values = {r->task, r->defaults, r->task->n_dims, false};
    struct rung_scope scope = rung_task_scope(&values);
    const char *problem;
    bool is_float = false;
    const struct rung_expr *e = rung_expr_parse(r->arena, text, &problem);
    if (e && rung_expr_check(e, &scope, r->arena, &is_float, &problem) && !is_float)
        return true;
    RUNG_DIAG_AT(r->diags, node, "%s \"%s\": %s; %ss are separated by commas", what, text,
                 is_float ? "it must be an integer" : problem, what);
    return false;
}

static bool read_shape(struct task_reader *r, const struct rung_node *group,
                       struct rung_tensor_spec *t)
{
    const struct rung_node *node = rung_config_child(group, "shape", RUNG_NODE_STRING, r->diags);
    const char **items;
    size_t n;
    if (!node)
        return false;
    if (!rung_expr_split(r->arena, node->s, &items, &n)) {
        RUNG_DIAG_AT(r->diags, node, "shape \"%s\": the parentheses don't match", node->s);
        return false;
    }
    if (n > RUNG_MAX_DIMS) {
        RUNG_DIAG_AT(r->diags, node, "a tensor has at most %d axes, this one has %zu",
                     RUNG_MAX_DIMS, n);
        return false;
    }
    bool good = true;
    for (size_t i = 0; i < n; i++)
        good &= check_size(r, node, "size", t->shape[i] = items[i]);
    t->n_dims = (uint32_t)n;
    return good;
}

/* After the shape. True also without any. */
static bool read_strides(struct task_reader *r, const struct rung_node *group,
                         struct rung_tensor_spec *t)
{
    const struct rung_node *node = rung_config_child(group, "strides", RUNG_NODE_STRING, r->diags);
    const char **items;
    size_t n;
    bool good = true;
    if (!node)
        return true;
    if (!rung_expr_split(r->arena, node->s, &items, &n)) {
        RUNG_DIAG_AT(r->diags, node, "strides \"%s\": the parentheses don't match", node->s);
        return false;
    }
    if (n != t->n_dims || n == 0) {
        RUNG_DIAG_AT(r->diags, node,
                     "strides \"%s\" has %zu items, but shape has %u; say for each axis how many "
                     "elements lie from one to the next, such as \"cols + 3, 1\", or leave "
                     "'strides' out",
                     node->s, n, t->n_dims);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        good &= check_size(r, node, "stride", t->stride[i] = items[i]);
    return good;
}

static void read_fill(struct task_reader *r, const struct rung_node *group,
                      struct rung_tensor_spec *t)
{
    const struct rung_node *node = rung_config_child(group, "fill", RUNG_NODE_STRING, r->diags);
    size_t n = 0;
    bool known = false;
    for (; rung_task_fill_kinds[n]; n++)
        known |= node && strcmp(rung_task_fill_kinds[n], node->s) == 0;
    t->fill = node && known ? node->s : "normal";
    if (node && !known) {
        const char *near = rung_nearest(node->s, rung_task_fill_kinds, n);
        RUNG_DIAG_AT(r->diags, node, "there is no fill \"%s\"%s%s%s", node->s,
                     near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    if (node && t->role == RUNG_ROLE_OUTPUT)
        RUNG_DIAG_AT(r->diags, node, "an output has no fill: it starts unwritten");
}

static void read_tensor(struct task_reader *r, const struct rung_node *node)
{
    uint32_t i = r->task->n_tensors;
    struct rung_tensor_spec *t = &r->tensors[i];
    size_t before = r->diags->n;
    *t = (struct rung_tensor_spec){.struct_size = sizeof *t};
    static const char *const required[] = {"name", "role", "dtype", "shape", NULL};
    bool complete = require_all(r, node, "a tensor", required);
    t->name = rung_config_string(node, "name", NULL, r->diags);
    t->role = task_word(r, node, "role", roles);
    t->dtype = task_word(r, node, "dtype", dtypes_all);
    t->alignment =
        (uint64_t)rung_config_int(node, "align", DEFAULT_ALIGNMENT, 1, MAX_ALIGNMENT, r->diags);
    if (t->alignment & (t->alignment - 1))
        RUNG_DIAG_AT(r->diags, rung_node_get(node, "align"), "'align' must be a power of two");
    read_fill(r, node, t);
    bool shaped = read_shape(r, node, t);
    if (shaped || t->n_dims) /* a fault of a size hides none of the strides */
        shaped = read_strides(r, node, t) && shaped;
    rung_diag_unknown(r->diags, node, "a tensor", tensor_keys);
    r->broken |= r->diags->n != before;
    if (!complete || !t->name || !check_name(r, node, "tensor", t->name))
        return;
    r->task->n_tensors++;
    struct rung_error err = rung_error_init();
    struct rung_layout layout;
    if (shaped && !r->broken &&
        rung_task_layout(r->task, i, r->defaults, &layout, &err) != RUNG_OK) {
        const struct rung_node *strides = rung_node_get(node, "strides");
        RUNG_DIAG_AT(r->diags, strides ? strides : node, "%s", err.message);
        r->broken = true;
    }
}

static void check_outputs(struct task_reader *r, const struct rung_node *list)
{
    bool writes = false;
    for (uint32_t i = 0; i < r->task->n_tensors; i++)
        writes |= r->tensors[i].role == RUNG_ROLE_OUTPUT || r->tensors[i].role == RUNG_ROLE_INOUT;
    if (!writes && !r->broken)
        RUNG_DIAG_AT(r->diags, list,
                     "a task needs at least one tensor with role \"output\" or \"inout\"");
}

static void read_title(struct task_reader *r, const struct rung_node *root)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    r->task->summary = rung_config_string(root, "summary", "", r->diags);
    if (!task_require(r, root, "the task", "name"))
        return;
    const char *name = rung_config_string(root, "name", NULL, r->diags);
    if (name && (!*name || *name == '.' || *name == '-' || strlen(name) > 63 ||
                 name[strspn(name, allowed)]))
        RUNG_DIAG_AT(
            r->diags, rung_node_get(root, "name"),
            "the name \"%s\" must be 1 to 63 of [A-Za-z0-9_.-] and start with a letter or digit",
            name);
    r->task->name = name;
}

const char *const rung_task_keys[] = {"name",      "summary", "dims",  "params", "tensors",
                                      "reference", "check",   "bench", "base",   NULL};

const struct rung_task *rung_task_read(struct rung_arena *arena, const struct rung_node *root,
                                       struct rung_diags *diags)
{
    struct rung_task_rest rest;
    return rung_task_read_all(arena, root, &rest, diags);
}

const struct rung_task *rung_task_read_all(struct rung_arena *arena, const struct rung_node *root,
                                           struct rung_task_rest *rest, struct rung_diags *diags)
{
    *rest = (struct rung_task_rest){0};
    struct rung_task *task = RUNG_ARENA_NEW(arena, struct rung_task, 1);
    *task = (struct rung_task){.struct_size = sizeof *task};
    struct task_reader r = {.arena = arena, .diags = diags, .task = task};
    size_t before = diags->n;
    task->params = r.params = RUNG_ARENA_NEW(arena, struct rung_param, MAX_NAMED);
    task->tensors = r.tensors = RUNG_ARENA_NEW(arena, struct rung_tensor_spec, MAX_NAMED);
    read_title(&r, root);
    read_dims(&r, root);
    read_groups(&r, rung_config_child(root, "params", RUNG_NODE_LIST, diags), MAX_NAMED,
                read_param);
    const struct rung_node *tensors = rung_config_child(root, "tensors", RUNG_NODE_LIST, diags);
    read_groups(&r, tensors, MAX_NAMED, read_tensor);
    if (task_require(&r, root, "the task", "tensors") && tensors)
        check_outputs(&r, tensors);
    task_read_check(&r, root);
    task_read_bench(&r, root, rest);
    task_read_reference(&r, root, rest);
    rung_diag_unknown(diags, root, "a task", rung_task_keys);
    return diags->n == before ? task : NULL;
}
