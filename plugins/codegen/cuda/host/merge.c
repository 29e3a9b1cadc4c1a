/* Merging the walks of several outcomes: see emit.h. */
#include "emit.h"
#include <string.h>

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_when(const struct cg_line *a, const struct cg_line *b)
{
    return (!a->when && !b->when) || (a->when && b->when && cg_sym_same(a->when, b->when));
}

/* Alike but for fields whose texts differ; their number, or -1. */
static int differences(const struct cg_line *a, const struct cg_line *b)
{
    int n = 0;
    if (a->kind != b->kind || a->n_fields != b->n_fields || a->cooperative != b->cooperative ||
        !same_text(a->name, b->name) || !same_when(a, b))
        return -1;
    for (uint32_t i = 0; i < a->n_fields; i++)
        n += !same_text(a->fields[i], b->fields[i]);
    return n;
}

/* Where `then` holds t and else f: min(f, t) for `f > t`, max for `f < t`. NULL for neither. */
static const char *min_max(struct cg_host *h, const struct cg_sym *c, const char *t, const char *f)
{
    if (c->op < SYM_LT || c->op > SYM_GE)
        return NULL;
    const char *a = cg_sym_text(h->pool, c->a), *b = cg_sym_text(h->pool, c->b);
    bool greater = c->op == SYM_GT || c->op == SYM_GE;
    if (same_text(a, f) && same_text(b, t))
        return cg_format(h->pool, greater ? "min(%s, %s)" : "max(%s, %s)", f, t);
    if (same_text(a, t) && same_text(b, f))
        return cg_format(h->pool, greater ? "max(%s, %s)" : "min(%s, %s)", t, f);
    return NULL;
}

/* One line out of two that differ as min and max do; false when they don't. */
static bool join(struct cg_host *h, const struct cg_sym *c, const struct cg_line *t,
                 const struct cg_line *f, struct cg_line *out)
{
    if (differences(t, f) < 0)
        return false;
    *out = *t;
    for (uint32_t i = 0; i < t->n_fields; i++) {
        if (same_text(t->fields[i], f->fields[i]))
            continue;
        out->fields[i] = min_max(h, c, t->fields[i], f->fields[i]);
        if (!out->fields[i])
            return false;
    }
    return true;
}

/* Whether `a` holds wherever `given` does, as far as comparisons with constants tell. */
static bool implies(struct cg_host *h, const struct cg_sym *given, const struct cg_sym *a)
{
    const struct cg_decision d = {given, true};
    if (a->op < SYM_EQ || a->op > SYM_GE || a->a->real || a->b->op != SYM_INT)
        return false;
    int64_t lo = a->a->lo, hi = a->a->hi;
    cg_narrow(&d, a->a, &lo, &hi);
    const struct cg_sym *range = cg_sym_name(h->pool, "", lo, hi, 1, false);
    const struct cg_sym *known = cg_sym(h->pool, a->op, range, a->b);
    return known && known->op == SYM_INT && known->i;
}

static const struct cg_sym *both(struct cg_host *h, const struct cg_sym *a, const struct cg_sym *b)
{
    if (b && implies(h, b, a))
        return b;
    const struct cg_sym *s = b ? cg_sym(h->pool, SYM_AND, a, b) : a;
    if (!s)
        cg_problem(h, "the conditions of the launches are too long");
    return s;
}

/*
 * Lines of both outcomes behind each other. Only launches have conditions: what clears or uploads
 * comes first, for both, and does no harm where it is not needed.
 */
