/*
 * parse_decl.c - declarations: registers, variables with initialisers, parameters.
 */
#include "parse_int.h"

#include <string.h>

struct decl {
    uint32_t space, type, align, lanes;
};

static const struct {
    char word[12];
    uint32_t space;
} spaces[] = {
    {".global", PTX_GLOBAL}, {".shared", PTX_SHARED}, {".local", PTX_LOCAL},
    {".const", PTX_CONST},   {".param", PTX_PARAM},
};

static int decl_word(struct ptx_parser *ps, struct decl *d, int *in_ptr)
{
    struct ptx_lexer *lx = &ps->lx;
    uint32_t type = ptx_type_of(lx->token.ptr, lx->token.len);

    if (type) {
        d->type = type;
        return 0;
    }
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        if (ptx_lex_is(lx, spaces[i].word)) {
            if (!*in_ptr)
                d->space = spaces[i].space;
            return 0;
        }
    }
    if (ptx_lex_is(lx, ".ptr"))
        *in_ptr = 1; /* what follows describes the pointer's target */
    else if (ptx_lex_is(lx, ".v2") || ptx_lex_is(lx, ".v4"))
        d->lanes = lx->token.ptr[2] == '2' ? 2 : 4;
    else if (!ptx_lex_is(lx, ".reg"))
        return ptx_fail(ps, "unknown word in a declaration");
    return 0;
}

/* The words in front of the name: state space, alignment, vector, type, .ptr attributes. */
static int decl_prefix(struct ptx_parser *ps, struct decl *d)
{
    struct ptx_lexer *lx = &ps->lx;
    int in_ptr = 0;

    d->lanes = 1;
    while (lx->token.kind == PTX_T_WORD && *lx->token.ptr == '.') {
        if (ptx_lex_is(lx, ".align")) {
            ptx_lex_next(lx);
            if (lx->token.kind != PTX_T_INT || !lx->token.value || lx->token.value > 4096 ||
                (lx->token.value & (lx->token.value - 1)))
                return ptx_fail(ps, "bad alignment");
            if (!in_ptr)
                d->align = (uint32_t)lx->token.value;
        } else if (decl_word(ps, d, &in_ptr)) {
            return -1;
        }
        ptx_lex_next(lx);
    }
    return d->type ? 0 : ptx_fail(ps, "a declaration without a type");
}

int ptx_parse_reg(struct ptx_parser *ps)
{
    struct decl d = {0};

    if (decl_prefix(ps, &d))
        return -1;
    if (d.lanes != 1)
        return ptx_fail(ps, "vector registers are not supported");
    for (;;) {
        uint32_t name = ptx_take_word(ps);
        int is_range = ptx_lex_at(&ps->lx, '<');
        struct ptx_sym *sym =
            ps->failed ? NULL : ptx_declare(ps, name, is_range ? PTX_SYM_RANGE : PTX_SYM_REG);

        if (!sym)
            return -1;
        sym->type = d.type;
        if (is_range) {
            ptx_lex_next(&ps->lx);
            if (ps->lx.token.kind != PTX_T_INT || ps->lx.token.value > PTX_MAX_REGS)
                return ptx_fail(ps, "bad register count");
            sym->range = (uint32_t)ps->lx.token.value;
            ptx_lex_next(&ps->lx);
            if (ptx_expect(ps, '>'))
                return -1;
        } else {
            sym->index = ps->func->n_regs++;
        }
        if (!ptx_lex_at(&ps->lx, ','))
            return ptx_expect(ps, ';');
        ptx_lex_next(&ps->lx);
    }
}

/* Name and [dimensions]; a first empty dimension gives *open. */
static struct ptx_sym *declarator(struct ptx_parser *ps, const struct decl *d, uint32_t kind,
                                  int *open)
{
    uint32_t name = ptx_take_word(ps);
    struct ptx_sym *sym = ps->failed ? NULL : ptx_declare(ps, name, kind);
    uint64_t size = (uint64_t)ptx_type_bytes(d->type) * d->lanes;

    if (!sym)
        return NULL;
    sym->type = d->type;
    sym->space = d->space;
    sym->align = d->align ? d->align : (uint32_t)size;
    while (ptx_lex_at(&ps->lx, '[')) {
        ptx_lex_next(&ps->lx);
        if (ptx_lex_at(&ps->lx, ']')) {
            *open = 1;
        } else {
            if (ps->lx.token.kind != PTX_T_INT || ps->lx.token.value > PTX_MAX_VAR_BYTES) {
                ptx_fail(ps, "bad array size");
                return NULL;
            }
            size *= ps->lx.token.value;
            ptx_lex_next(&ps->lx);
        }
        if (size > PTX_MAX_VAR_BYTES || ptx_expect(ps, ']')) {
            ptx_fail(ps, "a variable is too large");
            return NULL;
        }
    }
    sym->size = *open ? 0 : size;
    return sym;
}

/* ---- Initialisers ---------------------------------------------------------------------------- */

struct init {
    struct ptx_sym *sym;
    uint8_t *bytes;
    uint64_t at, cap;
    uint32_t element;
};

static int init_room(struct ptx_parser *ps, struct init *in)
{
    if (in->at + in->element > PTX_MAX_VAR_BYTES)
        return ptx_fail(ps, "an initialiser is too long");
    if (in->at + in->element > in->cap) {
        uint64_t wider = in->cap ? in->cap * 2 : (in->sym->size ? in->sym->size : 64);
        uint8_t *moved;

        if (wider < in->at + in->element)
            wider = in->at + in->element;
        moved = ptx_arena_alloc(&ps->out->arena, wider);
        if (!moved)
            return ptx_fail(ps, "out of memory");
        if (in->at)
            memcpy(moved, in->bytes, in->at);
        in->bytes = moved;
        in->cap = wider;
    }
    return 0;
}

