/* Grid and block as a kernel's indices show them: see infer.h. */
#include "infer.h"
#include <stdlib.h>
#include <string.h>

struct reader {
    struct cg_host *h;
    const struct cg_tokens *c;
    struct cg_axis *axes;
};

static const struct cg_token *at(const struct reader *r, uint32_t i)
{
    return &r->c->t[i < r->c->n ? i : r->c->n];
}

/* The axis of `name.x` at i, or -1. */
static int axis_at(const struct reader *r, uint32_t i, const char *name)
{
    const struct cg_token *axis = at(r, i + 2);
    if (!cg_is(at(r, i), name) || !cg_is(at(r, i + 1), ".") || axis->n != 1)
        return -1;
    return axis->s[0] >= 'x' && axis->s[0] <= 'z' ? axis->s[0] - 'x' : -1;
}

/* Behind the expression at i: a comma, semicolon or closing bracket, or logic. */
static uint32_t expression_end(const struct reader *r, uint32_t i)
{
    while (i < r->c->n) {
        const struct cg_token *t = at(r, i);
        if (cg_is(t, ",") || cg_is(t, ";") || cg_is(t, ")") || cg_is(t, "]") || cg_is(t, "&&") ||
            cg_is(t, "||") || cg_is(t, "?") || cg_is(t, "{") || cg_is(t, "}") || cg_is(t, ":"))
            return i;
        i = r->c->partner[i] > i ? r->c->partner[i] + 1 : i + 1;
    }
    return i;
}

static const struct cg_sym *value_of(struct reader *r, uint32_t from, uint32_t to)
{
    struct cg_value v = cg_eval_range(r->h, from, to);
    return v.kind == CG_NUM && !v.sym->real ? v.sym : NULL;
}

/* An index: blockIdx.A * factor + threadIdx.A, or blockIdx.A alone. */
struct index {
    int axis;
    bool linear;
    const struct cg_sym *factor; /* NULL: blockDim.A */
    int64_t divisor;             /* of the whole: 32 for warps */
};

/* Reads [from, to) as an index; false when it is none. */
static bool read_index(struct reader *r, uint32_t from, uint32_t to, struct index *out)
{
    int blocks = 0, threads = 0, dims = 0, factors = 0, plus = 0, times = 0, axis = -1;
    *out = (struct index){.divisor = 1};
    for (uint32_t i = from; i < to; i++) {
        const struct cg_token *t = at(r, i);
        int b = axis_at(r, i, "blockIdx"), th = axis_at(r, i, "threadIdx");
        int d = axis_at(r, i, "blockDim"), a = b >= 0 ? b : th >= 0 ? th : d;
        if (a >= 0) {
            if (axis >= 0 && axis != a)
                return false;
            axis = a;
            blocks += b >= 0;
            threads += th >= 0;
            dims += d >= 0;
            i += 2;
        } else if (cg_is(t, "+")) {
            plus++;
        } else if (cg_is(t, "*")) {
            times++;
        } else if ((cg_is(t, "/") || (cg_is(t, ">") && cg_is(t + 1, ">"))) && plus) {
            const struct cg_sym *k = value_of(r, i + (cg_is(t, "/") ? 1 : 2), to);
            int64_t n;
            if (!cg_sym_constant(k, &n) || n <= 0 || n > 1024)
                return false;
            out->divisor = cg_is(t, "/") ? n : (int64_t)1 << (n < 10 ? n : 10);
            break;
        } else if (t->kind == CG_NAME || t->kind == CG_NUMBER) {
            out->factor = value_of(r, i, i + 1);
            factors++;
            if (!out->factor)
                return false;
        } else if (!cg_is(t, "(") && !cg_is(t, ")")) {
            return false;
        }
    }
    out->axis = axis;
    out->linear = threads == 1;
    if (blocks != 1 || axis < 0)
        return false;
    return out->linear ? plus == 1 && times == 1 && dims + factors == 1
                       : !plus && !times && !dims && !factors;
}

/* The bound E of `name < E` or `name >= E`; NULL when there is none that can be told. */
static const struct cg_sym *bound_of(struct reader *r, const struct cg_token *name)
{
    for (uint32_t i = 0; i + 2 < r->c->n; i++) {
        const struct cg_token *t = at(r, i), *op = t + 1;
        if (t->kind != CG_NAME || t->n != name->n || memcmp(t->s, name->s, t->n) != 0 ||
            (!cg_is(op, "<") && !cg_is(op, ">=")) || (i && cg_is(t - 1, "+")))
            continue;
        const struct cg_sym *e = value_of(r, i + 2, expression_end(r, i + 2));
        if (e)
            return e;
    }
    return NULL;
}

