/*
 * decode_misc.c - moves between register forms, generic addresses, carries, bit fields, and
 * instructions that have nothing to do here.
 */
#include "decode_int.h"

#include "memory.h"

#include <string.h>

int ptx_decode_nothing(struct ptx_decoder *d, const struct ptx_words *words)
{
    (void)words;
    return ptx_emit_n(d, PTX_OP_nop, 0, 0, 0, 0) ? 0 : -1;
}

/* A cache policy: any number will do, since there are no caches to steer. */
int ptx_decode_policy(struct ptx_decoder *d, const struct ptx_words *words)
{
    uint32_t to;

    (void)words;
    if (d->stmt->n_ops < 1)
        return ptx_unsupported(d, "has no operand");
    to = ptx_def(d, &d->stmt->ops[0], PTX_TAG_u64);
    return ptx_emit_n(d, PTX_OP_mov_64, to, ptx_const_vreg(d, PTX_W64, 0), 0, 0) ? 0 : -1;
}

int ptx_decode_fence(struct ptx_decoder *d, const struct ptx_words *words)
{
    (void)words;
    return ptx_emit_n(d, PTX_OP_fence, 0, 0, 0, 0) ? 0 : -1;
}

/* ---- mov ------------------------------------------------------------------------------------- */

/* mov.b32 d, {a, b}; mov.b64 d, {a, b} and d, {a, b, c, e}. */
static int pack(struct ptx_decoder *d, const struct ptx_operand *to, const struct ptx_operand *list,
                int wide)
{
    uint32_t half[2];

    if (list->n == 2)
        return ptx_emit_n(d, wide ? PTX_OP_pack_32x2 : PTX_OP_pack_16x2,
                          ptx_def(d, to, wide ? PTX_TAG_u64 : PTX_TAG_u32),
                          ptx_use(d, &list->items[0], PTX_TAG_u32),
                          ptx_use(d, &list->items[1], PTX_TAG_u32), 0)
                   ? 0
                   : -1;
    if (list->n != 4 || !wide)
        return ptx_unsupported(d, "packs in a way that is not supported");
    for (uint32_t k = 0; k < 2; k++) {
        half[k] = ptx_new_vreg(d, PTX_W32);
        if (!ptx_emit_n(d, PTX_OP_pack_16x2, half[k], ptx_use(d, &list->items[2 * k], PTX_TAG_u32),
                        ptx_use(d, &list->items[2 * k + 1], PTX_TAG_u32), 0))
            return -1;
    }
    return ptx_emit_n(d, PTX_OP_pack_32x2, ptx_def(d, to, PTX_TAG_u64), half[0], half[1], 0) ? 0
                                                                                             : -1;
}

/* Both parts into registers of their own first: a destination may be the source's register. */
static int unpack_two(struct ptx_decoder *d, const struct ptx_operand *items, uint32_t low_op,
                      uint32_t high_op, uint32_t v)
{
    uint32_t t[2] = {ptx_new_vreg(d, PTX_W32), ptx_new_vreg(d, PTX_W32)};

    if (!ptx_emit_n(d, low_op, t[0], v, 0, 0) || !ptx_emit_n(d, high_op, t[1], v, 0, 0))
        return -1;
    for (uint32_t k = 0; k < 2; k++)
        if (!ptx_emit_n(d, PTX_OP_mov_32, ptx_def(d, &items[k], PTX_TAG_u32), t[k], 0, 0))
            return -1;
    return 0;
}

