/*
 * parse_body.c - statements of a function: labels, instructions with their operands, .loc lines.
 */
#include "parse_int.h"

#include <string.h>

static int parse_operand(struct ptx_parser *ps, struct ptx_operand *out, uint32_t nesting);

static int parse_list(struct ptx_parser *ps, struct ptx_operand *out, char close, uint32_t nesting)
{
    uint32_t cap = 0;

    ptx_lex_next(&ps->lx);
    out->kind = PTX_O_LIST;
    while (!ptx_lex_at(&ps->lx, close)) {
        struct ptx_operand *item;

        if (out->n >= PTX_MAX_ITEMS || nesting > 2)
            return -1;
        item = ptx_arena_grow(&ps->out->arena, (void **)&out->items, out->n, &cap, sizeof *item);
        if (!item || parse_operand(ps, item, nesting + 1))
            return -1;
        out->n++;
        if (ptx_lex_at(&ps->lx, ','))
            ptx_lex_next(&ps->lx);
        else if (!ptx_lex_at(&ps->lx, close))
            return -1;
    }
    ptx_lex_next(&ps->lx);
    return 0;
}

/* "+ 4", "+ -4" or "- 4" behind a base. */
static int parse_offset(struct ptx_parser *ps, uint64_t *imm)
{
    uint64_t negative = 0;

    if (!ptx_lex_at(&ps->lx, '+') && !ptx_lex_at(&ps->lx, '-'))
        return 0;
    while (ptx_lex_at(&ps->lx, '+') || ptx_lex_at(&ps->lx, '-')) {
        negative ^= (uint64_t)ptx_lex_at(&ps->lx, '-');
        ptx_lex_next(&ps->lx);
    }
    if (ps->lx.token.kind != PTX_T_INT)
        return -1;
    *imm = negative ? 0 - ps->lx.token.value : ps->lx.token.value;
    ptx_lex_next(&ps->lx);
    return 0;
}

static int parse_word(struct ptx_parser *ps, struct ptx_operand *out)
{
    uint32_t name = ptx_name_of(&ps->out->names, ps->lx.token.ptr, ps->lx.token.len);

    if (name == UINT32_MAX)
        return -1;
    if (ps->lx.token.len == 1 && *ps->lx.token.ptr == '_') {
        out->kind = PTX_O_SINK;
        ptx_lex_next(&ps->lx);
        return 0;
    }
    ptx_lex_next(&ps->lx);
    out->sym = ptx_lookup(ps, name);
    out->kind = out->sym ? PTX_O_SYM : PTX_O_NAME;
    out->name = name;
    return out->sym ? parse_offset(ps, &out->imm) : 0;
}

static int parse_address(struct ptx_parser *ps, struct ptx_operand *out)
{
    ptx_lex_next(&ps->lx);
    if (ps->lx.token.kind == PTX_T_WORD) {
        if (parse_word(ps, out) || out->kind != PTX_O_SYM)
            return -1;
    } else if (ps->lx.token.kind == PTX_T_INT) {
        out->imm = ps->lx.token.value;
        ptx_lex_next(&ps->lx);
    } else {
        return -1;
    }
    out->kind = PTX_O_ADDRESS;
    if (!ptx_lex_at(&ps->lx, ']'))
        return -1;
    ptx_lex_next(&ps->lx);
    return 0;
}

static int parse_number(struct ptx_parser *ps, struct ptx_operand *out)
{
    uint64_t negative = (uint64_t)ptx_lex_at(&ps->lx, '-');

    if (negative)
        ptx_lex_next(&ps->lx);
    out->imm = ps->lx.token.value;
    if (ps->lx.token.kind == PTX_T_INT) {
        out->kind = PTX_O_INT;
        out->imm = negative ? 0 - out->imm : out->imm;
    } else if (ps->lx.token.kind == PTX_T_F32) {
        out->kind = PTX_O_F32;
        out->imm ^= negative << 31;
    } else if (ps->lx.token.kind == PTX_T_F64) {
        out->kind = PTX_O_F64;
        out->imm ^= negative << 63;
    } else {
        return -1;
    }
    ptx_lex_next(&ps->lx);
    return 0;
}

/* a|b, of setp and shfl. */
static int parse_pair(struct ptx_parser *ps, struct ptx_operand *out)
{
    struct ptx_operand *items = ptx_arena_array(&ps->out->arena, 2, sizeof *items);

    if (!items)
        return -1;
    items[0] = *out;
    ptx_lex_next(&ps->lx);
    if (ps->lx.token.kind != PTX_T_WORD || parse_word(ps, &items[1]))
        return -1;
    *out = (struct ptx_operand){.kind = PTX_O_PAIR, .n = 2, .items = items};
    return 0;
}

