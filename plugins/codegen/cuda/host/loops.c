/* Loops and switches of host code: see host.h. Loops are unrolled. */
#include "walk.h"
#include <string.h>

enum { MAX_OPEN_TURNS = 14, MAX_TURNS = 512, INT_TURNS = 31 };

/* A loop's parts as token ranges; a part that is missing is empty. */
struct loop {
    uint32_t condition, condition_end, step, step_end, body, body_end;
    bool after; /* do ... while */
};

static const struct cg_token *at(const struct cg_host *h, uint32_t i)
{
    return &h->code->t[i < h->code->n ? i : h->code->n];
}

static bool same_value(const struct cg_value *a, const struct cg_value *b)
{
    return a->kind == b->kind && cg_real_buffer(a->buffer) == cg_real_buffer(b->buffer) &&
           ((!a->sym && !b->sym) || cg_sym_same(a->sym, b->sym));
}

static bool same_step(const struct cg_launch *a, const struct cg_launch *b)
{
    bool same = a->kind == b->kind && a->item == b->item && a->n_args == b->n_args &&
                (!a->name || !strcmp(a->name, b->name));
    for (int i = 0; i < 3 && same; i++)
        same = (!a->grid[i] && !b->grid[i]) ||
               (cg_sym_same(a->grid[i], b->grid[i]) && cg_sym_same(a->block[i], b->block[i]));
    for (uint32_t i = 0; i < a->n_args && same; i++)
        same = same_value(&a->args[i], &b->args[i]);
    return same;
}

void cg_drop_repeats(struct cg_host *h, uint32_t from)
{
    uint32_t n = h->n_steps - from;
    for (uint32_t period = 1; period <= n / 2; period++) {
        bool repeats = n % period == 0;
        for (uint32_t i = from + period; repeats && i < h->n_steps; i++)
            repeats = same_step(&h->steps[i], &h->steps[i - period]);
        if (repeats) {
            h->n_steps = from + period;
            return;
        }
    }
}

/* Whether a loop without effects is worth walking: one that finds a number. */
static bool finds_number(struct cg_host *h, const struct loop *l)
{
    for (uint32_t i = l->body; i < l->body_end; i++)
        if (cg_is(at(h, i), "["))
            return false;
    return true;
}

static bool scales(struct cg_host *h, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (cg_is(at(h, i), "*=") || cg_is(at(h, i), "/=") || cg_is(at(h, i), "<<=") ||
            (cg_is(at(h, i), ">") && cg_is(at(h, i + 1), ">=")))
            return true;
    return false;
}

static void give_up(struct cg_host *h, const struct loop *l, bool effect, const char *why)
{
    if (effect)
        cg_problem(h, "a loop around launches can't be unrolled: %s", why);
    cg_forget(h, l->body, l->body_end, why);
    cg_forget(h, l->step, l->step_end, why);
}

/* Whether the loop goes on; *ended when the loop was given up. */
static bool goes_on(struct cg_host *h, const struct loop *l, bool effect, int *open, bool *ended)
{
    int64_t k;
    if (l->condition == l->condition_end)
        return true;
    struct cg_value c = cg_eval_range(h, l->condition, l->condition_end);
    *ended = c.kind != CG_NUM;
    if (*ended) {
        give_up(h, l, effect, c.kind == CG_UNKNOWN ? c.text : "its condition is no number");
        return false;
    }
    if (cg_sym_constant(c.sym, &k))
        return k != 0;
    bool may = effect || scales(h, l->step, l->step_end) || scales(h, l->body, l->body_end);
    if (!effect && may && *open >= INT_TURNS) /* an int that doubles has met its bound by then */
        return false;
    if (!may || (++*open > MAX_OPEN_TURNS && effect)) {
        *ended = true;
        give_up(
            h, l, effect,
            cg_format(h->pool, "how often it turns depends on %s", cg_sym_text(h->pool, c.sym)));
        return false;
    }
    return cg_decide(h, c.sym);
}

static void turn(struct cg_host *h, const struct loop *l)
{
    cg_run_statement(h, l->body, l->body_end);
    if (h->flow == CG_CONTINUE)
        h->flow = CG_NEXT;
    if (h->flow == CG_NEXT && l->step < l->step_end) {
        uint32_t i = h->i, end = h->end;
        h->i = l->step;
        h->end = l->step_end;
        do
            cg_eval(h);
        while (h->i < l->step_end && cg_is(at(h, h->i), ",") && h->i++ < l->step_end);
        h->i = i;
        h->end = end;
    }
}

static void run(struct cg_host *h, const struct loop *l)
{
    bool effect = cg_has_effect(h, l->body, l->body_end), ended = false;
    int open = 0;
    if (!effect && !finds_number(h, l)) {
        give_up(h, l, false, "a loop");
        return;
    }
    for (int turns = 0; !h->problem; turns++) {
        uint32_t before = h->n_steps;
        if ((!l->after || turns) && !goes_on(h, l, effect, &open, &ended))
            break;
        if (turns == MAX_TURNS || (!effect && turns == 64)) {
            give_up(h, l, effect, "it turns too often");
            break;
        }
        turn(h, l);
        if (h->flow != CG_NEXT)
            break;
        /* A program that measures repeats the same launches: one turn is all. */
        if (h->in_main && !h->calls && h->n_steps > before && before >= h->n_steps - before) {
            uint32_t n = h->n_steps - before, k = 0;
            while (k < n && same_step(&h->steps[before + k], &h->steps[before - n + k]))
                k++;
            if (k == n) {
                h->n_steps = before;
                give_up(h, l, false, "a loop");
                break;
            }
        }
    }
    if (h->flow == CG_BREAK)
        h->flow = CG_NEXT;
}

