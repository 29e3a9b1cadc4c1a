/*
 * decode_cvt.c - cvt: every conversion is a chain of at most five steps: bring the source into a
 * plain 32- or 64-bit form, round, convert, saturate, widen or cut to the destination's register.
 */
#include "decode_int.h"

#include <stdio.h>
#include <string.h>

struct cvt {
    uint32_t to, from; /* types */
    char round; /* 'n', 'z', 'm', 'p' to floats; 'N', 'Z', 'M', 'P' to whole numbers; 0 none */
    uint8_t ftz, sat, relu;
};

static int read_cvt(struct ptx_decoder *d, const struct ptx_words *w, struct cvt *c)
{
    static const char *const modes[] = {"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", NULL};

    *c = (struct cvt){0};
    for (uint32_t i = 1; i < w->n; i++) {
        uint32_t type = ptx_type_of(w->word[i].ptr, w->word[i].len);
        int mode = ptx_word_in(w, i, modes);

        if (mode >= 0)
            c->round = "nzmpNZMP"[mode];
        else if (ptx_word_is(w, i, "ftz"))
            c->ftz = 1;
        else if (ptx_word_is(w, i, "sat"))
            c->sat = 1;
        else if (ptx_word_is(w, i, "relu"))
            c->relu = 1;
        else if (type && !c->to)
            c->to = type;
        else if (type && !c->from)
            c->from = type;
        else
            return ptx_unsupported(d, "has a modifier that is not supported");
    }
    return c->from && c->to != PTX_PRED && c->from != PTX_PRED && ptx_type_bytes(c->to) <= 8 &&
                   ptx_type_bytes(c->from) <= 8
               ? 0
               : ptx_unsupported(d, "has types that are not supported");
}

/* One step: a new register of the operation's result. */
static uint32_t step(struct ptx_decoder *d, uint32_t op, uint32_t v)
{
    uint32_t to;

    if (v == PTX_NO_VREG || op >= PTX_N_OPS) {
        ptx_unsupported(d, "converts in a way that is not supported");
        return PTX_NO_VREG;
    }
    to = ptx_new_vreg(d, ptx_tag_width(ptx_ops[op].defs.tag[0]));
    return ptx_emit_n(d, op, to, v, 0, 0) ? to : PTX_NO_VREG;
}

static uint32_t step_named(struct ptx_decoder *d, const char *name, uint32_t v)
{
    return step(d, ptx_optable_find(d->table, name, (uint32_t)strlen(name)), v);
}

static int is_wide(const struct ptx_decoder *d, uint32_t v)
{
    return v != PTX_NO_VREG && d->vregs[v].width == PTX_W64;
}

/* The source operand in the register it stands in, whatever its width. */
static uint32_t source(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t type)
{
    uint32_t width = ptx_operand_width(op);
    uint32_t tag = type == PTX_F64             ? PTX_TAG_f64
                   : ptx_type_bytes(type) == 8 ? PTX_TAG_u64
                   : type == PTX_F32           ? PTX_TAG_f32
                                               : PTX_TAG_u32;

    if (width == PTX_W64 && ptx_type_bytes(type) < 8)
        return step(d, PTX_OP_low_32, ptx_use(d, op, PTX_TAG_u64));
    return ptx_use(d, op, tag);
}

/* Extends an integer of this type to a full register of 32 or 64 bits. */
static uint32_t extend(struct ptx_decoder *d, uint32_t v, uint32_t type, int wide)
{
    char name[16];
    uint32_t bits = ptx_type_bytes(type) * 8;

    if (bits == 64)
        return wide ? v : step(d, PTX_OP_low_32, v);
    if (bits == 32 && !wide)
        return v;
    snprintf(name, sizeof name, "ext_%c%u_%d", ptx_type_is_signed(type) ? 's' : 'u', bits,
             wide ? 64 : 32);
    return step_named(d, name, v);
}

