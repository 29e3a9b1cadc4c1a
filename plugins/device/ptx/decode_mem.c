/*
 * decode_mem.c - loads, stores, atomics, asynchronous copies.
 */
#include "decode_int.h"

#include "exec.h"

#include <string.h>

struct access {
    uint32_t space, type, count;
    uint32_t flags; /* PTX_F_STRONG, PTX_F_ORDERS */
};

/* Words without influence here: caches, ordering, scopes. */
static const char *const ignored[] = {"nc",      "ca",      "cg",    "cs",  "lu",  "cv",
                                      "wb",      "wt",      "weak",  "cta", "gpu", "sys",
                                      "cluster", "unified", "noftz", NULL};

static int access_word(const struct ptx_words *w, uint32_t i, struct access *a)
{
    static const char *const spaces[] = {"global",      "shared", "shared::cta", "shared::cluster",
                                         "local",       "const",  "param",       "param::entry",
                                         "param::func", NULL};
    static const uint32_t space_of[] = {PTX_GLOBAL, PTX_SHARED, PTX_SHARED, PTX_SHARED, PTX_LOCAL,
                                        PTX_CONST,  PTX_PARAM,  PTX_PARAM,  PTX_PARAM};
    static const char *const strong[] = {"volatile", "relaxed", "mmio", NULL};
    static const char *const orders[] = {"acquire", "release", "acq_rel", NULL};
    int space = ptx_word_in(w, i, spaces);
    uint32_t type = ptx_type_of(w->word[i].ptr, w->word[i].len);

    if (space >= 0)
        a->space = space_of[space];
    else if (type)
        a->type = type;
    else if (ptx_word_is(w, i, "v2") || ptx_word_is(w, i, "v4"))
        a->count = w->word[i].ptr[1] == '2' ? 2 : 4;
    else if (w->word[i].len > 2 && w->word[i].ptr[0] == 'L' && strchr("12", w->word[i].ptr[1]))
        return 0; /* L1::evict_last and its like */
    else if (ptx_word_in(w, i, orders) >= 0)
        a->flags |= PTX_F_STRONG | PTX_F_ORDERS;
    else if (ptx_word_in(w, i, strong) >= 0)
        a->flags |= PTX_F_STRONG;
    else if (ptx_word_in(w, i, ignored) < 0)
        return -1;
    return 0;
}

static int read_access(struct ptx_decoder *d, const struct ptx_words *w, struct access *a)
{
    *a = (struct access){.count = 1};
    for (uint32_t i = 1; i < w->n; i++)
        if (access_word(w, i, a))
            return ptx_unsupported(d, "has a modifier that is not supported");
    if (!a->type || a->type == PTX_PRED || a->type == PTX_B128)
        return ptx_unsupported(d, "has a type that is not supported");
    return 0;
}

/* Operands without the policy of a cache hint, which is the last one. */
static uint32_t plain_operands(const struct ptx_decoder *d, const struct ptx_words *w)
{
    const uint32_t n = d->stmt->n_ops;

    return n && ptx_has_word(w, "L2::cache_hint") ? n - 1 : n;
}

static int element_of(uint32_t type)
{
    uint32_t bytes = ptx_type_bytes(type);

    if (bytes == 8)
        return PTX_E_64;
    if (bytes == 4)
        return PTX_E_32;
    if (bytes == 2)
        return type == PTX_S16 ? PTX_E_S16 : PTX_E_U16;
    return type == PTX_S8 ? PTX_E_S8 : PTX_E_U8;
}