static int init_put(struct ptx_parser *ps, struct init *in, uint64_t bits)
{
    if (init_room(ps, in))
        return -1;
    memcpy(in->bytes + in->at, &bits, in->element < 8 ? in->element : 8);
    in->at += in->element;
    return 0;
}

/* name, generic(name), each with an optional "+ number". */
static int init_symbol(struct ptx_parser *ps, struct init *in)
{
    struct ptx_fixup *fix = ptx_arena_alloc(&ps->out->arena, sizeof *fix);
    int wrapped = ptx_lex_is(&ps->lx, "generic");

    if (!fix)
        return ptx_fail(ps, "out of memory");
    if (wrapped) {
        ptx_lex_next(&ps->lx);
        if (ptx_expect(ps, '('))
            return -1;
    }
    uint32_t name = ptx_take_word(ps);
    fix->target = ps->failed ? NULL : ptx_lookup(ps, name);
    if (!fix->target || fix->target->kind != PTX_SYM_VAR || in->element != 8 ||
        fix->target->space == PTX_SHARED)
        return ptx_fail(ps, "an initialiser names something that has no address yet");
    if (wrapped && ptx_expect(ps, ')'))
        return -1;
    if (ptx_lex_at(&ps->lx, '+')) {
        ptx_lex_next(&ps->lx);
        fix->add = (int64_t)ps->lx.token.value;
        ptx_lex_next(&ps->lx);
    }
    fix->at = in->at;
    fix->next = in->sym->fixups;
    in->sym->fixups = fix;
    return init_put(ps, in, 0);
}

static int init_value(struct ptx_parser *ps, struct init *in)
{
    struct ptx_lexer *lx = &ps->lx;
    uint64_t sign = 0, bits;

    if (lx->token.kind == PTX_T_WORD)
        return init_symbol(ps, in);
    if (ptx_lex_at(lx, '-')) {
        sign = 1;
        ptx_lex_next(lx);
    }
    bits = lx->token.value;
    if (lx->token.kind == PTX_T_F64 && in->element == 4) {
        double wide;
        float narrow;

        memcpy(&wide, &bits, 8);
        narrow = (float)(sign ? -wide : wide);
        bits = 0;
        memcpy(&bits, &narrow, 4);
    } else if (lx->token.kind == PTX_T_F64) {
        bits ^= sign << 63;
    } else if (lx->token.kind == PTX_T_INT) {
        bits = sign ? 0 - bits : bits;
    } else if (lx->token.kind != PTX_T_F32 || sign) {
        return ptx_fail(ps, "bad initialiser");
    }
    ptx_lex_next(lx);
    return init_put(ps, in, bits);
}

static int parse_init(struct ptx_parser *ps, struct ptx_sym *sym, int open)
{
    struct init in = {.sym = sym, .element = ptx_type_bytes(sym->type)};
    uint32_t depth = 0;

    do {
        if (ptx_lex_at(&ps->lx, '{')) {
            depth++;
            ptx_lex_next(&ps->lx);
        } else if (ptx_lex_at(&ps->lx, '}') && depth) {
            depth--;
            ptx_lex_next(&ps->lx);
        } else if (ptx_lex_at(&ps->lx, ',') && depth) {
            ptx_lex_next(&ps->lx);
        } else if (init_value(ps, &in)) {
            return -1;
        }
    } while (depth);
    if (open)
        sym->size = in.at;
    if (in.at > sym->size)
        return ptx_fail(ps, "an initialiser is longer than its variable");
    sym->init = ptx_arena_alloc(&ps->out->arena, sym->size ? sym->size : 1);
    if (!sym->init)
        return ptx_fail(ps, "out of memory");
    if (in.at)
        memcpy(sym->init, in.bytes, in.at);
    return 0;
}

/* ---- Variables and parameters ---------------------------------------------------------------- */

static void place_local(struct ptx_func *func, struct ptx_sym *sym)
{
    uint64_t align = sym->align ? sym->align : 1;

    sym->offset = (func->local_bytes + align - 1) / align * align;
    func->local_bytes = sym->offset + sym->size;
}

int ptx_parse_var(struct ptx_parser *ps, int is_extern)
{
    struct decl d = {0};

    if (decl_prefix(ps, &d))
        return -1;
    for (;;) {
        int open = 0;
        struct ptx_sym *sym =
            declarator(ps, &d, d.space == PTX_PARAM ? PTX_SYM_PARAM : PTX_SYM_VAR, &open);
        struct ptx_sym **list = ps->func ? &ps->func->vars : &ps->out->vars;

        if (!sym)
            return -1;
        sym->is_extern = d.space == PTX_SHARED && (is_extern || open);
        if (ptx_lex_at(&ps->lx, '=')) {
            ptx_lex_next(&ps->lx);
            if (parse_init(ps, sym, open))
                return -1;
        }
        if (d.space == PTX_PARAM) {
            sym->index = ps->func ? ps->func->n_params++ : 0;
        } else {
            sym->next = *list;
            *list = sym;
        }
        if (d.space == PTX_LOCAL && ps->func)
            place_local(ps->func, sym);
        if (!ptx_lex_at(&ps->lx, ','))
            return ptx_expect(ps, ';');
        ptx_lex_next(&ps->lx);
    }
}

struct ptx_sym *ptx_parse_param(struct ptx_parser *ps)
{
    struct decl d = {0};
    int open = 0;
    struct ptx_sym *sym;

    if (decl_prefix(ps, &d))
        return NULL;
    sym = declarator(ps, &d, PTX_SYM_PARAM, &open);
    if (sym) {
        sym->index = ps->func->n_params++;
        sym->is_formal = 1;
        sym->space = PTX_PARAM;
    }
    return sym;
}