/* Clamps to a constant on one side; op is a min or max. */
static uint32_t clamp_side(struct ptx_decoder *d, uint32_t op, uint32_t v, uint64_t bound)
{
    uint32_t wide = is_wide(d, v) ? PTX_W64 : PTX_W32, to = ptx_new_vreg(d, wide);

    if (v == PTX_NO_VREG)
        return v;
    return ptx_emit_n(d, op, to, v, ptx_const_vreg(d, wide, bound), 0) ? to : PTX_NO_VREG;
}

/* Saturates an integer (signed or not, 32 or 64 bits) to the range of a narrower or other type. */
static uint32_t saturate_int(struct ptx_decoder *d, uint32_t v, int from_signed, uint32_t type)
{
    uint32_t bits = ptx_type_bytes(type) * 8;
    int to_signed = ptx_type_is_signed(type), wide = is_wide(d, v);
    uint64_t top = to_signed    ? ((uint64_t)1 << (bits - 1)) - 1
                   : bits == 64 ? ~(uint64_t)0
                                : ((uint64_t)1 << bits) - 1;
    uint64_t low = to_signed ? ~top : 0;

    if (from_signed && (bits < 64 || !to_signed))
        v = clamp_side(d, wide ? PTX_OP_max_s64 : PTX_OP_max_s32, v, low);
    if (bits == 64 && !to_signed)
        return v;
    if (from_signed && (wide || bits < 32 || to_signed))
        return clamp_side(d, wide ? PTX_OP_min_s64 : PTX_OP_min_s32, v, top);
    return from_signed ? v : clamp_side(d, wide ? PTX_OP_min_u64 : PTX_OP_min_u32, v, top);
}

static uint32_t int_to_int(struct ptx_decoder *d, const struct cvt *c, uint32_t v)
{
    int from_signed = ptx_type_is_signed(c->from);
    int wide = ptx_type_bytes(c->to) == 8 || ptx_type_bytes(c->from) == 8;

    v = extend(d, v, c->from, wide);
    if (c->sat)
        v = saturate_int(d, v, from_signed, c->to);
    if (ptx_type_bytes(c->to) < ptx_type_bytes(c->from) || ptx_type_bytes(c->to) < 4) {
        if (is_wide(d, v))
            v = step(d, PTX_OP_low_32, v);
        v = ptx_type_bytes(c->to) < 4 ? extend(d, v, c->to, 0) : v;
    }
    return v;
}

/* f16 and bf16 come as f32; subnormals go where asked. */
static uint32_t load_float(struct ptx_decoder *d, const struct cvt *c, uint32_t v)
{
    if (c->from == PTX_F16)
        return step(d, PTX_OP_f32_from_f16, v);
    if (c->from == PTX_BF16)
        return step(d, PTX_OP_f32_from_bf16, v);
    return c->ftz && c->from == PTX_F32 ? step(d, PTX_OP_flush_f32, v) : v;
}

/* Rounding to whole numbers in f32 or f64: mode N, Z, M or P. */
static uint32_t round_whole(struct ptx_decoder *d, char mode, uint32_t v)
{
    char name[16];

    snprintf(name, sizeof name, "round_%c_%s", mode - 'A' + 'a', is_wide(d, v) ? "f64" : "f32");
    return step_named(d, name, v);
}

static uint32_t float_to_int(struct ptx_decoder *d, const struct cvt *c, uint32_t v)
{
    uint32_t bytes = ptx_type_bytes(c->to);
    int to_signed = ptx_type_is_signed(c->to);
    char name[24];

    if (!c->round || strchr("nzmp", c->round)) {
        ptx_unsupported(d, "converts a float to an integer without .rni, .rzi, .rmi or .rpi");
        return PTX_NO_VREG;
    }
    v = load_float(d, c, v);
    if (c->round != 'Z')
        v = round_whole(d, c->round, v);
    snprintf(name, sizeof name, "%c%d_from_%s", bytes < 4 || to_signed ? 's' : 'u',
             bytes == 8 ? 64 : 32, is_wide(d, v) ? "f64" : "f32");
    v = step_named(d, name, v);
    if (bytes < 4)
        v = extend(d, saturate_int(d, v, 1, c->to), c->to, 0);
    return v;
}

