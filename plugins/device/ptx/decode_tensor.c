/*
 * decode_tensor.c - mma.sync, ldmatrix and wmma of the shapes that compilers emit for f16, bf16,
 * tf32 and 8-bit integers.
 */
#include "decode_int.h"

#include "exec.h"

#include <string.h>

/* ---- Fragments ------------------------------------------------------------------------------- */

/* A list of 1 to 8 registers as a fragment; missing ones are zero. */
static uint32_t pack_list(struct ptx_decoder *d, const struct ptx_operand *list, uint32_t n)
{
    uint32_t r[PTX_MAX_OPERANDS], f = ptx_new_vreg(d, PTX_WX);

    if ((list->kind == PTX_O_LIST ? list->n : 1) != n || n > 8) {
        ptx_unsupported(d, "has an unexpected number of registers");
        return PTX_NO_VREG;
    }
    for (uint32_t first = 0; first < n; first += 4) {
        uint32_t k = 0;

        r[k++] = f;
        if (first)
            r[k++] = f;
        for (uint32_t i = first; i < first + 4; i++) {
            const struct ptx_operand *op =
                list->kind == PTX_O_LIST ? &list->items[i < n ? i : 0] : list;

            r[k++] = i < n ? ptx_use(d, op, PTX_TAG_f32) : ptx_const_vreg(d, PTX_W32, 0);
        }
        if (!ptx_emit(d, first ? PTX_OP_frag_pack_high : PTX_OP_frag_pack, r))
            return PTX_NO_VREG;
    }
    return f;
}

static int unpack_list(struct ptx_decoder *d, const struct ptx_operand *list, uint32_t n,
                       uint32_t f)
{
    uint32_t r[PTX_MAX_OPERANDS];

    if (list->kind != PTX_O_LIST || list->n != n || n > 8)
        return ptx_unsupported(d, "has an unexpected number of registers");
    for (uint32_t first = 0; first < n; first += 4) {
        for (uint32_t i = first; i < first + 4; i++)
            r[i - first] =
                i < n ? ptx_def(d, &list->items[i], PTX_TAG_u32) : ptx_new_vreg(d, PTX_W32);
        r[4] = f;
        if (!ptx_emit(d, first ? PTX_OP_frag_unpack_high : PTX_OP_frag_unpack, r))
            return -1;
    }
    return 0;
}

/* ---- Words ----------------------------------------------------------------------------------- */

struct tensor {
    uint32_t m, n, k;
    uint32_t types[4], n_types; /* in the order of the mnemonic; tf32 is PTX_B32 */
    uint32_t orders, n_orders;  /* bit i: the i-th layout word is col */
    uint32_t space;
    char matrix; /* wmma.load.a and its like */
};

/* "m16n8k16" */
static int read_shape(const char *p, uint32_t len, struct tensor *t)
{
    uint32_t *fields[3] = {&t->m, &t->n, &t->k};

    for (uint32_t f = 0; f < 3; f++) {
        uint32_t v = 0, digits = 0;

        if (!len || *p != "mnk"[f])
            return -1;
        for (p++, len--; len && *p >= '0' && *p <= '9' && digits < 3; p++, len--, digits++)
            v = v * 10 + (uint32_t)(*p - '0');
        *fields[f] = v;
    }
    return len ? -1 : 0;
}

static int tensor_word(const struct ptx_words *w, uint32_t i, struct tensor *t)
{
    const char *p = w->word[i].ptr;
    uint32_t len = w->word[i].len, type = ptx_type_of(p, len);

    if (ptx_word_is(w, i, "tf32"))
        type = PTX_B32;
    if (type && t->n_types < 4)
        t->types[t->n_types++] = type;
    else if (ptx_word_is(w, i, "row") || ptx_word_is(w, i, "col"))
        t->orders |= (uint32_t)(*p == 'c') << t->n_orders++;
    else if (ptx_word_is(w, i, "global") || ptx_word_is(w, i, "shared") ||
             ptx_word_is(w, i, "shared::cta"))
        t->space = *p == 'g' ? PTX_GLOBAL : PTX_SHARED;
    else if (len == 1 && strchr("abcd", *p))
        t->matrix = *p == 'd' ? 'c' : *p;
    else if (!ptx_word_is(w, i, "sync") && !ptx_word_is(w, i, "aligned") &&
             !ptx_word_is(w, i, "load") && !ptx_word_is(w, i, "store") && !ptx_word_is(w, i, "mma"))
        return read_shape(p, len, t);
    return 0;
}