/* The register of an address and the offset that is added to it. */
uint32_t ptx_address(struct ptx_decoder *d, const struct ptx_operand *op, int64_t *offset)
{
    struct ptx_operand base = *op;
    uint32_t v, wide;

    *offset = 0;
    if (op->kind != PTX_O_ADDRESS) {
        ptx_unsupported(d, "has an address of an unexpected form");
        return PTX_NO_VREG;
    }
    if (!op->sym)
        return ptx_const_vreg(d, PTX_W64, op->imm);
    base.kind = PTX_O_SYM;
    if (op->sym->kind != PTX_SYM_REG)
        return ptx_use(d, &base, PTX_TAG_u64);
    base.imm = 0;
    *offset = (int64_t)op->imm;
    if (ptx_operand_width(&base) != PTX_W32)
        return ptx_use(d, &base, PTX_TAG_u64);
    v = ptx_use(d, &base, PTX_TAG_u32);
    wide = ptx_new_vreg(d, PTX_W64);
    uint32_t weighted = d->weighted;
    d->weighted = 1; /* 32-bit addresses are as good as 64-bit ones: no instruction */
    v = ptx_emit_n(d, PTX_OP_ext_u32_64, wide, v, 0, 0) ? wide : PTX_NO_VREG;
    d->weighted = weighted;
    return v;
}

/* The k-th of count value operands: the operand itself, or an item of {a, b, c, d}. */
static const struct ptx_operand *value_operand(struct ptx_decoder *d, const struct ptx_operand *op,
                                               uint32_t count, uint32_t k)
{
    if (count == 1 && op->kind != PTX_O_LIST)
        return op;
    if (op->kind == PTX_O_LIST && op->n == count)
        return &op->items[k];
    ptx_unsupported(d, "has an unexpected number of registers");
    return NULL;
}

/* Where an element of `bytes` is loaded to: the register, or a narrow one that is widened behind.
 */
static uint32_t load_target(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t bytes)
{
    if (bytes < 8 && ptx_operand_width(op) == PTX_W64)
        return ptx_new_vreg(d, PTX_W32);
    return ptx_def(d, op, bytes == 8 ? PTX_TAG_u64 : PTX_TAG_u32);
}

