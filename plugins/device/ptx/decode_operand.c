/*
 * decode_operand.c - registers, constants, special registers, and operands of instructions; how
 * instructions and labels are appended.
 */
#include "decode_int.h"

#include <stdio.h>
#include <string.h>

/* ---- Registers ------------------------------------------------------------------------------- */

uint32_t ptx_new_vreg(struct ptx_decoder *d, uint32_t width)
{
    struct ptx_vreg *v =
        ptx_arena_grow(&d->scratch, (void **)&d->vregs, d->n_vregs, &d->cap_vregs, sizeof *v);

    if (!v) {
        ptx_no_memory(d);
        return PTX_NO_VREG;
    }
    *v = (struct ptx_vreg){.width = (uint8_t)width};
    return d->n_vregs++;
}

static uint32_t fill_hash(const struct ptx_fill *f)
{
    uint64_t h = f->value * 0x9e3779b97f4a7c15u + f->kind * 31u + f->width * 7u +
                 f->special * 131u + f->bytes + f->is_signed * 3u;

    return (uint32_t)(h ^ (h >> 29));
}

static int same_fill(const struct ptx_fill *a, const struct ptx_fill *b)
{
    return a->kind == b->kind && a->width == b->width && a->special == b->special &&
           a->value == b->value && a->bytes == b->bytes && a->is_signed == b->is_signed;
}

/* Twice the slots; old ones are entered again. */
static int widen_fill_hash(struct ptx_decoder *d)
{
    uint32_t n = d->n_fill_slots ? d->n_fill_slots * 2 : 256;
    uint32_t *slots = ptx_arena_array(&d->scratch, n, sizeof *slots);

    if (!slots)
        return ptx_no_memory(d);
    for (uint32_t i = 0; i < d->n_fill_slots; i++) {
        if (!d->fill_slots[i])
            continue;
        uint32_t at = fill_hash(&d->fills[d->vregs[d->fill_slots[i] - 1].fill]) & (n - 1);
        while (slots[at])
            at = (at + 1) & (n - 1);
        slots[at] = d->fill_slots[i];
    }
    d->fill_slots = slots;
    d->n_fill_slots = n;
    return 0;
}

uint32_t ptx_fill_vreg(struct ptx_decoder *d, const struct ptx_fill *fill)
{
    struct ptx_fill *f;
    uint32_t at, v;

    if (d->n_fills * 2 >= d->n_fill_slots && widen_fill_hash(d))
        return PTX_NO_VREG;
    at = fill_hash(fill) & (d->n_fill_slots - 1);
    for (; d->fill_slots[at]; at = (at + 1) & (d->n_fill_slots - 1))
        if (same_fill(&d->fills[d->vregs[d->fill_slots[at] - 1].fill], fill))
            return d->fill_slots[at] - 1;
    v = ptx_new_vreg(d, fill->width);
    f = ptx_arena_grow(d->out, (void **)&d->fills, d->n_fills, &d->cap_fills, sizeof *f);
    if (v == PTX_NO_VREG || !f) {
        ptx_no_memory(d);
        return PTX_NO_VREG;
    }
    *f = *fill;
    d->vregs[v].is_fixed = 1;
    d->vregs[v].fill = d->n_fills++;
    d->fill_slots[at] = v + 1;
    return v;
}

uint32_t ptx_const_vreg(struct ptx_decoder *d, uint32_t width, uint64_t value)
{
    struct ptx_fill fill = {.kind = PTX_FILL_CONST, .width = width};

    fill.value = width == PTX_W64 ? value : width == PTX_WP ? value != 0 : (uint32_t)value;
    return ptx_fill_vreg(d, &fill);
}

/* ---- Instructions and labels ----------------------------------------------------------------- */

struct ptx_insn *ptx_emit(struct ptx_decoder *d, uint32_t op, const uint32_t *vregs)
{
    const struct ptx_opinfo *info = &ptx_ops[op];
    uint32_t n = (uint32_t)info->defs.n + info->uses.n;
    struct ptx_insn *in;

    for (uint32_t i = 0; i < n; i++)
        if (vregs[i] == PTX_NO_VREG)
            return NULL;
    in = d->n_code < PTX_MAX_CODE
             ? ptx_arena_grow(&d->scratch, (void **)&d->code, d->n_code, &d->cap_code, sizeof *in)
             : NULL;
    if (!in) {
        ptx_no_memory(d);
        return NULL;
    }
    memset(in, 0, sizeof *in);
    in->op = (uint16_t)op;
    for (uint32_t i = 0; i < n; i++)
        in->r[i] = vregs[i];
    if (d->stmt) {
        in->line = d->stmt->line;
        in->ptx_line = d->stmt->ptx_line;
    }
    if (!d->weighted) {
        in->flags |= PTX_F_WEIGHT;
        d->weighted = 1;
    }
    d->n_code++;
    return in;
}

struct ptx_insn *ptx_emit_n(struct ptx_decoder *d, uint32_t op, uint32_t a, uint32_t b, uint32_t c,
                            uint32_t e)
{
    const uint32_t vregs[PTX_MAX_OPERANDS] = {a, b, c, e};

    return ptx_emit(d, op, vregs);
}

