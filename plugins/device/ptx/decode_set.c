/*
 * decode_set.c - comparisons and predicates: setp, set, testp, isspacep, logic on predicates.
 */
#include "decode_int.h"

#include "memory.h"

#include <stdio.h>
#include <string.h>

struct compare {
    char name[8]; /* "lt", "geu", ... */
    char logic;   /* '&', '|', '^' or 0 */
    uint8_t ftz;
    uint32_t type;   /* of the sources */
    uint32_t result; /* set: type of the result */
};

static int compare_word(const struct ptx_words *w, uint32_t i, struct compare *c)
{
    static const char *const names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "lo",
                                        "ls",  "hi",  "hs",  "equ", "neu", "ltu", "leu",
                                        "gtu", "geu", "num", "nan", NULL};
    static const char plain[][4] = {"eq", "ne",  "lt",  "le",  "gt",  "ge",  "lt",  "le",  "gt",
                                    "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    static const char *const logic[] = {"and", "or", "xor", NULL};
    uint32_t type = ptx_type_of(w->word[i].ptr, w->word[i].len);
    int found = ptx_word_in(w, i, names), op = ptx_word_in(w, i, logic);

    if (found >= 0)
        snprintf(c->name, sizeof c->name, "%s", plain[found]);
    else if (op >= 0)
        c->logic = "&|^"[op];
    else if (ptx_word_is(w, i, "ftz"))
        c->ftz = 1;
    else if (type && c->type)
        c->result = c->type, c->type = type;
    else if (type)
        c->type = type;
    else
        return -1;
    return 0;
}

/* The comparison operation and the tag of its sources. */
static uint32_t compare_op(struct ptx_decoder *d, const struct compare *c)
{
    static const char tags[][4] = {
        [PTX_B16] = "u16", [PTX_B32] = "u32", [PTX_B64] = "u64", [PTX_U16] = "u16",
        [PTX_U32] = "u32", [PTX_U64] = "u64", [PTX_S16] = "s16", [PTX_S32] = "s32",
        [PTX_S64] = "s64", [PTX_F16] = "h",   [PTX_BF16] = "bf", [PTX_F32] = "f32",
        [PTX_F64] = "f64",
    };
    char name[24];

    if (c->type >= sizeof tags / sizeof tags[0] || !tags[c->type][0])
        return PTX_N_OPS;
    snprintf(name, sizeof name, "set_%s_%s", c->name,
             c->ftz && c->type == PTX_F32 ? "fz" : tags[c->type]);
    return ptx_optable_find(d->table, name, (uint32_t)strlen(name));
}

static int emit_logic(struct ptx_decoder *d, char logic, uint32_t to, uint32_t a, uint32_t b)
{
    uint32_t op = logic == '&' ? PTX_OP_and_p : logic == '|' ? PTX_OP_or_p : PTX_OP_xor_p;

    return ptx_emit_n(d, op, to, a, b, 0) ? 0 : -1;
}

static int read_compare(struct ptx_decoder *d, const struct ptx_words *w, struct compare *c)
{
    *c = (struct compare){.name = ""};
    for (uint32_t i = 1; i < w->n; i++)
        if (compare_word(w, i, c))
            return ptx_unsupported(d, "has a modifier that is not supported");
    return 0;
}

static int is_pair(uint32_t type)
{
    return type == PTX_F16X2 || type == PTX_BF16X2;
}

/* A source in a register; half 1 is the upper one of a pair. */
static uint32_t compare_source(struct ptx_decoder *d, uint32_t k, uint32_t tag, int half)
{
    uint32_t v = ptx_use(d, &d->stmt->ops[k], tag), high;

    if (!half || v == PTX_NO_VREG)
        return v;
    high = ptx_new_vreg(d, PTX_W32);
    return ptx_emit_n(d, PTX_OP_high_16, high, v, 0, 0) ? high : PTX_NO_VREG;
}