/* f32 or f64 value to the destination's float type. */
static uint32_t store_float(struct ptx_decoder *d, const struct cvt *c, uint32_t v)
{
    char name[24];

    if (c->sat)
        v = step(d, is_wide(d, v) ? PTX_OP_sat_f64 : PTX_OP_sat_f32, v);
    if (c->relu && !is_wide(d, v))
        v = step(d, PTX_OP_relu_f32, v);
    if (c->to == PTX_F64)
        return is_wide(d, v) ? v : step(d, PTX_OP_f64_from_f32, v);
    if (c->to == PTX_F32) {
        if (!is_wide(d, v))
            return c->ftz ? step(d, PTX_OP_flush_f32, v) : v;
        snprintf(name, sizeof name, "f32_from_f64%s",
                 c->round == 'z'   ? "_rz"
                 : c->round == 'm' ? "_rm"
                 : c->round == 'p' ? "_rp"
                 : c->ftz          ? "_z"
                                   : "");
        return step_named(d, name, v);
    }
    if (is_wide(d, v))
        v = step(d, PTX_OP_odd_from_f64, v); /* so that the second rounding is the only one */
    snprintf(name, sizeof name, "%s_from_f32%s", c->to == PTX_F16 ? "f16" : "bf16",
             c->round == 'z'   ? "_rz"
             : c->round == 'm' ? "_rm"
             : c->round == 'p' ? "_rp"
                               : "");
    return step_named(d, name, v);
}

static uint32_t int_to_float(struct ptx_decoder *d, const struct cvt *c, uint32_t v)
{
    int wide = ptx_type_bytes(c->from) == 8, is_signed = ptx_type_is_signed(c->from);
    int narrow_target = c->to == PTX_F16 || c->to == PTX_BF16;
    char name[32];

    v = extend(d, v, c->from, wide);
    if (c->to == PTX_F32 && !wide && c->round && c->round != 'n') {
        snprintf(name, sizeof name, "f64_from_%c32",
                 is_signed ? 's' : 'u'); /* exact, then rounded as asked */
        return store_float(d, c, step_named(d, name, v));
    }
    if (narrow_target && wide)
        return store_float(d, c, step(d, is_signed ? PTX_OP_odd_from_s64 : PTX_OP_odd_from_u64, v));
    if (wide && c->round && c->round != 'n') {
        snprintf(name, sizeof name, "%s_from_%c64_r%c", c->to == PTX_F64 ? "f64" : "f32",
                 is_signed ? 's' : 'u', c->round);
        return step_named(d, name, v);
    }
    snprintf(name, sizeof name, "%s_from_%c%d", c->to == PTX_F64 || narrow_target ? "f64" : "f32",
             is_signed ? 's' : 'u', wide ? 64 : 32);
    v = step_named(d, name, v);
    return narrow_target || c->sat ? store_float(d, c, v) : v;
}

static uint32_t float_to_float(struct ptx_decoder *d, const struct cvt *c, uint32_t v)
{
    v = load_float(d, c, v);
    if (c->round && strchr("NZMP", c->round)) {
        struct cvt rest = *c;

        v = round_whole(d, c->round, v);
        rest.round = 'n';
        return store_float(d, &rest, v);
    }
    return store_float(d, c, v);
}

/* cvt.rn.f16x2.f32 d, a, b: a goes to the upper half. */
static int decode_pair(struct ptx_decoder *d, const struct cvt *c)
{
    const struct ptx_stmt *st = d->stmt;
    uint32_t op = c->to == PTX_F16X2 ? PTX_OP_f16x2_from_f32 : PTX_OP_bf16x2_from_f32, a, b;

    if (st->n_ops != 3 || c->from != PTX_F32 || c->round != 'n' || c->sat)
        return ptx_unsupported(d, "converts in a way that is not supported");
    a = ptx_use(d, &st->ops[1], PTX_TAG_f32);
    b = ptx_use(d, &st->ops[2], PTX_TAG_f32);
    if (c->relu) {
        a = step(d, PTX_OP_relu_f32, a);
        b = step(d, PTX_OP_relu_f32, b);
    }
    return ptx_emit_n(d, op, ptx_def(d, &st->ops[0], PTX_TAG_u32), a, b, 0) ? 0 : -1;
}