static int unpack(struct ptx_decoder *d, const struct ptx_operand *list,
                  const struct ptx_operand *from, int wide)
{
    uint32_t v = ptx_use(d, from, wide ? PTX_TAG_u64 : PTX_TAG_u32), half[2];

    if (v == PTX_NO_VREG)
        return -1;
    if (list->n == 2)
        return unpack_two(d, list->items, wide ? PTX_OP_low_32 : PTX_OP_mov_32,
                          wide ? PTX_OP_high_32 : PTX_OP_high_16, v);
    if (list->n != 4 || !wide)
        return ptx_unsupported(d, "unpacks in a way that is not supported");
    for (uint32_t k = 0; k < 2; k++) {
        half[k] = ptx_new_vreg(d, PTX_W32);
        if (!ptx_emit_n(d, k ? PTX_OP_high_32 : PTX_OP_low_32, half[k], v, 0, 0))
            return -1;
    }
    return unpack_two(d, list->items, PTX_OP_mov_32, PTX_OP_high_16, half[0]) ||
                   unpack_two(d, list->items + 2, PTX_OP_mov_32, PTX_OP_high_16, half[1])
               ? -1
               : 0;
}

int ptx_decode_mov(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    uint32_t type = words->n == 2 ? ptx_type_of(words->word[1].ptr, words->word[1].len) : PTX_NONE;
    uint32_t op = ptx_optable_find(d->table, words->text, words->len);

    if (!type || st->n_ops != 2)
        return ptx_unsupported(d, "has a form that is not supported");
    if (type == PTX_PRED)
        return ptx_emit_n(d, PTX_OP_mov_p, ptx_def(d, &st->ops[0], PTX_TAG_p),
                          ptx_use(d, &st->ops[1], PTX_TAG_p), 0, 0)
                   ? 0
                   : -1;
    if (st->ops[1].kind == PTX_O_LIST)
        return pack(d, &st->ops[0], &st->ops[1], ptx_type_bytes(type) == 8);
    if (st->ops[0].kind == PTX_O_LIST)
        return unpack(d, &st->ops[0], &st->ops[1], ptx_type_bytes(type) == 8);
    if (op >= PTX_N_OPS)
        return ptx_unsupported(d, "is not supported by the interpreter");
    if (type == PTX_F64 || type == PTX_F32) { /* literals keep their meaning */
        uint32_t tag = type == PTX_F64 ? PTX_TAG_f64 : PTX_TAG_f32;

        return ptx_emit_n(d, op, ptx_def(d, &st->ops[0], tag), ptx_use(d, &st->ops[1], tag), 0, 0)
                   ? 0
                   : -1;
    }
    return ptx_decode_plain(d, op);
}

/* Global and constant addresses are generic ones; shared and local memory stand in windows. */
int ptx_decode_cvta(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    int to = ptx_word_is(words, 1, "to");
    uint32_t k = to ? 2 : 1, op = PTX_OP_mov_64;
    uint64_t window = 0;

    if (words->n != k + 2 ||
        (!ptx_word_is(words, k + 1, "u64") && !ptx_word_is(words, k + 1, "s64")) || st->n_ops != 2)
        return ptx_unsupported(d, "has a form that is not supported");
    if (ptx_word_is(words, k, "shared") || ptx_word_is(words, k, "shared::cta") ||
        ptx_word_is(words, k, "shared::cluster"))
        window = PTX_SHARED_WINDOW;
    else if (ptx_word_is(words, k, "local"))
        window = PTX_LOCAL_WINDOW;
    else if (!ptx_word_is(words, k, "global") && !ptx_word_is(words, k, "const"))
        return ptx_unsupported(d, "has a state space that is not supported");
    if (window)
        op = to ? PTX_OP_sub_64 : PTX_OP_add_64;
    return ptx_emit_n(d, op, ptx_def(d, &st->ops[0], PTX_TAG_u64),
                      ptx_use(d, &st->ops[1], PTX_TAG_u64),
                      window ? ptx_const_vreg(d, PTX_W64, window) : 0, 0)
               ? 0
               : -1;
}

/* mapa{.shared::cluster}: the same place in the memory of the cluster's block b; getctarank: whose.
 */
