/*
 * decode_warp.c - control flow, barriers and warp-wide instructions.
 */
#include "decode_int.h"

#include "exec.h"

#include <string.h>

/* ---- Control flow ---------------------------------------------------------------------------- */

int ptx_decode_bra(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    struct ptx_insn *in;
    uint32_t label;

    (void)words;
    if (st->n_ops != 1 || (st->ops[0].kind != PTX_O_NAME && st->ops[0].kind != PTX_O_SYM))
        return ptx_unsupported(d, "has an unexpected target");
    label = ptx_find_label(d->in->func, d->in->heads, st->ops[0].name, st->scope);
    if (label == UINT32_MAX)
        return ptx_unsupported(d, "goes to a label that does not exist");
    if (st->guard) {
        struct ptx_operand guard = {.kind = PTX_O_SYM, .sym = st->guard};

        in = ptx_emit_n(d, PTX_OP_bra_if, ptx_use(d, &guard, PTX_TAG_p), 0, 0, 0);
        if (in && st->guard_negated)
            in->flags |= PTX_F_NEGATED;
    } else {
        in = ptx_emit_n(d, PTX_OP_bra, 0, 0, 0, 0);
    }
    if (!in)
        return -1;
    in->target = d->in->first_label + label;
    return 0;
}

/* ret, exit, trap. A ret of an expanded call goes to its end. */
int ptx_decode_end(struct ptx_decoder *d, const struct ptx_words *words)
{
    struct ptx_insn *in;

    if (ptx_word_is(words, 0, "trap"))
        return ptx_emit_n(d, PTX_OP_trap, 0, 0, 0, 0) ? 0 : -1;
    if (ptx_word_is(words, 0, "exit") || !d->in->caller)
        return ptx_emit_n(d, PTX_OP_exit, 0, 0, 0, 0) ? 0 : -1;
    in = ptx_emit_n(d, PTX_OP_bra, 0, 0, 0, 0);
    if (in)
        in->target = d->in->end_label;
    return in ? 0 : -1;
}

/* ---- Barriers -------------------------------------------------------------------------------- */

static int finish_reduction(struct ptx_decoder *d, const struct ptx_words *words, uint32_t number)
{
    const struct ptx_operand *to = &d->stmt->ops[0];
    struct ptx_insn *in;

    if (ptx_has_word(words, "popc"))
        return ptx_emit_n(d, PTX_OP_bar_popc, ptx_def(d, to, PTX_TAG_u32), number, 0, 0) ? 0 : -1;
    in = ptx_emit_n(d, PTX_OP_bar_pred, ptx_def(d, to, PTX_TAG_p), number, 0, 0);
    if (in)
        in->sub = (uint8_t)ptx_has_word(words, "and");
    return in ? 0 : -1;
}

/* barrier.cluster.{arrive,wait}{.release,.relaxed,.acquire}{.aligned} */
static int decode_cluster(struct ptx_decoder *d, const struct ptx_words *words)
{
    const int arrive = ptx_has_word(words, "arrive");

    if (d->stmt->n_ops || (!arrive && !ptx_has_word(words, "wait")))
        return ptx_unsupported(d, "has a form that is not supported");
    return ptx_emit_n(d, arrive ? PTX_OP_cluster_arrive : PTX_OP_cluster_wait, 0, 0, 0, 0) ? 0 : -1;
}