static int widen_target(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t type,
                        uint32_t from)
{
    uint32_t op_ext = ptx_type_is_signed(type) && !ptx_type_is_float(type) ? PTX_OP_ext_s32_64
                                                                           : PTX_OP_ext_u32_64;

    if (ptx_type_bytes(type) == 8 || ptx_operand_width(op) != PTX_W64)
        return 0;
    return ptx_emit_n(d, op_ext, ptx_def(d, op, PTX_TAG_u64), from, 0, 0) ? 0 : -1;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* A load of an element at a known place of the entry's parameters, or of a call's. */
static int load_param_piece(struct ptx_decoder *d, const struct ptx_operand *to,
                            const struct ptx_operand *address, uint32_t type, uint64_t offset)
{
    const struct ptx_sym *s = address->sym;
    struct ptx_block_param *param = s->is_formal && !d->in->caller ? NULL : ptx_call_param(d, s);
    uint32_t bytes = ptx_type_bytes(type), wide = ptx_operand_width(to) == PTX_W64, v;
    int is_signed = ptx_type_is_signed(type) && !ptx_type_is_float(type);

    if (offset > s->size || bytes > s->size - offset)
        return ptx_unsupported(d, "reads past the end of a parameter");
    if (param) {
        static const uint16_t narrow[2][2] = {{PTX_OP_ext_u8_32, PTX_OP_ext_s8_32},
                                              {PTX_OP_ext_u16_32, PTX_OP_ext_s16_32}};
        uint32_t piece = ptx_param_piece(d, param, offset, bytes),
                 target = load_target(d, to, bytes);
        uint32_t op = bytes == 8   ? PTX_OP_mov_64
                      : bytes == 4 ? PTX_OP_mov_32
                                   : narrow[bytes == 2][is_signed];

        return ptx_emit_n(d, op, target, piece, 0, 0) ? widen_target(d, to, type, target) : -1;
    }
    struct ptx_fill fill = {.kind = PTX_FILL_PARAM,
                            .width = wide || bytes == 8 ? PTX_W64 : PTX_W32,
                            .value = s->offset + offset,
                            .bytes = bytes,
                            .is_signed = (uint32_t)is_signed};
    v = ptx_fill_vreg(d, &fill);
    return ptx_emit_n(d, fill.width == PTX_W64 ? PTX_OP_mov_64 : PTX_OP_mov_32,
                      ptx_def(d, to, fill.width == PTX_W64 ? PTX_TAG_u64 : PTX_TAG_u32), v, 0, 0)
               ? 0
               : -1;
}

static int load_param(struct ptx_decoder *d, const struct access *a)
{
    const struct ptx_stmt *st = d->stmt;

    for (uint32_t k = 0; k < a->count; k++) {
        const struct ptx_operand *to = value_operand(d, &st->ops[0], a->count, k);

        if (!to || load_param_piece(d, to, &st->ops[1], a->type,
                                    st->ops[1].imm + (uint64_t)k * ptx_type_bytes(a->type)))
            return -1;
    }
    return 0;
}

static int store_param(struct ptx_decoder *d, const struct access *a)
{
    const struct ptx_operand *at = &d->stmt->ops[0];
    struct ptx_block_param *param =
        at->kind == PTX_O_ADDRESS && at->sym ? ptx_call_param(d, at->sym) : NULL;
    uint32_t bytes = ptx_type_bytes(a->type);

    if (!param)
        return ptx_unsupported(d, "stores to a kernel parameter");
    for (uint32_t k = 0; k < a->count; k++) {
        const struct ptx_operand *from = value_operand(d, &d->stmt->ops[1], a->count, k);
        uint64_t offset = at->imm + (uint64_t)k * bytes;
        uint32_t op = bytes == 8 ? PTX_OP_mov_64 : PTX_OP_mov_32;

        if (offset > at->sym->size || bytes > at->sym->size - offset)
            return ptx_unsupported(d, "writes past the end of a parameter");
        if (!from || !ptx_emit_n(d, op, ptx_param_piece(d, param, offset, bytes),
                                 ptx_use(d, from, bytes == 8 ? PTX_TAG_u64 : PTX_TAG_u32), 0, 0))
            return -1;
    }
    return 0;
}

/* ---- Loads and stores ------------------------------------------------------------------------ */

static uint32_t move_op(struct ptx_decoder *d, const struct access *a, int element, char verb)
{
    char name[16];
    uint32_t n = 0;

    name[n++] = verb;
    name[n++] = verb == 'l' ? 'd' : 't';
    name[n++] = a->space == PTX_SHARED ? 's' : 'g';
    name[n++] = '_';
    if (element == PTX_E_64 || element == PTX_E_32) {
        name[n++] = element == PTX_E_64 ? '6' : '3';
        name[n++] = element == PTX_E_64 ? '4' : '2';
    } else {
        name[n++] = 'x';
    }
    if (a->count > 1) {
        name[n++] = 'v';
        name[n++] = a->count == 2 ? '2' : '4';
    }
    return ptx_optable_find(d->table, name, n);
}

static void note_unit(struct ptx_decoder *d, uint32_t bytes)
{
    if (!d->shared_unit || bytes < d->shared_unit)
        d->shared_unit = bytes;
}

static void mark_access(struct ptx_decoder *d, struct ptx_insn *in, const struct access *a,
                        int element, int64_t offset)
{
    in->sub = (uint8_t)element;
    in->imm = offset;
    in->space = a->space == PTX_CONST ? PTX_GLOBAL : a->space;
    in->hint = d->n_hints++;
    in->flags |= (uint8_t)a->flags;
    if ((a->space == PTX_SHARED || a->space == PTX_GENERIC) && ptx_type_bytes(a->type) < 4)
        note_unit(d, ptx_type_bytes(a->type));
}

/* Local memory, and parameters at a computed address: one instruction an element. */
static int own_accesses(struct ptx_decoder *d, const struct access *a, const uint32_t *values,
                        uint32_t at, int64_t offset, int writes)
{
    int element = element_of(a->type), wide = element == PTX_E_64;

    for (uint32_t k = 0; k < a->count; k++) {
        uint32_t op = writes ? (wide ? PTX_OP_stl_64 : PTX_OP_stl_32)
                             : (wide ? PTX_OP_ldl_64 : PTX_OP_ldl_32);
        struct ptx_insn *in = writes ? ptx_emit_n(d, op, at, values[k], 0, 0)
                                     : ptx_emit_n(d, op, values[k], at, 0, 0);

        if (!in)
            return -1;
        mark_access(d, in, a, element, offset + (int64_t)k * ptx_type_bytes(a->type));
    }
    return 0;
}

static int emit_load(struct ptx_decoder *d, const struct access *a, const uint32_t *targets,
                     uint32_t at, int64_t offset)
{
    uint32_t r[PTX_MAX_OPERANDS], op = move_op(d, a, element_of(a->type), 'l');
    struct ptx_insn *in;

    if (a->space == PTX_LOCAL || a->space == PTX_PARAM)
        return own_accesses(d, a, targets, at, offset, 0);
    if (op >= PTX_N_OPS)
        return ptx_unsupported(d, "has a width that is not supported");
    memcpy(r, targets, a->count * sizeof *r);
    r[a->count] = at;
    in = ptx_emit(d, op, r);
    if (in)
        mark_access(d, in, a, element_of(a->type), offset);
    return in ? 0 : -1;
}

int ptx_decode_load(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    uint32_t targets[4], at, bytes;
    struct access a;
    int64_t offset;

    if (read_access(d, words, &a))
        return -1;
    if (plain_operands(d, words) != 2)
        return ptx_unsupported(d, "has an unexpected number of operands");
    if (a.space == PTX_PARAM && st->ops[1].kind == PTX_O_ADDRESS && st->ops[1].sym &&
        st->ops[1].sym->kind == PTX_SYM_PARAM)
        return load_param(d, &a);
    bytes = ptx_type_bytes(a.type);
    at = ptx_address(d, &st->ops[1], &offset);
    for (uint32_t k = 0; k < a.count; k++) {
        const struct ptx_operand *to = value_operand(d, &st->ops[0], a.count, k);

        targets[k] = to ? load_target(d, to, bytes) : PTX_NO_VREG;
        if (targets[k] == PTX_NO_VREG)
            return -1;
    }
    if (at == PTX_NO_VREG || emit_load(d, &a, targets, at, offset))
        return -1;
    for (uint32_t k = 0; k < a.count; k++)
        if (widen_target(d, value_operand(d, &st->ops[0], a.count, k), a.type, targets[k]))
            return -1;
    return 0;
}

/* A value to store: 64-bit registers give their low part to narrower stores. */
static uint32_t store_value(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t type)
{
    uint32_t bytes = ptx_type_bytes(type), narrow;

    if (bytes == 8)
        return ptx_use(d, op, ptx_type_is_float(type) ? PTX_TAG_f64 : PTX_TAG_u64);
    if (ptx_operand_width(op) != PTX_W64)
        return ptx_use(d, op, type == PTX_F32 ? PTX_TAG_f32 : PTX_TAG_u32);
    narrow = ptx_new_vreg(d, PTX_W32);
    return ptx_emit_n(d, PTX_OP_low_32, narrow, ptx_use(d, op, PTX_TAG_u64), 0, 0) ? narrow
                                                                                   : PTX_NO_VREG;
}

int ptx_decode_store(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    uint32_t r[PTX_MAX_OPERANDS], op;
    struct ptx_insn *in;
    struct access a;
    int64_t offset;

    if (read_access(d, words, &a))
        return -1;
    if (plain_operands(d, words) != 2)
        return ptx_unsupported(d, "has an unexpected number of operands");
    if (a.space == PTX_PARAM)
        return store_param(d, &a);
    if (a.space == PTX_CONST)
        return ptx_unsupported(d, "stores to constant memory");
    r[0] = ptx_address(d, &st->ops[0], &offset);
    for (uint32_t k = 0; k < a.count; k++) {
        const struct ptx_operand *from = value_operand(d, &st->ops[1], a.count, k);

        r[1 + k] = from ? store_value(d, from, a.type) : PTX_NO_VREG;
        if (r[1 + k] == PTX_NO_VREG)
            return -1;
    }
    if (r[0] == PTX_NO_VREG)
        return -1;
    if (a.space == PTX_LOCAL)
        return own_accesses(d, &a, r + 1, r[0], offset, 1);
    op = move_op(d, &a, element_of(a.type), 's');
    if (op >= PTX_N_OPS)
        return ptx_unsupported(d, "has a width that is not supported");
    in = ptx_emit(d, op, r);
    if (in)
        mark_access(d, in, &a, element_of(a.type), offset);
    return in ? 0 : -1;
}

/* ---- Atomics --------------------------------------------------------------------------------- */

/* The atomic operation for a name and a type, or -1. */
static int atom_of(int name, uint32_t type)
{
    static const uint8_t ops[] = {PTX_ATOM_ADD, PTX_ATOM_MIN_U, PTX_ATOM_MAX_U, PTX_ATOM_AND,
                                  PTX_ATOM_OR,  PTX_ATOM_XOR,   PTX_ATOM_EXCH,  PTX_ATOM_CAS,
                                  PTX_ATOM_INC, PTX_ATOM_DEC};
    int is_float = ptx_type_is_float(type);

    if (name < 0 || ptx_type_bytes(type) < 2 || (is_float && name != 0))
        return -1;
    switch (is_float ? type : PTX_NONE) {
    case PTX_F32:
        return PTX_ATOM_ADD_F32;
    case PTX_F64:
        return PTX_ATOM_ADD_F64;
    case PTX_F16X2:
        return PTX_ATOM_ADD_F16X2;
    case PTX_BF16X2:
        return PTX_ATOM_ADD_BF16X2;
    case PTX_F16:
        return PTX_ATOM_ADD_F16;
    case PTX_BF16:
        return PTX_ATOM_ADD_BF16;
    default:
        break;
    }
    if (ptx_type_bytes(type) == 2 && ops[name] != PTX_ATOM_CAS && ops[name] != PTX_ATOM_EXCH)
        return -1;
    if ((name == 1 || name == 2) && ptx_type_is_signed(type))
        return name == 1 ? PTX_ATOM_MIN_S : PTX_ATOM_MAX_S;
    return ops[name];
}

/* One instruction an element: vectors are not atomic as a whole. */
static int emit_atoms(struct ptx_decoder *d, const struct access *a, int atom, int is_red)
{
    const struct ptx_operand *ops = d->stmt->ops;
    const struct ptx_operand sink = {.kind = PTX_O_SINK};
    const uint32_t bytes = ptx_type_bytes(a->type), width = bytes == 8 ? PTX_W64 : PTX_W32;
    const uint32_t tag = a->type == PTX_F64   ? PTX_TAG_f64
                         : a->type == PTX_F32 ? PTX_TAG_f32
                         : bytes == 8         ? PTX_TAG_u64
                                              : PTX_TAG_u32;
    const uint32_t op = bytes == 8 ? PTX_OP_atom_64 : bytes == 2 ? PTX_OP_atom_16 : PTX_OP_atom_32;
    int64_t offset;
    const uint32_t at = ptx_address(d, &ops[is_red ? 0 : 1], &offset);

    for (uint32_t k = 0; k < a->count; k++) {
        const struct ptx_operand *value = value_operand(d, &ops[is_red ? 1 : 2], a->count, k);
        const struct ptx_operand *result = is_red ? &sink : value_operand(d, &ops[0], a->count, k);
        const uint32_t c =
            atom == PTX_ATOM_CAS ? ptx_use(d, &ops[3], tag) : ptx_const_vreg(d, width, 0);

        if (!value || !result)
            return -1;
        struct ptx_insn *in =
            ptx_emit_n(d, op, ptx_def(d, result, tag), at, ptx_use(d, value, tag), c);

        if (!in)
            return -1;
        mark_access(d, in, a, atom, offset + (int64_t)k * bytes);
    }
    return 0;
}

int ptx_decode_atom(struct ptx_decoder *d, const struct ptx_words *words)
{
    static const char *const names[] = {"add",  "min", "max", "and", "or", "xor",
                                        "exch", "cas", "inc", "dec", NULL};
    const struct ptx_stmt *st = d->stmt;
    const int is_red = ptx_word_is(words, 0, "red");
    struct access a = {.count = 1};
    int name = -1, atom;

    for (uint32_t i = 1; i < words->n; i++) {
        int found = name < 0 ? ptx_word_in(words, i, names) : -1;

        if (found >= 0)
            name = found;
        else if (access_word(words, i, &a))
            return ptx_unsupported(d, "has a modifier that is not supported");
    }
    atom = atom_of(name, a.type);
    if (atom < 0 || (a.count > 1 && atom == PTX_ATOM_CAS))
        return ptx_unsupported(d, "has an operation or type that is not supported");
    if (st->n_ops != (is_red ? 2u : 3u) + (atom == PTX_ATOM_CAS))
        return ptx_unsupported(d, "has an unexpected number of operands");
    return emit_atoms(d, &a, atom, is_red);
}

/* ---- cp.async -------------------------------------------------------------------------------- */

/* imm: groups that may still be under way; all waits also for copies in no group. */
static int decode_wait(struct ptx_decoder *d, int all)
{
    const struct ptx_stmt *st = d->stmt;
    struct ptx_insn *in;

    if (!all && (st->n_ops != 1 || st->ops[0].kind != PTX_O_INT))
        return ptx_unsupported(d, "has operands that are not supported");
    in = ptx_emit_n(d, PTX_OP_cp_async_wait, 0, 0, 0, 0);
    if (!in)
        return -1;
    in->sub = (uint8_t)all;
    in->imm = all ? 0 : (int64_t)(st->ops[0].imm > UINT32_MAX ? UINT32_MAX : st->ops[0].imm);
    return 0;
}

int ptx_decode_cp(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    int64_t to_offset, from_offset;
    uint32_t to, from, size;

    if (!ptx_word_is(words, 1, "async") || ptx_has_word(words, "bulk") ||
        ptx_has_word(words, "mbarrier"))
        return ptx_unsupported(d, "is not supported by the interpreter");
    if (ptx_has_word(words, "commit_group"))
        return ptx_emit_n(d, PTX_OP_cp_async_commit, 0, 0, 0, 0) ? 0 : -1;
    if (ptx_has_word(words, "wait_group") || ptx_has_word(words, "wait_all"))
        return decode_wait(d, ptx_has_word(words, "wait_all"));
    const uint32_t n_ops = plain_operands(d, words);
    if (n_ops < 3 || n_ops > 4 || st->ops[2].kind != PTX_O_INT ||
        (st->ops[2].imm != 4 && st->ops[2].imm != 8 && st->ops[2].imm != 16))
        return ptx_unsupported(d, "has operands that are not supported");
    to = ptx_address(d, &st->ops[0], &to_offset);
    from = ptx_address(d, &st->ops[1], &from_offset);
    size = ptx_use(d, &st->ops[n_ops - 1], PTX_TAG_u32);
    struct ptx_insn *in = ptx_emit_n(d, PTX_OP_cp_async, to, from, size, 0);
    if (!in || to_offset != (int32_t)to_offset)
        return ptx_unsupported(d, "has an offset that is not supported");
    in->imm = from_offset;
    in->second = (int32_t)to_offset;
    in->sub = (uint8_t)st->ops[2].imm;
    in->space = PTX_GLOBAL;
    in->hint = d->n_hints++;
    return 0;
}