/* Elements of the task's main tensor by the factor that a row's index is multiplied with. */
static const struct cg_sym *rows_by(struct reader *r, const struct cg_sym *factor)
{
    const struct rung_task *task = r->h->task;
    for (uint32_t i = 0; factor && i < task->n_tensors; i++) {
        struct cg_value t = cg_task_tensor(r->h, i);
        const struct cg_sym *n = cg_sym(r->h->pool, SYM_DIV, cg_product(r->h, t.list, t.n), factor);
        if (n && n->op != SYM_DIV && t.n > 1)
            return n;
    }
    return NULL;
}

/* What `name * factor` says; name is blockIdx.A (three tokens) or a variable of it. */
static const struct cg_sym *rows_of(struct reader *r, uint32_t i, uint32_t width)
{
    uint32_t next = i + width;
    if (cg_is(at(r, next), "*")) {
        const struct cg_token *t = at(r, next + 1);
        uint32_t end = cg_is(t, "(") ? r->c->partner[next + 1] + 1 : next + 2;
        return rows_by(r, value_of(r, next + 1, end));
    }
    if (i > 1 && cg_is(at(r, i - 1), "*"))
        return rows_by(r, value_of(r, i - 2, i - 1));
    if (cg_is(at(r, next), "<") || cg_is(at(r, next), ">="))
        return value_of(r, next + 1, expression_end(r, next + 1));
    return NULL;
}

static void set_extent(struct cg_axis *a, const struct cg_sym *extent, bool threads)
{
    if (!extent)
        return;
    if (!a->extent) {
        a->extent = extent;
        a->counts_threads = threads;
    }
}

static void use_index(struct reader *r, const struct cg_token *name, const struct index *x)
{
    struct cg_axis *a = &r->axes[x->axis];
    struct cg_pool *p = r->h->pool;
    a->blocks = true;
    a->threads |= x->linear;
    const struct cg_sym *bound = bound_of(r, name);
    for (uint32_t i = 0; !bound && !x->linear && i < r->c->n; i++)
        if (at(r, i)->kind == CG_NAME && at(r, i)->n == name->n && at(r, i) != name &&
            !memcmp(at(r, i)->s, name->s, name->n))
            bound = rows_of(r, i, 1);
    if (x->linear) {
        if (x->factor)
            a->block = x->factor;
        else
            a->free = true;
        bound = cg_sym(p, SYM_MUL, bound, cg_sym_int(p, x->divisor));
    }
    a->unclear |= !bound;
    set_extent(a, bound, x->linear);
}

/* `NAME = ...` at i (its '='), when that is a number of the task. */
static void read_number(struct reader *r, uint32_t i)
{
    uint32_t end = expression_end(r, i + 1);
    const char *name = cg_token_text(r->h->pool, at(r, i - 1));
    for (uint32_t k = i + 1; k < end; k++)
        if (cg_is(at(r, k), "blockIdx") || cg_is(at(r, k), "threadIdx") || cg_is(at(r, k), "[") ||
            cg_is(at(r, k), "="))
            return;
    const struct cg_sym *v = value_of(r, i + 1, end);
    if (v && !cg_find_variable(r->h, name))
        cg_declare(r->h, name, cg_number(v), (struct cg_type){.text = ""});
}

/* `NAME = ...` at i (its '='), when that is an index. Returns where to go on. */
static uint32_t read_definition(struct reader *r, uint32_t i)
{
    struct index x;
    uint32_t end = expression_end(r, i + 1);
    if (!read_index(r, i + 1, end, &x))
        return i + 1;
    use_index(r, at(r, i - 1), &x);
    return end;
}

/* for (i = threadIdx.x; ...; i += 256): the block is what the loop steps by. */
static void read_stride(struct reader *r, uint32_t i)
{
    int axis = axis_at(r, i, "threadIdx");
    if (axis < 0 || !cg_is(at(r, i - 1), "=") || !cg_is(at(r, i + 3), ";"))
        return;
    struct cg_axis *a = &r->axes[axis];
    const struct cg_token *name = at(r, i - 2);
    for (uint32_t k = i + 3; k < r->c->n && k < i + 40; k++) {
        if (at(r, k)->n != name->n || memcmp(at(r, k)->s, name->s, name->n) != 0 ||
            !cg_is(at(r, k + 1), "+="))
            continue;
        int dim = axis_at(r, k + 2, "blockDim");
        const struct cg_sym *step = dim < 0 ? value_of(r, k + 2, expression_end(r, k + 2)) : NULL;
        if (step && !a->block)
            a->block = step;
        return;
    }
}