int ptx_decode_mapa(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    const struct ptx_fill own = {
        .kind = PTX_FILL_BLOCK, .width = PTX_W32, .special = PTX_SR_CLUSTER_CTARANK};
    const int rank = ptx_word_is(words, 0, "getctarank");
    const int wide = ptx_word_is(words, words->n - 1, "u64");
    const uint32_t op = rank   ? (wide ? PTX_OP_ctarank_64 : PTX_OP_ctarank_32)
                        : wide ? PTX_OP_mapa_64
                               : PTX_OP_mapa_32;

    if (st->n_ops != 3u - (uint32_t)rank || (!wide && !ptx_word_is(words, words->n - 1, "u32")))
        return ptx_unsupported(d, "has a form that is not supported");
    const uint32_t a = ptx_use(d, &st->ops[1], wide ? PTX_TAG_u64 : PTX_TAG_u32);
    const uint32_t b = rank ? ptx_fill_vreg(d, &own) : ptx_use(d, &st->ops[2], PTX_TAG_u32);

    return ptx_emit_n(d, op, ptx_def(d, &st->ops[0], wide && !rank ? PTX_TAG_u64 : PTX_TAG_u32), a,
                      b, 0)
               ? 0
               : -1;
}

/* ---- Carries --------------------------------------------------------------------------------- */

/* The flag's register; zero until something writes it. */
static uint32_t carry_flag(struct ptx_decoder *d)
{
    if (d->in->carry == PTX_NO_VREG)
        d->in->carry = ptx_new_vreg(d, PTX_W32);
    return d->in->carry;
}

/* a * b, low or high half, for mad.cc and madc. */
static uint32_t product(struct ptx_decoder *d, int high, uint32_t type)
{
    static const uint16_t ops[2][2][2] = {
        {{PTX_OP_mul_32, PTX_OP_mul_32}, {PTX_OP_mul_64, PTX_OP_mul_64}},
        {{PTX_OP_mulhi_u32, PTX_OP_mulhi_s32}, {PTX_OP_mulhi_u64, PTX_OP_mulhi_s64}}};
    int wide = ptx_type_bytes(type) == 8;
    uint32_t tag = wide ? PTX_TAG_u64 : PTX_TAG_u32, to = ptx_new_vreg(d, ptx_tag_width(tag));

    return ptx_emit_n(d, ops[high][wide][ptx_type_is_signed(type)], to,
                      ptx_use(d, &d->stmt->ops[1], tag), ptx_use(d, &d->stmt->ops[2], tag), 0)
               ? to
               : PTX_NO_VREG;
}

/* {add,sub,mad}{c}{.lo,.hi}{.cc}.type: sum, then the new flag, then both into their places. */
int ptx_decode_carry(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    const char *base = words->word[0].ptr;
    const int is_mad = base[0] == 'm', is_sub = base[0] == 's', reads = words->word[0].len == 4;
    const int high = ptx_has_word(words, "hi"), writes = ptx_has_word(words, "cc");
    const uint32_t type = ptx_type_of(words->word[words->n - 1].ptr, words->word[words->n - 1].len);
    const int wide = ptx_type_bytes(type) == 8;
    const uint32_t tag = wide ? PTX_TAG_u64 : PTX_TAG_u32;

    if ((!reads && !writes) || ptx_type_is_float(type) || ptx_type_bytes(type) < 4 ||
        st->n_ops != (is_mad ? 4u : 3u) || words->n != 2u + (uint32_t)writes + (uint32_t)is_mad ||
        (is_mad && !high && !ptx_has_word(words, "lo")))
        return ptx_unsupported(d, "is not supported by the interpreter");
    const uint32_t a = is_mad ? product(d, high, type) : ptx_use(d, &st->ops[1], tag);
    const uint32_t b = ptx_use(d, &st->ops[is_mad ? 3 : 2], tag);
    const uint32_t flag = carry_flag(d), in = reads ? flag : ptx_const_vreg(d, PTX_W32, 0);
    const uint32_t sum = ptx_new_vreg(d, ptx_tag_width(tag)), out = ptx_new_vreg(d, PTX_W32);
    const uint32_t sum_op = is_sub ? (wide ? PTX_OP_subc_64 : PTX_OP_subc_32)
                            : wide ? PTX_OP_addc_64
                                   : PTX_OP_addc_32;
    const uint32_t out_op = is_sub ? (wide ? PTX_OP_borrow_64 : PTX_OP_borrow_32)
                            : wide ? PTX_OP_carry_64
                                   : PTX_OP_carry_32;

    if (!ptx_emit_n(d, sum_op, sum, a, b, in) || (writes && !ptx_emit_n(d, out_op, out, a, b, in)))
        return -1;
    if (writes && !ptx_emit_n(d, PTX_OP_mov_32, flag, out, 0, 0))
        return -1;
    return ptx_emit_n(d, wide ? PTX_OP_mov_64 : PTX_OP_mov_32, ptx_def(d, &st->ops[0], tag), sum, 0,
                      0)
               ? 0
               : -1;
}