static int read_tensor(struct ptx_decoder *d, const struct ptx_words *w, struct tensor *t)
{
    memset(t, 0, sizeof *t);
    for (uint32_t i = 1; i < w->n; i++)
        if (tensor_word(w, i, t))
            return ptx_unsupported(d, "has a form that is not supported");
    return 0;
}

/* Depths that an input type has, and whether accumulators of this type go with it. */
static int is_supported(uint32_t type, uint32_t k, uint32_t c)
{
    switch (type) {
    case PTX_F16:
        return (k == 8 || k == 16) && (c == PTX_F32 || c == PTX_F16);
    case PTX_BF16:
        return (k == 8 || k == 16) && c == PTX_F32;
    case PTX_B32:
        return (k == 4 || k == 8) && c == PTX_F32;
    case PTX_S8:
    case PTX_U8:
        return (k == 16 || k == 32) && c == PTX_S32;
    default:
        return 0;
    }
}

/* ---- mma ------------------------------------------------------------------------------------- */

/* d = a * b + c; halves: n8 blocks side by side; copies: how often the registers repeat (wmma). */
static int emit_mma(struct ptx_decoder *d, struct ptx_tile tile, uint32_t halves, uint32_t copies)
{
    const struct ptx_operand *ops = d->stmt->ops;
    const uint32_t per = 4 / ptx_type_bytes(tile.type);
    const uint32_t n_a = 16u * tile.k / 32 / per * copies,
                   n_b = halves * 8 * tile.k / 32 / per * copies;
    const uint32_t n_c = halves * ptx_type_bytes(tile.c), n_d = halves * ptx_type_bytes(tile.d);
    uint32_t a, b, c, to;
    struct ptx_insn *in;

    d->weighted = 1; /* the product counts, not its packing */
    a = pack_list(d, &ops[1], n_a);
    b = pack_list(d, &ops[2], n_b);
    c = pack_list(d, &ops[3], n_c);
    to = ptx_new_vreg(d, PTX_WX);
    d->weighted = 0;
    in = ptx_emit_n(d, PTX_OP_mma, to, a, b, c);
    if (!in)
        return -1;
    in->second = ptx_tile_pack(tile);
    in->sub = (uint8_t)halves;
    return unpack_list(d, &ops[0], n_d, to);
}

/* mma.sync.aligned.m16n8kK.row.col.D.A.B.C d, a, b, c. */
int ptx_decode_mma(struct ptx_decoder *d, const struct ptx_words *words)
{
    struct tensor t;

    if (read_tensor(d, words, &t))
        return -1;
    if (t.m != 16 || t.n != 8 || t.n_types != 4 || t.types[1] != t.types[2] || t.orders != 2 ||
        t.n_orders != 2 || !is_supported(t.types[1], t.k, t.types[3]) ||
        !is_supported(t.types[1], t.k, t.types[0]) || d->stmt->n_ops != 4)
        return ptx_unsupported(d, "has a shape or type that is not supported");
    return emit_mma(d,
                    (struct ptx_tile){(uint8_t)t.k, (uint8_t)t.types[1], (uint8_t)t.types[3],
                                      (uint8_t)t.types[0]},
                    1, 1);
}

/* ---- wmma ------------------------------------------------------------------------------------ */

/* f16 fragments hold everything twice; bf16, tf32 and the accumulators once. */
static uint32_t tile_registers(const struct ptx_tile *t)
{
    if (t->c == 'c')
        return 2 * ptx_type_bytes(t->type);
    return 16u * t->k / 32 * ptx_type_bytes(t->type) / 4 * (t->type == PTX_F16 ? 2 : 1);
}