/* cvt.rn.satfinite{.relu}.e4m3x2.f32 d, a, b and cvt.rn.f16x2.e4m3x2 d, a; also e5m2x2. */
static int decode_fp8(struct ptx_decoder *d, const struct ptx_words *w)
{
    const struct ptx_stmt *st = d->stmt;
    const int e4m3 = ptx_has_word(w, "e4m3x2"), relu = ptx_has_word(w, "relu");
    const uint32_t down = e4m3 ? PTX_OP_e4m3x2_from_f32 : PTX_OP_e5m2x2_from_f32;
    uint32_t a, b, up = e4m3 ? PTX_OP_f16x2_from_e4m3x2 : PTX_OP_f16x2_from_e5m2x2;

    if (ptx_word_is(w, w->n - 1, "f32") && st->n_ops == 3) {
        a = ptx_use(d, &st->ops[1], PTX_TAG_f32);
        b = ptx_use(d, &st->ops[2], PTX_TAG_f32);
        a = relu ? step(d, PTX_OP_relu_f32, a) : a;
        b = relu ? step(d, PTX_OP_relu_f32, b) : b;
        return ptx_emit_n(d, down, ptx_def(d, &st->ops[0], PTX_TAG_u32), a, b, 0) ? 0 : -1;
    }
    if (!ptx_has_word(w, "f16x2") || ptx_word_is(w, w->n - 1, "f16x2") || relu || st->n_ops != 2)
        return ptx_unsupported(d, "converts in a way that is not supported");
    a = ptx_use(d, &st->ops[1], PTX_TAG_u32);
    return ptx_emit_n(d, up, ptx_def(d, &st->ops[0], PTX_TAG_u32), a, 0, 0) ? 0 : -1;
}

/* The result into the destination's register, which may be wider than the type. */
static int finish(struct ptx_decoder *d, const struct cvt *c, uint32_t v)
{
    const struct ptx_operand *to = &d->stmt->ops[0];
    int wide_target = ptx_operand_width(to) == PTX_W64;

    if (v == PTX_NO_VREG)
        return -1;
    if (wide_target && !is_wide(d, v))
        v = step(d,
                 ptx_type_is_signed(c->to) && !ptx_type_is_float(c->to) ? PTX_OP_ext_s32_64
                                                                        : PTX_OP_ext_u32_64,
                 v);
    if (v == PTX_NO_VREG)
        return -1;
    /* The last step's register becomes the destination itself, unless nothing was emitted. */
    struct ptx_insn *last = d->n_code ? &d->code[d->n_code - 1] : NULL;
    uint32_t target = ptx_def(d, to, wide_target ? PTX_TAG_u64 : PTX_TAG_u32);
    if (target == PTX_NO_VREG)
        return -1;
    if (last && d->weighted && last->r[0] == v && ptx_ops[last->op].defs.n == 1 &&
        !d->vregs[v].is_fixed) {
        last->r[0] = target;
        return 0;
    }
    return ptx_emit_n(d, wide_target ? PTX_OP_mov_64 : PTX_OP_mov_32, target, v, 0, 0) ? 0 : -1;
}

int ptx_decode_cvt(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    struct cvt c;
    uint32_t v;
    int from_float, to_float;

    if (ptx_has_word(words, "e4m3x2") || ptx_has_word(words, "e5m2x2"))
        return decode_fp8(d, words);
    if (read_cvt(d, words, &c))
        return -1;
    if (c.to == PTX_F16X2 || c.to == PTX_BF16X2)
        return decode_pair(d, &c);
    if (st->n_ops != 2 || c.from == PTX_F16X2 || c.from == PTX_BF16X2)
        return ptx_unsupported(d, "converts in a way that is not supported");
    from_float = ptx_type_is_float(c.from);
    to_float = ptx_type_is_float(c.to);
    v = source(d, &st->ops[1], c.from);
    if (v == PTX_NO_VREG)
        return -1;
    v = from_float ? (to_float ? float_to_float : float_to_int)(d, &c, v)
                   : (to_float ? int_to_float : int_to_int)(d, &c, v);
    return finish(d, &c, v);
}