/* a op b into a new predicate; the operands stand at index 1 and 2. */
static uint32_t emit_compare(struct ptx_decoder *d, const struct compare *c, int half)
{
    struct compare scalar = *c;
    uint32_t op, p, tag;

    if (is_pair(c->type))
        scalar.type = c->type == PTX_F16X2 ? PTX_F16 : PTX_BF16;
    op = compare_op(d, &scalar);
    if (op >= PTX_N_OPS || d->stmt->n_ops != 3u + (c->logic != 0)) {
        ptx_unsupported(d, "has a form that is not supported");
        return PTX_NO_VREG;
    }
    tag = ptx_ops[op].uses.tag[0];
    p = ptx_new_vreg(d, PTX_WP);
    return ptx_emit_n(d, op, p, compare_source(d, 1, tag, half), compare_source(d, 2, tag, half), 0)
               ? p
               : PTX_NO_VREG;
}

/* The condition of a boolean form, or a predicate that changes nothing under '|'. */
static uint32_t condition(struct ptx_decoder *d, const struct compare *c)
{
    return c->logic ? ptx_use(d, &d->stmt->ops[3], PTX_TAG_p) : ptx_const_vreg(d, PTX_WP, 0);
}

static int put_predicate(struct ptx_decoder *d, const struct ptx_operand *to, uint32_t p)
{
    return ptx_emit_n(d, PTX_OP_mov_p, ptx_def(d, to, PTX_TAG_p), p, 0, 0) ? 0 : -1;
}

/* p = (a op b) logic c, and q = !(a op b) logic c; of pairs, p is the lower half's and q the
 * upper's. */
static int setp_general(struct ptx_decoder *d, const struct compare *c,
                        const struct ptx_operand *first, const struct ptx_operand *second)
{
    const char logic = c->logic ? c->logic : '|';
    uint32_t p = emit_compare(d, c, 0),
             q = is_pair(c->type) ? emit_compare(d, c, 1) : ptx_new_vreg(d, PTX_WP);
    uint32_t r = p == PTX_NO_VREG || q == PTX_NO_VREG ? PTX_NO_VREG : condition(d, c);

    if (r == PTX_NO_VREG || (!is_pair(c->type) && !ptx_emit_n(d, PTX_OP_not_p, q, p, 0, 0)))
        return -1;
    if (emit_logic(d, logic, p, p, r) || emit_logic(d, logic, q, q, r) ||
        put_predicate(d, first, p))
        return -1;
    return second ? put_predicate(d, second, q) : 0;
}

int ptx_decode_setp(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_operand *to = d->stmt->n_ops ? &d->stmt->ops[0] : NULL;
    const int both = to && to->kind == PTX_O_PAIR;
    struct ptx_insn *last;
    struct compare c;

    if (read_compare(d, words, &c))
        return -1;
    if (both || c.logic || is_pair(c.type))
        return to ? setp_general(d, &c, both ? &to->items[0] : to, both ? &to->items[1] : NULL)
                  : -1;
    if (emit_compare(d, &c, 0) == PTX_NO_VREG)
        return -1;
    last = &d->code[d->n_code - 1];
    last->r[0] = ptx_def(d, to, PTX_TAG_p);
    return last->r[0] == PTX_NO_VREG ? -1 : 0;
}

/* One comparison as a number: `yes` where true, else 0. */
static uint32_t set_value(struct ptx_decoder *d, const struct compare *c, int half, uint32_t yes)
{
    uint32_t p = emit_compare(d, c, half), v = ptx_new_vreg(d, PTX_W32);

    if (p != PTX_NO_VREG && c->logic) {
        uint32_t r = condition(d, c);

        if (r == PTX_NO_VREG || emit_logic(d, c->logic, p, p, r))
            return PTX_NO_VREG;
    }
    return ptx_emit_n(d, PTX_OP_selp_32, v, ptx_const_vreg(d, PTX_W32, yes),
                      ptx_const_vreg(d, PTX_W32, 0), p)
               ? v
               : PTX_NO_VREG;
}

/* set: ~0 or 1.0 where true, else 0; of pairs each half for itself. */
int ptx_decode_set(struct ptx_decoder *d, const struct ptx_words *words)
{
    struct compare c;
    uint32_t low, high, yes;

    if (read_compare(d, words, &c))
        return -1;
    yes = c.result == PTX_F32                              ? 0x3f800000u
          : c.result == PTX_F16 || c.result == PTX_F16X2   ? 0x3c00u
          : c.result == PTX_BF16 || c.result == PTX_BF16X2 ? 0x3f80u
                                                           : ~0u;
    if (ptx_type_bytes(c.result) > 4 || ptx_type_bytes(c.result) < 2 || !d->stmt->n_ops)
        return ptx_unsupported(d, "has a result type that is not supported");
    low = set_value(d, &c, 0, yes);
    if (!is_pair(c.type))
        return ptx_emit_n(d, PTX_OP_mov_32, ptx_def(d, &d->stmt->ops[0], PTX_TAG_u32), low, 0, 0)
                   ? 0
                   : -1;
    high = set_value(d, &c, 1, yes);
    return ptx_emit_n(d, PTX_OP_pack_16x2, ptx_def(d, &d->stmt->ops[0], PTX_TAG_u32), low, high, 0)
               ? 0
               : -1;
}