static void separate(struct cg_host *h, const struct cg_sym *c, struct cg_lines *out,
                     struct cg_lines t, struct cg_lines f)
{
    const struct cg_sym *not_c = cg_sym(h->pool, SYM_NOT, c, NULL);
    uint32_t from[2] = {0, 0};
    struct cg_lines parts[2] = {t, f};
    for (int k = 0; k < 2; k++)
        for (; from[k] < parts[k].n && parts[k].list[from[k]].kind != CG_LAUNCH; from[k]++) {
            bool again = false;
            for (uint32_t i = 0; i < out->n; i++)
                again |= differences(&out->list[i], &parts[k].list[from[k]]) == 0;
            if (!again)
                out->list[out->n++] = parts[k].list[from[k]];
        }
    for (int k = 0; k < 2; k++)
        for (uint32_t i = from[k]; i < parts[k].n; i++) {
            struct cg_line *line = &out->list[out->n++];
            *line = parts[k].list[i];
            line->when = both(h, k ? not_c : c, line->when);
            if (line->kind != CG_LAUNCH)
                cg_problem(h, "memory is cleared or uploaded between launches that depend on a "
                              "condition");
        }
}

/*
 * One launch under a condition w in one outcome and always in the other is one launch under
 * `w or not c`: sets it in *t. false when the lines are different ones.
 */
static bool fold_last(struct cg_host *h, const struct cg_sym *c, struct cg_line *t,
                      const struct cg_line *f)
{
    struct cg_line always = *t;
    const struct cg_sym *not_c = cg_sym(h->pool, SYM_NOT, c, NULL);
    always.when = NULL;
    if (t->kind != CG_LAUNCH || !t->when || !not_c || differences(&always, f) != 0)
        return false;
    const struct cg_sym *either =
        implies(h, not_c, t->when) ? t->when : cg_sym(h->pool, SYM_OR, t->when, not_c);
    if (!either)
        return false;
    t->when = either;
    return true;
}

static struct cg_lines combine(struct cg_host *h, const struct cg_sym *c, struct cg_lines t,
                               struct cg_lines f)
{
    struct cg_lines out = {.list = cg_take(h->pool, (t.n + f.n + 1) * sizeof(*out.list))};
    uint32_t head = 0, tail = 0, least = t.n < f.n ? t.n : f.n;
    while (head < least && differences(&t.list[head], &f.list[head]) == 0)
        out.list[out.n++] = t.list[head++];
    while (tail < least - head &&
           differences(&t.list[t.n - 1 - tail], &f.list[f.n - 1 - tail]) == 0)
        tail++;
    uint32_t nt = t.n - head - tail, nf = f.n - head - tail;
    bool joined = nt == nf;
    for (uint32_t i = 0; i < nt && joined; i++)
        joined = join(h, c, &t.list[head + i], &f.list[head + i], &out.list[out.n + i]);
    if (!joined && nt >= 1 && nf == 1 && fold_last(h, c, &t.list[head + nt - 1], &f.list[head])) {
        /* what is left differs in one outcome only */
        nf = 0;
        struct cg_line last = t.list[head + --nt];
        separate(h, c, &out, (struct cg_lines){t.list + head, nt}, (struct cg_lines){NULL, 0});
        out.list[out.n++] = last;
    } else if (joined) {
        out.n += nt;
    } else {
        separate(h, c, &out, (struct cg_lines){t.list + head, nt},
                 (struct cg_lines){f.list + head, nf});
    }
    for (uint32_t i = 0; i < tail; i++)
        out.list[out.n++] = t.list[t.n - tail + i];
    return out;
}

static struct cg_lines merge(struct cg_host *h, const struct cg_leaf *leaves, uint32_t n, int depth)
{
    uint32_t split = 0;
    if (n == 1 || depth >= leaves[0].n_path)
        return leaves[0].lines;
    while (split < n && leaves[split].path[depth].value)
        split++;
    if (split == 0 || split == n)
        return merge(h, leaves, n, depth + 1);
    struct cg_lines yes = merge(h, leaves, split, depth + 1);
    struct cg_lines no = merge(h, leaves + split, n - split, depth + 1);
    return combine(h, leaves[0].path[depth].condition, yes, no);
}

struct cg_lines cg_merge(struct cg_host *h, const struct cg_leaf *leaves, uint32_t n)
{
    return merge(h, leaves, n, 0);
}