/* bar{.cta}.{sync,arrive,red}, barrier{.cta}.…{.aligned}, bar.warp.sync. */
int ptx_decode_bar(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    const int red = ptx_has_word(words, "red"), arrive = ptx_has_word(words, "arrive");
    const uint32_t first = (uint32_t)red;
    uint32_t number, count, predicate = 0;
    struct ptx_insn *in;

    if (ptx_has_word(words, "warp"))
        return st->n_ops == 1 && ptx_emit_n(d, PTX_OP_warp_sync,
                                            ptx_use(d, &st->ops[0], PTX_TAG_u32), 0, 0, 0)
                   ? 0
                   : ptx_unsupported(d, "has an unexpected number of operands");
    if (ptx_has_word(words, "cluster"))
        return decode_cluster(d, words);
    if (!red && !arrive && !ptx_has_word(words, "sync"))
        return ptx_unsupported(d, "is not supported by the interpreter");
    if (st->n_ops < 1u + 2u * (uint32_t)red || st->n_ops > 2u + 2u * (uint32_t)red)
        return ptx_unsupported(d, "has an unexpected number of operands");
    number = ptx_use(d, &st->ops[first], PTX_TAG_u32);
    count = st->n_ops == 2u + 2u * (uint32_t)red ? ptx_use(d, &st->ops[first + 1], PTX_TAG_u32)
                                                 : ptx_const_vreg(d, PTX_W32, 0);
    if (red)
        predicate = ptx_use(d, &st->ops[st->n_ops - 1], PTX_TAG_p);
    in = ptx_emit_n(d,
                    red      ? PTX_OP_bar_red
                    : arrive ? PTX_OP_bar_arrive
                             : PTX_OP_bar,
                    number, count, predicate, 0);
    if (!in)
        return -1;
    if (ptx_word_is(words, 0, "bar") || ptx_has_word(words, "aligned"))
        in->flags |= PTX_F_ALIGNED;
    return red ? finish_reduction(d, words, number) : 0;
}

/* ---- Warp-wide ------------------------------------------------------------------------------- */

/* The two results of "d|p", or of "d" alone. */
static int two_results(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t *value,
                       uint32_t *predicate)
{
    const int both = op->kind == PTX_O_PAIR;

    *value = ptx_def(d, both ? &op->items[0] : op, PTX_TAG_u32);
    *predicate = both ? ptx_def(d, &op->items[1], PTX_TAG_p) : ptx_new_vreg(d, PTX_WP);
    return *value == PTX_NO_VREG || *predicate == PTX_NO_VREG ? -1 : 0;
}

int ptx_decode_shfl(struct ptx_decoder *d, const struct ptx_words *words)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
    const struct ptx_stmt *st = d->stmt;
    int mode = ptx_word_in(words, 2, modes);
    uint32_t r[PTX_MAX_OPERANDS];
    struct ptx_insn *in;

    if (words->n != 4 || !ptx_word_is(words, 1, "sync") || mode < 0 ||
        !ptx_word_is(words, 3, "b32") || st->n_ops != 5)
        return ptx_unsupported(d, "has a form that is not supported");
    for (uint32_t k = 1; k < 5; k++)
        r[k + 1] = ptx_use(d, &st->ops[k], PTX_TAG_u32);
    if (two_results(d, &st->ops[0], &r[0], &r[1]))
        return -1;
    in = ptx_emit(d, PTX_OP_shfl, r);
    if (in)
        in->sub = (uint8_t)mode;
    return in ? 0 : -1;
}

int ptx_decode_vote(struct ptx_decoder *d, const struct ptx_words *words)
{
    static const char *const modes[] = {"all", "any", "uni", "ballot", NULL};
    const struct ptx_stmt *st = d->stmt;
    int mode = ptx_word_in(words, 2, modes);
    struct ptx_insn *in;

    if (words->n != 4 || !ptx_word_is(words, 1, "sync") || mode < 0 || st->n_ops != 3)
        return ptx_unsupported(d, "has a form that is not supported");
    uint32_t p = ptx_use(d, &st->ops[1], PTX_TAG_p), mask = ptx_use(d, &st->ops[2], PTX_TAG_u32);
    if (mode == 3)
        return ptx_emit_n(d, PTX_OP_ballot, ptx_def(d, &st->ops[0], PTX_TAG_u32), p, mask, 0) ? 0
                                                                                              : -1;
    in = ptx_emit_n(d, PTX_OP_vote, ptx_def(d, &st->ops[0], PTX_TAG_p), p, mask, 0);
    if (in)
        in->sub = (uint8_t)mode;
    return in ? 0 : -1;
}