/* __shared__ float s[256], one element a thread; arrays of warps are smaller. */
static void read_shared(struct reader *r, uint32_t i)
{
    int64_t n;
    while (i < r->c->n && !cg_is(at(r, i), ";") && !cg_is(at(r, i), "["))
        i++;
    if (!cg_is(at(r, i), "[") || r->c->partner[i] <= i || cg_is(at(r, r->c->partner[i] + 1), "["))
        return;
    const struct cg_sym *size = value_of(r, i + 1, r->c->partner[i]);
    if (cg_sym_constant(size, &n) && n >= 64 && n <= 1024 && !r->axes[0].block)
        r->axes[0].block = size;
}

void cg_read_indices(struct cg_host *h, const struct cg_tokens *body, struct cg_axis axes[3])
{
    struct reader r = {.h = h, .c = body, .axes = axes};
    const struct cg_tokens *old = h->code;
    h->code = body;
    for (uint32_t i = 1; i < body->n; i++) /* numbers first: a bound may stand below its index */
        if (cg_is(at(&r, i), "=") && at(&r, i - 1)->kind == CG_NAME)
            read_number(&r, i);
    for (uint32_t i = 1; i < body->n; i++) {
        int b = axis_at(&r, i, "blockIdx"), t = axis_at(&r, i, "threadIdx");
        int d = axis_at(&r, i, "blockDim");
        cg_step(h->pool);
        if (cg_is(at(&r, i), "=") && at(&r, i - 1)->kind == CG_NAME) {
            uint32_t behind = read_definition(&r, i);
            for (uint32_t k = i + 1; k < behind && behind > i + 1; k++)
                read_stride(&r, k);
            i = behind > i + 1 ? behind - 1 : i;
        } else if (b >= 0) {
            const struct cg_sym *rows = rows_of(&r, i, 3);
            axes[b].blocks = true;
            axes[b].unclear |= !rows && !axes[b].extent;
            set_extent(&axes[b], rows, false);
        } else if (t >= 0) {
            axes[t].threads = true;
            read_stride(&r, i);
        } else if (d >= 0) {
            axes[d].free = true;
        } else if (cg_is(at(&r, i), "__shared__")) {
            read_shared(&r, i);
        }
    }
    h->code = old;
}

/* ---- Hints ---------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The value of an expression that stands in prose: up to a comma, a backtick or the line's end. */
static struct cg_value value_in(struct cg_host *h, const char *from, const char *end)
{
    int depth = 0;
    const char *to = from;
    for (; *to && to < end && *to != '\n' && *to != '`' && *to != ';'; to++) {
        depth += (*to == '(') - (*to == ')');
        if (depth < 0 || (depth == 0 && (*to == ',' || (*to == '.' && !is_word(to[1])))))
            break;
    }
    struct cg_tokens code =
        cg_lex(h->pool, cg_text(h->pool, from, (size_t)(to - from)), CG_CPP, NULL);
    const struct cg_tokens *old = h->code;
    h->code = &code;
    struct cg_value v = cg_eval_range(h, 0, code.n);
    h->code = old;
    return v;
}

/* Behind "word =" or "word:" in the text, or NULL. */
static const char *behind_key(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += n) {
        if ((p > text && is_word(p[-1])) || is_word(p[n]))
            continue;
        const char *q = p + n + strspn(p + n, " ");
        if ((*q == '=' && q[1] != '=') || *q == ':')
            return q + 1;
    }
    return NULL;
}

bool cg_read_hint(struct cg_host *h, const char *text, struct cg_value *grid,
                  struct cg_value *block)
{
    const char *g = behind_key(text, "grid"), *b = behind_key(text, "block");
    const char *of = strstr(text, " blocks of ");
    if (g && b) {
        *grid = value_in(h, g, g + strlen(g));
        *block = value_in(h, b, b + strlen(b));
    } else if (of) {
        const char *from = of;
        if (from > text && from[-1] == '`') {
            for (from--; from > text && from[-1] != '`' && from[-1] != '\n';)
                from--;
            *grid = value_in(h, from, of - 1);
        } else {
            while (from > text && is_word(from[-1]))
                from--;
            *grid = value_in(h, from, of);
        }
        *block = cg_int(h, strtol(of + strlen(" blocks of "), NULL, 10));
    } else {
        return false;
    }
    bool good_grid = grid->kind == CG_NUM || grid->kind == CG_LIST || grid->kind == CG_DIM3;
    bool good_block = block->kind == CG_NUM || block->kind == CG_LIST || block->kind == CG_DIM3;
    int64_t n;
    return good_grid && good_block &&
           !(block->kind == CG_NUM && cg_sym_constant(block->sym, &n) && (n < 1 || n > 1024));
}