/* for (auto v : list) */
static void over_list(struct cg_host *h, uint32_t open, uint32_t colon, struct loop *l)
{
    struct cg_value list = cg_eval_range(h, colon + 1, h->code->partner[open]);
    if (list.kind != CG_LIST) {
        give_up(h, l, cg_has_effect(h, l->body, l->body_end), "it goes over something unknown");
        return;
    }
    size_t n_vars = h->n_vars;
    for (uint32_t k = 0; k < list.n && h->flow == CG_NEXT && !h->problem; k++) {
        if (at(h, colon - 1)->kind == CG_NAME)
            cg_declare(h, cg_token_text(h->pool, at(h, colon - 1)), list.list[k],
                       (struct cg_type){.text = ""});
        turn(h, l);
        h->n_vars = n_vars;
    }
    if (h->flow == CG_BREAK)
        h->flow = CG_NEXT;
}

static void for_loop(struct cg_host *h, uint32_t open, struct loop *l)
{
    uint32_t close = h->code->partner[open], first = close, second = close, colon = 0;
    size_t n_vars = h->n_vars;
    for (uint32_t i = open + 1; i < close; i++) {
        if (cg_is(at(h, i), ";") && first == close)
            first = i;
        else if (cg_is(at(h, i), ";") && second == close)
            second = i;
        else if (cg_is(at(h, i), ":") && !colon)
            colon = i;
        else if (h->code->partner[i] > i && h->code->partner[i] < close)
            i = h->code->partner[i];
    }
    if (first == close && colon) {
        over_list(h, open, colon, l);
        return;
    }
    l->condition = first + 1;
    l->condition_end = second;
    l->step = second + 1;
    l->step_end = close;
    if (first == close || second == close)
        return;
    uint32_t i = h->i, end = h->end;
    h->i = open + 1;
    h->end = first;
    if (h->i < first && !cg_declaration(h, first + 1)) {
        h->end = first;
        cg_eval(h);
    }
    h->i = i;
    h->end = end;
    run(h, l);
    h->n_vars = n_vars;
}

/* ---- switch --------------------------------------------------------------------------------- */

/* The case labels of a body, in order, until one holds; where its statements start, or 0. */
static uint32_t find_case(struct cg_host *h, struct cg_value v, uint32_t open, bool *unclear)
{
    uint32_t otherwise = 0, close = h->code->partner[open];
    for (uint32_t i = open + 1; i < close; i++) {
        uint32_t colon = i;
        if (h->code->partner[i] > i) {
            i = h->code->partner[i];
            continue;
        }
        if (!cg_is(at(h, i), "case") && !cg_is(at(h, i), "default"))
            continue;
        while (colon < close && !cg_is(at(h, colon), ":"))
            colon++;
        if (cg_is(at(h, i), "default")) {
            otherwise = colon + 1;
            continue;
        }
        struct cg_value label = cg_eval_range(h, i + 1, colon);
        struct cg_value same =
            cg_binary(h, &(struct cg_token){.s = "==", .n = 2, .kind = CG_OP}, v, label);
        if (same.kind != CG_NUM) {
            *unclear = true;
            return 0;
        }
        if (cg_decide(h, same.sym))
            return colon + 1;
    }
    return otherwise;
}

static void switch_statement(struct cg_host *h, uint32_t open, uint32_t body, uint32_t end)
{
    struct cg_value v = cg_eval_range(h, open + 1, h->code->partner[open]);
    bool unclear = v.kind != CG_NUM && v.kind != CG_A_TYPE;
    uint32_t from = 0;
    if (cg_is(at(h, body), "{") && !unclear)
        from = find_case(h, v, body, &unclear);
    if (unclear && cg_has_effect(h, body, end))
        cg_problem(h, "a switch depends on %s", v.kind == CG_UNKNOWN ? v.text : "no number");
    else if (unclear)
        cg_forget(h, body, end, v.kind == CG_UNKNOWN ? v.text : "a switch");
    else if (from)
        cg_run_statement(h, from, h->code->partner[body]);
    if (h->flow == CG_BREAK)
        h->flow = CG_NEXT;
}

bool cg_loop(struct cg_host *h, uint32_t end)
{
    const struct cg_token *t = at(h, h->i);
    bool is_do = cg_is(t, "do"), is_for = cg_is(t, "for"), is_while = cg_is(t, "while");
    struct loop l = {.after = is_do};
    if (!is_do && !is_for && !is_while && !cg_is(t, "switch"))
        return false;
    uint32_t open = h->i + 1, behind = cg_skip_statement(h, h->i, end);
    if (is_do) {
        l.body = h->i + 1;
        l.body_end = cg_skip_statement(h, l.body, end);
        open = l.body_end + 1;
    }
    if (!cg_is(at(h, open), "(") || h->code->partner[open] <= open) {
        h->i = behind;
        return true;
    }
    if (!is_do) {
        l.body = h->code->partner[open] + 1;
        l.body_end = behind;
    }
    l.condition = open + 1;
    l.condition_end = h->code->partner[open];
    l.step = l.step_end = behind;
    if (is_for)
        for_loop(h, open, &l);
    else if (is_do || is_while)
        run(h, &l);
    else
        switch_statement(h, open, l.body, behind);
    h->i = behind;
    return true;
}
