/* Plans for a kernel alone: see translate.h. */
#include "infer.h"
#include "emit.h"
#include "names.h"
#include "translate.h"
#include <string.h>

enum { FREE_BLOCK = 256, FREE_SIDE = 16 };

static const struct cg_item *only_kernel(const struct cg_items *items, uint32_t *n)
{
    const struct cg_item *found = NULL;
    *n = 0;
    for (size_t k = 0; k < items->n; k++)
        if (items->list[k].global && items->list[k].kind == CG_FUNCTION) {
            found = &items->list[k];
            ++*n;
        }
    return found;
}

/* The body without casts, which hide the form of indices. */
static struct cg_tokens without_casts(struct cg_host *h, const struct cg_tokens *body)
{
    struct cg_token *t = cg_take(h->pool, (body->n + 1) * sizeof(*t));
    size_t n = 0;
    for (uint32_t i = 0; i < body->n; i++) {
        struct cg_type type;
        const struct cg_token *at = &body->t[i];
        uint32_t close = body->partner[i];
        bool open = cg_is(at, "(") && close > i + 1;
        bool number = open && cg_read_type(h, body, i + 1, close, &type) == close &&
                      (type.cls == CG_TYPE_INT || type.cls == CG_TYPE_REAL);
        bool named = cg_is(at, "static_cast") && i + 1 < body->n && cg_is(at + 1, "<");
        bool function = at->kind == CG_NAME && i + 1 < body->n && cg_is(at + 1, "(") &&
                        cg_dtype_of_name(cg_token_text(h->pool, at));
        if (number)
            i = close;
        else if (named && cg_close_angle(body, i + 1, body->n) > i + 1)
            i = cg_close_angle(body, i + 1, body->n) - 1;
        else if (!function)
            t[n++] = *at;
    }
    return cg_pair(h->pool, t, n);
}

/* Whether the body stores through the parameter; *adds when by an atomic operation. */
static bool writes(const struct cg_tokens *c, const char *name, bool *adds)
{
    bool written = false;
    for (uint32_t i = 0; i + 1 < c->n; i++) {
        const struct cg_token *t = &c->t[i];
        if (t->kind != CG_NAME || !cg_is(t, name))
            continue;
        uint32_t k = i + 1;
        if (cg_is(&c->t[k], "[") && c->partner[k] > k)
            k = c->partner[k] + 1;
        bool store = cg_is(&c->t[k], "=") ||
                     (c->t[k].n == 2 && c->t[k].s[1] == '=' && strchr("+-*/", c->t[k].s[0]));
        bool whole = k == i + 1;
        written |= store && (!whole || (i && cg_is(t - 1, "*")));
        for (uint32_t b = i; b > 0 && i - b < 3; b--)
            if (c->t[b - 1].kind == CG_NAME && c->t[b - 1].n > 6 &&
                !memcmp(c->t[b - 1].s, "atomic", 6))
                *adds = written = true;
    }
    return written;
}

static bool mentions(const struct cg_tokens *c, const char *name)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (cg_is(&c->t[i], name))
            return true;
    return false;
}

/* Whether the name is multiplied with something: a row's length, not a number of elements. */
static bool is_factor(const struct cg_tokens *c, const char *name)
{
    for (uint32_t i = 1; i + 1 < c->n; i++)
        if (cg_is(&c->t[i], name) && (cg_is(&c->t[i - 1], "*") || cg_is(&c->t[i + 1], "*")))
            return true;
    return false;
}

/* Whether what is compared with the name is an index of elements: i < n and x[i]. */
static bool bounds_elements(const struct cg_tokens *c, const char *name)
{
    bool compared = false;
    for (uint32_t i = 1; i + 1 < c->n; i++) {
        const struct cg_token *v = &c->t[i - 1];
        if (!cg_is(&c->t[i + 1], name) || (!cg_is(&c->t[i], "<") && !cg_is(&c->t[i], ">=")))
            continue;
        compared = true;
        for (uint32_t k = 0; v->kind == CG_NAME && k + 2 < c->n; k++)
            if (cg_is(&c->t[k], "[") && cg_is(&c->t[k + 2], "]") && c->t[k + 1].n == v->n &&
                !memcmp(c->t[k + 1].s, v->s, v->n))
                return true;
    }
    return !compared;
}