static int parse_operand(struct ptx_parser *ps, struct ptx_operand *out, uint32_t nesting)
{
    struct ptx_lexer *lx = &ps->lx;

    if (ptx_lex_at(lx, '{') || ptx_lex_at(lx, '('))
        return parse_list(ps, out, ptx_lex_at(lx, '{') ? '}' : ')', nesting);
    if (ptx_lex_at(lx, '['))
        return parse_address(ps, out);
    if (ptx_lex_at(lx, '!')) {
        ptx_lex_next(lx);
        out->negated = 1;
    }
    if (lx->token.kind != PTX_T_WORD)
        return out->negated ? -1 : parse_number(ps, out);
    if (parse_word(ps, out))
        return -1;
    return ptx_lex_at(lx, '|') && !out->negated ? parse_pair(ps, out) : 0;
}

static int parse_operands(struct ptx_parser *ps, struct ptx_stmt *st)
{
    uint32_t cap = 0;

    while (!ptx_lex_at(&ps->lx, ';')) {
        struct ptx_operand *op;

        if (st->n_ops >= PTX_MAX_ITEMS)
            return -1;
        op = ptx_arena_grow(&ps->out->arena, (void **)&st->ops, st->n_ops, &cap, sizeof *op);
        if (!op || parse_operand(ps, op, 0))
            return -1;
        st->n_ops++;
        if (ptx_lex_at(&ps->lx, ','))
            ptx_lex_next(&ps->lx);
        else if (!ptx_lex_at(&ps->lx, ';'))
            return -1;
    }
    ptx_lex_next(&ps->lx);
    return 0;
}

static struct ptx_stmt *new_stmt(struct ptx_parser *ps, uint32_t kind)
{
    struct ptx_func *f = ps->func;
    struct ptx_stmt *st;

    if (f->n_stmts >= PTX_MAX_STMTS) {
        ptx_fail(ps, "the function is too long");
        return NULL;
    }
    st = ptx_arena_grow(&ps->out->arena, (void **)&f->stmts, f->n_stmts, &f->cap_stmts, sizeof *st);
    if (!st) {
        ptx_fail(ps, "out of memory");
        return NULL;
    }
    *st = (struct ptx_stmt){
        .kind = kind, .scope = ps->scope, .line = ps->line, .ptx_line = ps->lx.token.line};
    f->n_stmts++;
    return st;
}

/* An instruction whose operands are not understood stays, so that only its kernel is unsupported.
 */
static int parse_insn(struct ptx_parser *ps)
{
    struct ptx_stmt *st = new_stmt(ps, PTX_S_INSN);

    if (!st)
        return -1;
    if (ptx_lex_at(&ps->lx, '@')) {
        ptx_lex_next(&ps->lx);
        st->guard_negated = (uint32_t)ptx_lex_at(&ps->lx, '!');
        if (st->guard_negated)
            ptx_lex_next(&ps->lx);
        uint32_t guard = ptx_take_word(ps);
        st->guard = ps->failed ? NULL : ptx_lookup(ps, guard);
        if (!st->guard || st->guard->type != PTX_PRED)
            return ptx_fail(ps, "the guard is no predicate");
    }
    st->name = ptx_take_word(ps);
    if (ps->failed)
        return -1;
    struct ptx_lexer before = ps->lx;
    if (parse_operands(ps, st)) {
        st->kind = PTX_S_BAD;
        ps->lx = before;
        ptx_skip_statement(ps);
    }
    return 0;
}

/* The word is consumed; the current token is its ':'. */
static int parse_label(struct ptx_parser *ps, uint32_t name)
{
    struct ptx_func *f = ps->func;
    struct ptx_stmt *st = new_stmt(ps, PTX_S_LABEL);
    struct ptx_label *label = ptx_arena_grow(&ps->out->arena, (void **)&f->labels, f->n_labels,
                                             &f->cap_labels, sizeof *label);

    if (!st || !label)
        return ptx_fail(ps, "out of memory");
    *label = (struct ptx_label){.name = name, .scope = ps->scope};
    st->name = name;
    st->label = f->n_labels++;
    ptx_lex_next(&ps->lx);
    return 0;
}

static uint64_t take_int(struct ptx_parser *ps)
{
    uint64_t value = ps->lx.token.kind == PTX_T_INT ? ps->lx.token.value : 0;

    if (ps->lx.token.kind == PTX_T_INT)
        ptx_lex_next(&ps->lx);
    return value;
}