uint32_t ptx_new_label(struct ptx_decoder *d)
{
    uint32_t *at =
        ptx_arena_grow(&d->scratch, (void **)&d->labels, d->n_labels, &d->cap_labels, sizeof *at);

    if (!at) {
        ptx_no_memory(d);
        return UINT32_MAX;
    }
    *at = UINT32_MAX;
    return d->n_labels++;
}

void ptx_place_label(struct ptx_decoder *d, uint32_t label)
{
    if (label < d->n_labels)
        d->labels[label] = d->n_code;
}

/* ---- Operands -------------------------------------------------------------------------------- */

static const struct {
    char name[26];
    uint32_t special;
    uint32_t per_block;
} specials[] = {
    {"%tid.x", PTX_SR_TID_X, 0},
    {"%tid.y", PTX_SR_TID_Y, 0},
    {"%tid.z", PTX_SR_TID_Z, 0},
    {"%ntid.x", PTX_SR_NTID_X, 0},
    {"%ntid.y", PTX_SR_NTID_Y, 0},
    {"%ntid.z", PTX_SR_NTID_Z, 0},
    {"%ctaid.x", PTX_SR_CTAID_X, 1},
    {"%ctaid.y", PTX_SR_CTAID_Y, 1},
    {"%ctaid.z", PTX_SR_CTAID_Z, 1},
    {"%nctaid.x", PTX_SR_NCTAID_X, 0},
    {"%nctaid.y", PTX_SR_NCTAID_Y, 0},
    {"%nctaid.z", PTX_SR_NCTAID_Z, 0},
    {"%laneid", PTX_SR_LANEID, 0},
    {"%warpid", PTX_SR_WARPID, 0},
    {"%nwarpid", PTX_SR_NWARPID, 0},
    {"%smid", PTX_SR_SMID, 1},
    {"%nsmid", PTX_SR_NSMID, 0},
    {"%gridid", PTX_SR_GRIDID, 0},
    {"%lanemask_eq", PTX_SR_MASK_EQ, 0},
    {"%lanemask_le", PTX_SR_MASK_LE, 0},
    {"%lanemask_lt", PTX_SR_MASK_LT, 0},
    {"%lanemask_ge", PTX_SR_MASK_GE, 0},
    {"%lanemask_gt", PTX_SR_MASK_GT, 0},
    {"%dynamic_smem_size", PTX_SR_DYNAMIC_SHARED, 0},
    {"%total_smem_size", PTX_SR_TOTAL_SHARED, 0},
    {"%clusterid.x", PTX_SR_CLUSTERID_X, 1},
    {"%clusterid.y", PTX_SR_CLUSTERID_Y, 1},
    {"%clusterid.z", PTX_SR_CLUSTERID_Z, 1},
    {"%nclusterid.x", PTX_SR_NCLUSTERID_X, 0},
    {"%nclusterid.y", PTX_SR_NCLUSTERID_Y, 0},
    {"%nclusterid.z", PTX_SR_NCLUSTERID_Z, 0},
    {"%cluster_ctaid.x", PTX_SR_CLUSTER_CTAID_X, 1},
    {"%cluster_ctaid.y", PTX_SR_CLUSTER_CTAID_Y, 1},
    {"%cluster_ctaid.z", PTX_SR_CLUSTER_CTAID_Z, 1},
    {"%cluster_nctaid.x", PTX_SR_CLUSTER_NCTAID_X, 0},
    {"%cluster_nctaid.y", PTX_SR_CLUSTER_NCTAID_Y, 0},
    {"%cluster_nctaid.z", PTX_SR_CLUSTER_NCTAID_Z, 0},
    {"%cluster_ctarank", PTX_SR_CLUSTER_CTARANK, 1},
    {"%cluster_nctarank", PTX_SR_CLUSTER_NCTARANK, 0},
    {"%envreg1", PTX_SR_ENVREG1, 0},
    {"%envreg2", PTX_SR_ENVREG2, 0},
    {"%clock", PTX_SR_CLOCK, 0},
    {"%clock_hi", PTX_SR_CLOCK_HI, 0},
    {"%clock64", PTX_SR_CLOCK64, 0},
    {"%globaltimer", PTX_SR_TIMER, 0},
    {"%globaltimer_lo", PTX_SR_TIMER_LO, 0},
};

/* Clocks are read when the instruction runs. */
static uint32_t read_clock(struct ptx_decoder *d, uint32_t special, uint32_t width)
{
    uint32_t v = ptx_new_vreg(d, width);
    uint32_t weighted = d->weighted;
    struct ptx_insn *in;

    d->weighted = 1; /* the mov that reads it counts */
    in = ptx_emit_n(d, width == PTX_W64 ? PTX_OP_clock_64 : PTX_OP_clock_32, v, 0, 0, 0);
    d->weighted = weighted;
    if (in)
        in->sub = special == PTX_SR_CLOCK_HI;
    return in ? v : PTX_NO_VREG;
}