/*
 * `n` of a kernel whose blocks walk along rows is the last axis; what bounds an index of rows is
 * the number of rows; else it is the number of elements.
 */
static void bind_row_length(struct cg_host *h, const struct cg_tokens *body, struct cg_slot *slot)
{
    if (slot->type.cls != CG_TYPE_INT || slot->value.kind != CG_NUM ||
        !cg_names_total(cg_plain_name(h->pool, slot->name)))
        return;
    if (slot->value.sym->op == SYM_NAME &&
        !strcmp(cg_plain_name(h->pool, slot->value.sym->name), cg_plain_name(h->pool, slot->name)))
        return; /* the task calls a dim so */
    for (uint32_t i = 0; i < h->task->n_tensors; i++) {
        const struct rung_tensor_spec *t = &h->task->tensors[i];
        if (t->role != RUNG_ROLE_INPUT || t->n_dims < 2)
            continue;
        struct cg_value whole = cg_task_tensor(h, i);
        if (is_factor(body, slot->name))
            slot->value = whole.list[whole.n - 1];
        else if (bounds_elements(body, slot->name))
            slot->value = cg_number(cg_product(h, whole.list, whole.n));
        else
            slot->value = cg_number(cg_product(h, whole.list, whole.n - 1));
        return;
    }
}

/* Binds the parameters and declares them; a problem where one stays open. */
static void bind_params(struct cg_host *h, const struct cg_item *k, const struct cg_tokens *body,
                        struct cg_slot *slots)
{
    uint32_t n = k->n_params < CG_MAX_ARGS ? k->n_params : CG_MAX_ARGS;
    bool adds = false;
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = (struct cg_slot){.name = k->params[i].name,
                                    .type = cg_param_type(h, h->tokens, &k->params[i])};
        slots[i].written = !slots[i].type.is_const && slots[i].type.cls == CG_TYPE_POINTER &&
                           writes(body, slots[i].name, &adds);
    }
    cg_bind(h, slots, n);
    for (uint32_t i = 0; i < n; i++) {
        bind_row_length(h, body, &slots[i]);
        if (slots[i].value.kind == CG_NOTHING)
            cg_problem(h, "what `%s` of `%s` stands for is not plain", slots[i].name, k->name);
        cg_declare(h, slots[i].name, slots[i].value, slots[i].type);
    }
    if (adds)
        cg_problem(h, "`%s` adds into memory that has to be cleared", k->name);
}

/* N of __launch_bounds__(N); NULL without. */
static const struct cg_sym *launch_bounds(struct cg_host *h, const struct cg_item *k)
{
    for (uint32_t i = k->from; i + 1 < k->open; i++) {
        if (!cg_is(&h->tokens->t[i], "__launch_bounds__"))
            continue;
        uint32_t close = h->tokens->partner[i + 1], starts[4], ends[4];
        if (close <= i + 1 || !cg_split_list(h->tokens, i + 2, close, starts, ends, 4))
            return NULL;
        struct cg_tokens code =
            cg_expand(h->pool, h->macros, &h->tokens->t[starts[0]], &h->tokens->t[ends[0]]);
        const struct cg_tokens *old = h->code;
        h->code = &code;
        struct cg_value v = cg_eval_range(h, 0, code.n);
        h->code = old;
        return v.kind == CG_NUM ? v.sym : NULL;
    }
    return NULL;
}

/* Threads of a block along all axes; a problem where the code leaves them open. */
static void choose_block(struct cg_host *h, const struct cg_item *k, struct cg_axis axes[3],
                         struct cg_value block[3])
{
    const struct cg_sym *bounds = launch_bounds(h, k);
    int used = 0;
    for (int i = 0; i < 3; i++)
        used += axes[i].threads || axes[i].free;
    for (int i = 0; i < 3; i++) {
        bool open = (axes[i].threads || axes[i].free) && !axes[i].block;
        int64_t n = used == 1 ? FREE_BLOCK : FREE_SIDE;
        block[i] = cg_number(axes[i].block ? axes[i].block : cg_sym_int(h->pool, 1));
        if (open && used == 1 && bounds)
            block[i] = cg_number(bounds);
        else if (open && (!axes[i].free || used > 2))
            cg_problem(h, "how many threads a block of `%s` has is not plain", k->name);
        else if (open)
            block[i] = cg_int(h, n);
    }
}