static int decode_tile(struct ptx_decoder *d, const struct tensor *t, int writes)
{
    const struct ptx_stmt *st = d->stmt;
    const struct ptx_operand *list = &st->ops[writes ? 1 : 0], *at = &st->ops[writes ? 0 : 1];
    struct ptx_tile tile = {(uint8_t)t->k, (uint8_t)t->types[0], (uint8_t)t->matrix,
                            (uint8_t)(t->orders & 1)};
    uint32_t n = tile_registers(&tile), address, stride, f;
    struct ptx_insn *in;
    int64_t offset;

    address = ptx_address(d, at, &offset);
    stride = st->n_ops == 3 ? ptx_use(d, &st->ops[2], PTX_TAG_u32)
                            : ptx_const_vreg(d, PTX_W32, t->matrix == 'a' ? t->k : 16);
    d->weighted = 1;
    f = writes ? pack_list(d, list, n) : ptx_new_vreg(d, PTX_WX);
    d->weighted = 0;
    in = writes ? ptx_emit_n(d, PTX_OP_tile_store, address, f, stride, 0)
                : ptx_emit_n(d, PTX_OP_tile_load, f, address, stride, 0);
    if (!in)
        return -1;
    in->imm = offset;
    in->space = t->space;
    in->sub = (uint8_t)n;
    in->second = ptx_tile_pack(tile);
    in->hint = d->n_hints++;
    return writes ? 0 : unpack_list(d, list, n, f);
}

/* wmma.load.{a,b,c}, wmma.mma, wmma.store.d of 16 x 16 tiles. */
int ptx_decode_wmma(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    struct tensor t;
    uint32_t type;

    if (read_tensor(d, words, &t))
        return -1;
    if (t.m != 16 || t.n != 16)
        return ptx_unsupported(d, "has a shape that is not supported");
    if (!ptx_word_is(words, 1, "mma")) {
        type = t.matrix == 'c' ? (t.k == 8 ? PTX_B32 : PTX_F16) : t.types[0];
        if (t.n_types != 1 || !t.matrix || st->n_ops < 2 || st->n_ops > 3 ||
            !is_supported(type, t.k, t.matrix == 'c' ? t.types[0] : PTX_F32))
            return ptx_unsupported(d, "has a type that is not supported");
        return decode_tile(d, &t, ptx_word_is(words, 1, "store"));
    }
    if (t.n_types == 2) /* f16 inputs are not written out */
        t = (struct tensor){
            .k = t.k, .types = {t.types[0], PTX_F16, PTX_F16, t.types[1]}, .n_types = 4};
    if (t.n_types != 4 || t.types[1] != t.types[2] || st->n_ops != 4 ||
        !is_supported(t.types[1], t.k, t.types[3]) || !is_supported(t.types[1], t.k, t.types[0]) ||
        ptx_type_bytes(t.types[1]) == 1)
        return ptx_unsupported(d, "has a type that is not supported");
    return emit_mma(d,
                    (struct ptx_tile){(uint8_t)t.k, (uint8_t)t.types[1], (uint8_t)t.types[3],
                                      (uint8_t)t.types[0]},
                    2, t.types[1] == PTX_F16 ? 2 : 1);
}

/* ---- ldmatrix -------------------------------------------------------------------------------- */

/* ldmatrix.sync.aligned.m8n8.x{1,2,4}{.trans}.shared.b16 {...}, [p]. */
int ptx_decode_ldmatrix(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    const uint32_t n = ptx_has_word(words, "x4") ? 4 : ptx_has_word(words, "x2") ? 2 : 1;
    uint32_t r[PTX_MAX_OPERANDS];
    struct ptx_insn *in;
    int64_t offset;

    if (!ptx_has_word(words, "m8n8") || !ptx_has_word(words, "b16") || st->n_ops != 2 ||
        (!ptx_has_word(words, "shared") && !ptx_has_word(words, "shared::cta")) ||
        (st->ops[0].kind == PTX_O_LIST ? st->ops[0].n : 1) != n)
        return ptx_unsupported(d, "has a form that is not supported");
    r[4] = ptx_address(d, &st->ops[1], &offset);
    for (uint32_t k = 0; k < 4; k++)
        r[k] = k >= n
                   ? ptx_new_vreg(d, PTX_W32)
                   : ptx_def(d, st->ops[0].kind == PTX_O_LIST ? &st->ops[0].items[k] : &st->ops[0],
                             PTX_TAG_u32);
    in = ptx_emit(d, PTX_OP_ldmatrix, r);
    if (!in)
        return -1;
    in->imm = offset;
    in->sub = (uint8_t)n;
    in->second = ptx_has_word(words, "trans");
    in->space = PTX_SHARED;
    return 0;
}
