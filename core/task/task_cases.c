/*
 * The parts of a task file that say how it is checked and timed: check, bench, reference. Pure; one
 * thread an arena.
 */
#include "task/task_reader.h"
#include "base/status.h"

#include <string.h>

enum { MAX_CASES = 256 };

const char *const rung_reference_keys[] = {"plugin", "graph", NULL};

uint32_t task_word(struct task_reader *r, const struct rung_node *group, const char *key,
                   const struct task_word *table)
{
    const struct rung_node *node = rung_config_child(group, key, RUNG_NODE_STRING, r->diags);
    struct rung_buf all = {0};
    uint32_t value = 0;
    for (; node && table->name; table++) {
        if (strcmp(table->name, node->s) == 0)
            value = table->value;
        rung_buf_printf(&all, "%s%s", all.len ? ", " : "", table->name);
    }
    if (node && !value)
        RUNG_DIAG_AT(r->diags, node, "'%s' can't be \"%s\"; it is one of %s", key, node->s,
                     rung_buf_text(&all));
    rung_buf_free(&all);
    return value;
}

bool task_require(struct task_reader *r, const struct rung_node *group, const char *what,
                  const char *key)
{
    if (rung_node_get(group, key))
        return true;
    RUNG_DIAG_AT(r->diags, group, "%s lacks '%s'", what, key);
    return false;
}

/* ---- Cases ---------------------------------------------------------------------------------- */

static void read_case_dim(struct task_reader *r, const struct rung_node *c, int64_t *dims)
{
    int i = rung_task_dim(r->task, c->name);
    if (i >= 0 && r->dims[i].derived)
        RUNG_DIAG_AT(r->diags, c, "dim '%s' is derived (%s); it can't be given", c->name,
                     r->dims[i].expr);
    else if (i >= 0 && c->type != RUNG_NODE_INT)
        RUNG_DIAG_AT(r->diags, c, "dim '%s' must be an integer, but it is %s", c->name,
                     rung_node_type_name(c->type));
    else if (i >= 0)
        dims[i] = c->i;
}

static void check_case(struct task_reader *r, const struct rung_node *node, int64_t *dims)
{
    struct rung_error err = rung_error_init();
    struct rung_layout layout;
    int32_t status = rung_task_complete(r->task, dims, &err);
    for (uint32_t i = 0; i < r->task->n_tensors && status == RUNG_OK; i++)
        status = rung_task_layout(r->task, i, dims, &layout, &err);
    if (status != RUNG_OK)
        RUNG_DIAG_AT(r->diags, node, "at these dims, %s", err.message);
}

static void read_case(struct task_reader *r, const struct rung_node *node, bool weighted,
                      struct rung_shape_case *out)
{
    const char *known[MAX_NAMED + 2] = {0};
    size_t n = 0, before = r->diags->n;
    int64_t *dims = RUNG_ARENA_NEW(r->arena, int64_t, r->task->n_dims);
    memcpy(dims, r->defaults, sizeof *dims * r->task->n_dims);
    for (uint32_t i = 0; i < r->task->n_dims; i++) {
        const struct rung_node *c = rung_node_get(node, r->dims[i].name);
        known[n++] = r->dims[i].name;
        if (c)
            read_case_dim(r, c, dims);
    }
    *out = (struct rung_shape_case){.struct_size = sizeof *out, .dims = dims, .weight = 1};
    if (weighted) {
        known[n++] = "weight";
        out->weight = rung_config_float(node, "weight", 1, 1e-9, 1e9, r->diags);
    }
    rung_diag_unknown(r->diags, node, weighted ? "a bench shape" : "a check shape", known);
    if (r->diags->n == before && !r->broken)
        check_case(r, node, dims);
}

static uint32_t read_cases(struct task_reader *r, const struct rung_node *group, const char *key,
                           bool weighted, const struct rung_shape_case **out)
{
    const struct rung_node *list = rung_config_child(group, key, RUNG_NODE_LIST, r->diags);
    size_t n = list ? rung_node_count(list) : 0, k = 0;
    if (n > MAX_CASES) {
        RUNG_DIAG_AT(r->diags, list, "'%s' has %zu items; 256 are allowed", key, n);
        n = 0;
    }
    struct rung_shape_case *cases = RUNG_ARENA_NEW(r->arena, struct rung_shape_case, n);
    for (struct rung_node *c = n ? list->first : NULL; c; c = c->next) {
        c->used = true;
        if (c->type == RUNG_NODE_GROUP)
            read_case(r, c, weighted, &cases[k++]);
        else
            RUNG_DIAG_AT(r->diags, c, "'%s' must hold groups such as { rows = 7; }, but this is %s",
                         key, rung_node_type_name(c->type));
    }
    *out = cases;
    return (uint32_t)k;
}

/* ---- Check, bench, reference ---------------------------------------------------------------- */

static const char *const check_keys[] = {"precision", "shapes", "extra", NULL};
static const char *const bench_keys[] = {"shapes", "baselines", "flops", "bytes", NULL};
static const struct task_word precisions[] = {{"fp32", RUNG_PRECISION_FP32},
                                              {"tf32", RUNG_PRECISION_TF32},
                                              {"fp16", RUNG_PRECISION_FP16},
                                              {"bf16", RUNG_PRECISION_BF16},
                                              {"fp64", RUNG_PRECISION_FP64},
                                              {"exact", RUNG_PRECISION_EXACT},
                                              {NULL, 0}};
static const struct task_word shape_rules[] = {
    {"range", RUNG_SHAPES_RANGE}, {"fixed", RUNG_SHAPES_FIXED}, {NULL, 0}};

/* Integer outputs are exact; an f64 output would be in vain with fp32 arithmetic; all else is fp32.
 */