static uint32_t use_special(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t width)
{
    const struct ptx_name *name = &d->text->names.names[op->name];

    if (name->len == 7 && !memcmp(name->ptr, "WARP_SZ", 7))
        return ptx_const_vreg(d, width, PTX_LANES);
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        struct ptx_fill fill = {.kind = specials[i].per_block ? PTX_FILL_BLOCK : PTX_FILL_SPECIAL,
                                .width = width,
                                .special = specials[i].special};

        if (strlen(specials[i].name) != name->len || memcmp(specials[i].name, name->ptr, name->len))
            continue;
        if (fill.special >= PTX_SR_CLOCK)
            return read_clock(d, fill.special, width);
        return ptx_fill_vreg(d, &fill);
    }
    char why[120];
    snprintf(why, sizeof why, "names '%.*s', an unknown register or symbol",
             (int)(name->len < 60 ? name->len : 60), name->ptr);
    ptx_unsupported(d, why);
    return PTX_NO_VREG;
}

uint32_t ptx_operand_width(const struct ptx_operand *op)
{
    if (op->kind != PTX_O_SYM || op->sym->kind != PTX_SYM_REG)
        return PTX_W_NONE;
    return op->sym->type == PTX_PRED             ? PTX_WP
           : ptx_type_bytes(op->sym->type) == 8  ? PTX_W64
           : ptx_type_bytes(op->sym->type) == 16 ? PTX_W_NONE
                                                 : PTX_W32;
}

/* The vreg of a register symbol in the current instance. */
static uint32_t reg_vreg(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t width)
{
    uint32_t *slot;

    if (ptx_operand_width(op) != width || op->sym->index >= d->in->func->n_regs) {
        ptx_unsupported(d, "has an operand of another width than its type");
        return PTX_NO_VREG;
    }
    slot = &d->in->regs[op->sym->index];
    if (*slot == PTX_NO_VREG)
        *slot = ptx_new_vreg(d, width);
    return *slot;
}

uint32_t ptx_def(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t tag)
{
    uint32_t width = ptx_tag_width(tag);

    if (op->kind == PTX_O_SINK)
        return ptx_new_vreg(d, width);
    if (op->kind != PTX_O_SYM || op->sym->kind != PTX_SYM_REG || op->imm || op->negated) {
        ptx_unsupported(d, "has a destination that is no register");
        return PTX_NO_VREG;
    }
    return reg_vreg(d, op, width);
}

/* Address of a variable, as mov and ld see it. */
static uint32_t use_symbol(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t width)
{
    const struct ptx_sym *s = op->sym;
    uint64_t at = s->space == PTX_GLOBAL || s->space == PTX_CONST ? s->address : s->offset;

    if (s->kind == PTX_SYM_FUNC || (s->kind == PTX_SYM_PARAM && (!s->is_formal || d->in->caller)) ||
        width == PTX_WP) {
        ptx_unsupported(d, "takes the address of something that has none here");
        return PTX_NO_VREG;
    }
    if (s->space == PTX_LOCAL)
        at += d->in->local_base;
    return ptx_const_vreg(d, width, at + op->imm);
}

static uint32_t use_number(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t tag)
{
    uint64_t bits = op->imm;
    float narrow;
    double wide;

    if (op->kind == PTX_O_F64 && ptx_tag_width(tag) == PTX_W32) {
        memcpy(&wide, &bits, sizeof wide);
        narrow = (float)wide;
        bits = 0;
        memcpy(&bits, &narrow, sizeof narrow);
    } else if (op->kind == PTX_O_F32 && tag == PTX_TAG_f64) {
        uint32_t low = (uint32_t)bits;

        memcpy(&narrow, &low, sizeof narrow);
        wide = (double)narrow;
        memcpy(&bits, &wide, sizeof wide);
    }
    return ptx_const_vreg(d, ptx_tag_width(tag), bits);
}

uint32_t ptx_use(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t tag)
{
    uint32_t width = ptx_tag_width(tag), v;

    switch (op->kind) {
    case PTX_O_INT:
    case PTX_O_F32:
    case PTX_O_F64:
        return use_number(d, op, tag);
    case PTX_O_NAME:
        return use_special(d, op, width);
    case PTX_O_SYM:
        break;
    default:
        ptx_unsupported(d, "has an operand of an unexpected form");
        return PTX_NO_VREG;
    }
    if (op->sym->kind != PTX_SYM_REG)
        return use_symbol(d, op, width);
    if (op->imm || (op->negated && width != PTX_WP)) {
        ptx_unsupported(d, "has an operand of an unexpected form");
        return PTX_NO_VREG;
    }
    v = reg_vreg(d, op, width);
    if (op->negated && v != PTX_NO_VREG) {
        uint32_t n = ptx_new_vreg(d, PTX_WP), weighted = d->weighted;

        d->weighted = 1;
        v = ptx_emit_n(d, PTX_OP_not_p, n, v, 0, 0) ? n : PTX_NO_VREG;
        d->weighted = weighted;
    }
    return v;
}