/*
 * .loc FILE LINE COLUMN [, function_name LABEL [+ N], inlined_at FILE LINE COLUMN]. The kernel's
 * own file is the one of its first .loc; for inlined code of another file the place of the call
 * counts.
 */
static void parse_loc(struct ptx_parser *ps)
{
    uint64_t file, line;

    ptx_lex_next(&ps->lx);
    file = take_int(ps);
    line = take_int(ps);
    take_int(ps);
    if (!ps->main_file)
        ps->main_file = (uint32_t)file;
    while (ptx_lex_at(&ps->lx, ',')) {
        ptx_lex_next(&ps->lx);
        if (ptx_lex_is(&ps->lx, "inlined_at")) {
            ptx_lex_next(&ps->lx);
            uint64_t outer_file = take_int(ps), outer_line = take_int(ps);
            if (file != ps->main_file) {
                file = outer_file;
                line = outer_line;
            }
            take_int(ps);
        } else {
            ptx_lex_next(&ps->lx); /* function_name */
            ptx_lex_next(&ps->lx); /* its label */
            if (ptx_lex_at(&ps->lx, '+')) {
                ptx_lex_next(&ps->lx);
                take_int(ps);
            }
        }
    }
    if (file == ps->main_file && line && line <= UINT32_MAX)
        ps->line = (uint32_t)line;
}

static int parse_body_directive(struct ptx_parser *ps)
{
    struct ptx_lexer *lx = &ps->lx;

    if (ptx_lex_is(lx, ".reg"))
        return ptx_parse_reg(ps);
    if (ptx_lex_is(lx, ".loc")) {
        parse_loc(ps);
        return 0;
    }
    if (ptx_lex_is(lx, ".param") || ptx_lex_is(lx, ".local") || ptx_lex_is(lx, ".shared") ||
        ptx_lex_is(lx, ".global") || ptx_lex_is(lx, ".const"))
        return ptx_parse_var(ps, 0);
    ptx_skip_statement(
        ps); /* .pragma, .branchtargets, .callprototype: instructions that need them fail later */
    return 0;
}

static int parse_statement(struct ptx_parser *ps)
{
    struct ptx_lexer *lx = &ps->lx;

    if (ptx_lex_at(lx, '{')) {
        ptx_lex_next(lx);
        return ptx_open_scope(ps);
    }
    if (ptx_lex_at(lx, ';')) {
        ptx_lex_next(lx);
        return 0;
    }
    if (ptx_lex_at(lx, '@'))
        return parse_insn(ps);
    if (lx->token.kind != PTX_T_WORD)
        return ptx_fail(ps, "expected an instruction");
    if (*lx->token.ptr == '.')
        return parse_body_directive(ps);
    struct ptx_lexer before = *lx;
    uint32_t name = ptx_take_word(ps);
    if (name != UINT32_MAX && ptx_lex_at(lx, ':'))
        return parse_label(ps, name);
    *lx = before;
    return parse_insn(ps);
}

/* Chains labels of the same name, so that ptx_find_label can walk them; leaves the heads zeroed. */
static int chain_labels(struct ptx_parser *ps)
{
    struct ptx_func *f = ps->func;

    if (ps->out->names.n > ps->n_heads) {
        ps->n_heads = ps->out->names.n * 2;
        ps->label_heads = ptx_arena_array(&ps->out->arena, ps->n_heads, sizeof *ps->label_heads);
        if (!ps->label_heads)
            return ptx_fail(ps, "out of memory");
    }
    for (uint32_t i = 0; i < f->n_labels; i++) {
        f->labels[i].next_same = ps->label_heads[f->labels[i].name];
        ps->label_heads[f->labels[i].name] = i + 1;
    }
    for (uint32_t i = 0; i < f->n_labels; i++)
        ps->label_heads[f->labels[i].name] = 0;
    return 0;
}

int ptx_parse_body(struct ptx_parser *ps)
{
    uint32_t bottom = ps->depth;

    for (;;) {
        if (ps->failed)
            return -1;
        if (ps->lx.token.kind == PTX_T_END)
            return ptx_fail(ps, "the function has no end");
        if (ptx_lex_at(&ps->lx, '}')) {
            ptx_lex_next(&ps->lx);
            if (ps->depth == bottom)
                break;
            ptx_close_scope(ps);
        } else if (parse_statement(ps)) {
            return -1;
        }
    }
    return chain_labels(ps);
}