int ptx_decode_testp(struct ptx_decoder *d, const struct ptx_words *words)
{
    static const char *const names[] = {"finite", "infinite", "number", "notanumber", NULL};
    static const uint16_t ops[4][2] = {{PTX_OP_test_finite_f32, PTX_OP_test_finite_f64},
                                       {PTX_OP_test_infinite_f32, PTX_OP_test_infinite_f64},
                                       {PTX_OP_set_num_f32, PTX_OP_set_num_f64},
                                       {PTX_OP_set_nan_f32, PTX_OP_set_nan_f64}};
    int name = ptx_word_in(words, 1, names), wide = ptx_word_is(words, 2, "f64");
    uint32_t a;

    if (name < 0 || words->n != 3 || (!wide && !ptx_word_is(words, 2, "f32")) ||
        d->stmt->n_ops != 2)
        return ptx_unsupported(d, "is not supported by the interpreter");
    a = ptx_use(d, &d->stmt->ops[1], wide ? PTX_TAG_f64 : PTX_TAG_f32);
    return ptx_emit_n(d, ops[name][wide], ptx_def(d, &d->stmt->ops[0], PTX_TAG_p), a, a, 0) ? 0
                                                                                            : -1;
}

/* Shared and local windows are 2^32 bytes; everything below the windows is global. */
int ptx_decode_isspacep(struct ptx_decoder *d, const struct ptx_words *words)
{
    static const char *const names[] = {"global", "shared", "local", "shared::cta", NULL};
    static const uint64_t base[] = {0, PTX_SHARED_WINDOW, PTX_LOCAL_WINDOW, PTX_SHARED_WINDOW};
    int name = ptx_word_in(words, 1, names);
    uint32_t a, t;

    if (name < 0 || words->n != 2 || d->stmt->n_ops != 2)
        return ptx_unsupported(d, "is not supported by the interpreter");
    a = ptx_use(d, &d->stmt->ops[1], PTX_TAG_u64);
    t = ptx_new_vreg(d, PTX_W64);
    if (!ptx_emit_n(d, PTX_OP_sub_64, t, a, ptx_const_vreg(d, PTX_W64, base[name]), 0))
        return -1;
    uint32_t size = ptx_const_vreg(d, PTX_W64, name ? PTX_WINDOW_BYTES : PTX_SHARED_WINDOW);
    return ptx_emit_n(d, PTX_OP_set_lt_u64, ptx_def(d, &d->stmt->ops[0], PTX_TAG_p), t, size, 0)
               ? 0
               : -1;
}

/* and.pred, or.pred, xor.pred, not.pred. */
int ptx_decode_logic(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    const int is_not = ptx_word_is(words, 0, "not");
    const char logic = ptx_word_is(words, 0, "and") ? '&' : ptx_word_is(words, 0, "or") ? '|' : '^';
    uint32_t a, to;

    if (words->n != 2 || !ptx_word_is(words, 1, "pred") || st->n_ops != (is_not ? 2u : 3u))
        return ptx_unsupported(d, "is not supported by the interpreter");
    a = ptx_use(d, &st->ops[1], PTX_TAG_p);
    if (is_not)
        return ptx_emit_n(d, PTX_OP_not_p, ptx_def(d, &st->ops[0], PTX_TAG_p), a, 0, 0) ? 0 : -1;
    uint32_t b = ptx_use(d, &st->ops[2], PTX_TAG_p);
    to = ptx_def(d, &st->ops[0], PTX_TAG_p);
    return a == PTX_NO_VREG || b == PTX_NO_VREG || to == PTX_NO_VREG
               ? -1
               : emit_logic(d, logic, to, a, b);
}