/* ---- Bit fields ------------------------------------------------------------------------------ */

/* bfi.b32 d, a, b, pos, len. */
static int decode_bfi(struct ptx_decoder *d, int wide)
{
    const struct ptx_operand *ops = d->stmt->ops;
    const uint32_t tag = wide ? PTX_TAG_u64 : PTX_TAG_u32, width = ptx_tag_width(tag);
    const uint32_t field = ptx_new_vreg(d, width), rest = ptx_new_vreg(d, width);
    const uint32_t pos = ptx_use(d, &ops[3], PTX_TAG_u32), len = ptx_use(d, &ops[4], PTX_TAG_u32);

    if (!ptx_emit_n(d, wide ? PTX_OP_bfi_field_64 : PTX_OP_bfi_field_32, field,
                    ptx_use(d, &ops[1], tag), pos, len) ||
        !ptx_emit_n(d, wide ? PTX_OP_bfi_rest_64 : PTX_OP_bfi_rest_32, rest,
                    ptx_use(d, &ops[2], tag), pos, len))
        return -1;
    return ptx_emit_n(d, wide ? PTX_OP_or_64 : PTX_OP_or_32, ptx_def(d, &ops[0], tag), field, rest,
                      0)
               ? 0
               : -1;
}

/* An operation of three 32-bit sources and a number that is part of the instruction. */
static int decode_with_number(struct ptx_decoder *d, uint32_t op, uint64_t number)
{
    const struct ptx_operand *ops = d->stmt->ops;
    struct ptx_insn *in =
        ptx_emit_n(d, op, ptx_def(d, &ops[0], PTX_TAG_u32), ptx_use(d, &ops[1], PTX_TAG_u32),
                   ptx_use(d, &ops[2], PTX_TAG_u32), ptx_use(d, &ops[3], PTX_TAG_u32));

    if (in)
        in->imm = (int64_t)number;
    return in ? 0 : -1;
}

int ptx_decode_bits(struct ptx_decoder *d, const struct ptx_words *words)
{
    static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16", NULL};
    const struct ptx_stmt *st = d->stmt;
    int mode = ptx_word_in(words, words->n - 1, modes);

    if (ptx_word_is(words, 0, "bfi") && words->n == 2 && st->n_ops == 5 &&
        (ptx_word_is(words, 1, "b32") || ptx_word_is(words, 1, "b64")))
        return decode_bfi(d, ptx_word_is(words, 1, "b64"));
    if (ptx_word_is(words, 0, "lop3") && words->n == 2 && ptx_word_is(words, 1, "b32") &&
        st->n_ops == 5 && st->ops[4].kind == PTX_O_INT && st->ops[4].imm < 256)
        return decode_with_number(d, PTX_OP_lop3, st->ops[4].imm);
    if (ptx_word_is(words, 0, "prmt") && words->n == 3 && mode >= 0 && st->n_ops == 4)
        return decode_with_number(d, PTX_OP_prmt_mode, (uint64_t)mode);
    return ptx_unsupported(d, "is not supported by the interpreter");
}