static void choose_grid(struct cg_host *h, const struct cg_item *k, const struct cg_axis axes[3],
                        const struct cg_value block[3], struct cg_value grid[3])
{
    for (int i = 0; i < 3; i++) {
        grid[i] = cg_int(h, 1);
        if (!axes[i].blocks)
            continue;
        if (axes[i].unclear || !axes[i].extent)
            cg_problem(h, "the grid of `%s` along %c can't be told from its indices", k->name,
                       'x' + i);
        else
            grid[i] = cg_number(axes[i].counts_threads
                                    ? cg_sym(h->pool, SYM_CEIL_DIV, axes[i].extent, block[i].sym)
                                    : axes[i].extent);
    }
}

static void infer(struct cg_host *h, const struct cg_item *k, const char *hints)
{
    struct cg_tokens expanded =
        cg_expand(h->pool, h->macros, &h->tokens->t[k->open + 1], &h->tokens->t[k->close]);
    struct cg_tokens body = without_casts(h, &expanded);
    struct cg_slot slots[CG_MAX_ARGS];
    struct cg_value args[CG_MAX_ARGS], block[3], grid[3];
    struct cg_axis axes[3] = {{0}};
    bind_params(h, k, &body, slots);
    if (mentions(h->tokens, "extern") && mentions(h->tokens, "__shared__"))
        for (uint32_t i = 0; i + 1 < h->tokens->n; i++)
            if (cg_is(&h->tokens->t[i], "extern") && cg_is(&h->tokens->t[i + 1], "__shared__"))
                cg_problem(h, "the bytes of dynamic shared memory are not said");
    if (h->problem)
        return;
    struct cg_launch_spec spec = {.kernel = {.kind = CG_CALLEE, .item = k, .text = ""},
                                  .shared = cg_int(h, 0)};
    if (!cg_read_hint(h, hints, &spec.grid, &spec.block)) {
        cg_read_indices(h, &body, axes);
        choose_block(h, k, axes, block);
        choose_grid(h, k, axes, block, grid);
        spec.grid = cg_dim3(h, grid, 3);
        spec.block = cg_dim3(h, block, 3);
    }
    for (uint32_t i = 0; i < k->n_params && i < CG_MAX_ARGS; i++)
        args[i] = slots[i].value;
    cg_add_launch(h, &spec, args, k->n_params);
}

struct cg_translation cg_infer(struct cg_pool *pool, const struct rung_task *task, const char *code,
                               const char *prose)
{
    struct cg_macros macros = {0};
    struct cg_tokens tokens = cg_lex(pool, code, CG_CPP, &macros);
    struct cg_items items = cg_items_scan(pool, &tokens);
    struct cg_host *h = cg_take(pool, sizeof(*h));
    struct cg_temps *temps = cg_take(pool, sizeof(*temps));
    struct cg_translation out = {.note = ""};
    uint32_t n;
    const struct cg_item *k = only_kernel(&items, &n);
    *h = (struct cg_host){.pool = pool,
                          .task = task,
                          .tokens = &tokens,
                          .macros = &macros,
                          .items = &items,
                          .note = ""};
    h->bodies = cg_take(pool, (items.n + 1) * sizeof(*h->bodies));
    h->reaches = cg_take(pool, items.n + 1);
    h->code = &tokens;
    if (n != 1) {
        out.problem = n ? "there are several kernels and nothing says how they are launched"
                        : "there is no kernel with a body";
        return out;
    }
    infer(h, k, cg_format(pool, "%s\n%s", prose, code));
    struct cg_lines lines = h->problem ? (struct cg_lines){0} : cg_emit(h, temps);
    out.problem = h->problem;
    if (!h->problem)
        out.plan = cg_lines_text(h, temps, &lines);
    return out;
}