static uint32_t default_precision(const struct task_reader *r)
{
    bool whole = true, wide = false;
    for (uint32_t i = 0; i < r->task->n_tensors; i++) {
        const struct rung_tensor_spec *t = &r->tensors[i];
        if (t->role != RUNG_ROLE_OUTPUT && t->role != RUNG_ROLE_INOUT)
            continue;
        whole &= t->dtype >= RUNG_I8;
        wide |= t->dtype == RUNG_F64;
    }
    return wide ? RUNG_PRECISION_FP64 : whole ? RUNG_PRECISION_EXACT : RUNG_PRECISION_FP32;
}

void task_read_check(struct task_reader *r, const struct rung_node *root)
{
    const struct rung_node *group = rung_config_child(root, "check", RUNG_NODE_GROUP, r->diags);
    r->task->precision = task_word(r, group, "precision", precisions);
    if (!r->task->precision)
        r->task->precision = default_precision(r);
    r->task->shape_rule = task_word(r, group, "shapes", shape_rules);
    if (!r->task->shape_rule)
        r->task->shape_rule = RUNG_SHAPES_RANGE;
    r->task->n_extra = read_cases(r, group, "extra", false, &r->task->extra);
    if (group)
        rung_diag_unknown(r->diags, group, "check", check_keys);
}

/* No shapes stand there: the dims' own values count. */
static void bench_at_defaults(struct task_reader *r)
{
    struct rung_shape_case *one = RUNG_ARENA_NEW(r->arena, struct rung_shape_case, 1);
    int64_t *dims = RUNG_ARENA_NEW(r->arena, int64_t, r->task->n_dims);
    memcpy(dims, r->defaults, sizeof *dims * r->task->n_dims);
    *one = (struct rung_shape_case){.struct_size = sizeof *one, .dims = dims, .weight = 1};
    r->task->bench = one;
    r->task->n_bench = 1;
}

static void read_baselines(struct task_reader *r, const struct rung_node *group,
                           struct rung_task_rest *rest)
{
    static const char *const none[] = {NULL};
    const struct rung_node *node = rung_node_get(group, "baselines");
    const char *const *names = rung_config_strings(r->arena, group, "baselines", r->diags);
    rest->baselines = names ? names : none;
    rest->baselines_node = node;
    for (size_t i = 0; rest->baselines[i]; i++) {
        if (!*rest->baselines[i])
            RUNG_DIAG_AT(r->diags, node, "'baselines' holds an empty name");
        for (size_t k = 0; k < i; k++)
            if (strcmp(rest->baselines[i], rest->baselines[k]) == 0)
                RUNG_DIAG_AT(r->diags, node, "'baselines' names \"%s\" twice", rest->baselines[i]);
    }
}

/* At every listed shape the stated work must be a number above 0. */
static void check_amount(struct task_reader *r, const struct rung_node *node,
                         const struct rung_task_amount *amount)
{
    uint32_t n = r->task->n_bench + r->task->n_extra;
    for (uint32_t i = 0; i < n; i++) {
        struct rung_error err = rung_error_init();
        double v;
        const int64_t *dims = i < r->task->n_bench ? r->task->bench[i].dims
                                                   : r->task->extra[i - r->task->n_bench].dims;
        if (rung_task_amount_at(r->task, amount, dims, &v, &err) == RUNG_OK)
            continue;
        RUNG_DIAG_AT(r->diags, node, "'%s': %s", node->name, err.message);
        return;
    }
}

/* Work that the task states in place of what its reference finds: a number, or an expression over
 * dims. */
static void read_amount(struct task_reader *r, const struct rung_node *group, const char *key,
                        struct rung_task_amount *out)
{
    const struct rung_node *node = rung_node_get(group, key);
    bool number = node && (node->type == RUNG_NODE_INT || node->type == RUNG_NODE_FLOAT);
    if (!node)
        return;
    if (!number && node->type != RUNG_NODE_STRING) {
        RUNG_DIAG_AT(r->diags, node,
                     "'%s' must be a number or an expression such as \"2*m*n*k\", but it is %s",
                     key, rung_node_type_name(node->type));
        return;
    }
    *out = (struct rung_task_amount){.given = true};
    out->value = node->type == RUNG_NODE_INT ? (double)node->i : node->f;
    out->expr = number ? NULL : node->s;
    if (!r->broken)
        check_amount(r, node, out);
}

void task_read_bench(struct task_reader *r, const struct rung_node *root,
                     struct rung_task_rest *rest)
{
    const struct rung_node *group = rung_config_child(root, "bench", RUNG_NODE_GROUP, r->diags);
    r->task->n_bench = read_cases(r, group, "shapes", true, &r->task->bench);
    read_baselines(r, group, rest);
    if (r->task->n_bench == 0)
        bench_at_defaults(r);
    read_amount(r, group, "flops", &rest->flops);
    read_amount(r, group, "bytes", &rest->bytes);
    if (group)
        rung_diag_unknown(r->diags, group, "bench", bench_keys);
}

void task_read_reference(struct task_reader *r, const struct rung_node *root,
                         struct rung_task_rest *rest)
{
    if (!task_require(r, root, "the task", "reference"))
        return;
    const struct rung_node *group = rung_config_child(root, "reference", RUNG_NODE_GROUP, r->diags);
    if (!group || !task_require(r, group, "reference", "plugin"))
        return;
    rest->reference = group;
    r->task->reference = rung_config_string(group, "plugin", NULL, r->diags);
    r->task->graph = rung_config_string(group, "graph", NULL, r->diags);
    if (r->task->reference && !*r->task->reference)
        RUNG_DIAG_AT(r->diags, rung_node_get(group, "plugin"), "'plugin' is empty");
}