int ptx_decode_match(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    const int all = ptx_word_is(words, 1, "all"), wide = ptx_word_is(words, 3, "b64");
    uint32_t r[PTX_MAX_OPERANDS], k = all ? 2 : 1;
    uint32_t op = all    ? (wide ? PTX_OP_match_all_64 : PTX_OP_match_all_32)
                  : wide ? PTX_OP_match_any_64
                         : PTX_OP_match_any_32;

    if (words->n != 4 || (!all && !ptx_word_is(words, 1, "any")) ||
        !ptx_word_is(words, 2, "sync") || st->n_ops != 3)
        return ptx_unsupported(d, "has a form that is not supported");
    r[k] = ptx_use(d, &st->ops[1], wide ? PTX_TAG_u64 : PTX_TAG_u32);
    r[k + 1] = ptx_use(d, &st->ops[2], PTX_TAG_u32);
    if (!all)
        r[0] = ptx_def(d, &st->ops[0], PTX_TAG_u32);
    else if (two_results(d, &st->ops[0], &r[0], &r[1]))
        return -1;
    return ptx_emit(d, op, r) ? 0 : -1;
}

int ptx_decode_redux(struct ptx_decoder *d, const struct ptx_words *words)
{
    static const char *const names[] = {"add", "min", "max", "and", "or", "xor", NULL};
    static const uint8_t ops[6][2] = {
        {PTX_REDUX_ADD, PTX_REDUX_ADD},     {PTX_REDUX_MIN_U, PTX_REDUX_MIN_S},
        {PTX_REDUX_MAX_U, PTX_REDUX_MAX_S}, {PTX_REDUX_AND, PTX_REDUX_AND},
        {PTX_REDUX_OR, PTX_REDUX_OR},       {PTX_REDUX_XOR, PTX_REDUX_XOR}};
    const struct ptx_stmt *st = d->stmt;
    int name = ptx_word_in(words, 2, names), is_signed = ptx_word_is(words, 3, "s32");
    struct ptx_insn *in;

    if (words->n != 4 || !ptx_word_is(words, 1, "sync") || name < 0 || st->n_ops != 3 ||
        (!is_signed && !ptx_word_is(words, 3, "u32") && !ptx_word_is(words, 3, "b32")))
        return ptx_unsupported(d, "has a form that is not supported");
    in = ptx_emit_n(d, PTX_OP_redux, ptx_def(d, &st->ops[0], PTX_TAG_u32),
                    ptx_use(d, &st->ops[1], PTX_TAG_u32), ptx_use(d, &st->ops[2], PTX_TAG_u32), 0);
    if (in)
        in->sub = ops[name][is_signed];
    return in ? 0 : -1;
}

int ptx_decode_active(struct ptx_decoder *d, const struct ptx_words *words)
{
    if (words->n != 2 || d->stmt->n_ops != 1)
        return ptx_unsupported(d, "has a form that is not supported");
    return ptx_emit_n(d, PTX_OP_activemask, ptx_def(d, &d->stmt->ops[0], PTX_TAG_u32), 0, 0, 0)
               ? 0
               : -1;
}

int ptx_decode_elect(struct ptx_decoder *d, const struct ptx_words *words)
{
    uint32_t value, predicate;

    if (words->n != 2 || !ptx_word_is(words, 1, "sync") || d->stmt->n_ops != 2 ||
        two_results(d, &d->stmt->ops[0], &value, &predicate))
        return ptx_unsupported(d, "has a form that is not supported");
    return ptx_emit_n(d, PTX_OP_elect, value, predicate, ptx_use(d, &d->stmt->ops[1], PTX_TAG_u32),
                      0)
               ? 0
               : -1;
}
