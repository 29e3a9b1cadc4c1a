/*
 * parse.c - module level of PTX text, symbols and scopes. See parse.h.
 */
#include "parse_int.h"

#include <stdio.h>
#include <string.h>

static const struct {
    char word[8];
    uint8_t type, bytes, is_float, is_signed;
} types[] = {
    {"b8", PTX_B8, 1, 0, 0},     {"b16", PTX_B16, 2, 0, 0},       {"b32", PTX_B32, 4, 0, 0},
    {"b64", PTX_B64, 8, 0, 0},   {"b128", PTX_B128, 16, 0, 0},    {"u8", PTX_U8, 1, 0, 0},
    {"u16", PTX_U16, 2, 0, 0},   {"u32", PTX_U32, 4, 0, 0},       {"u64", PTX_U64, 8, 0, 0},
    {"s8", PTX_S8, 1, 0, 1},     {"s16", PTX_S16, 2, 0, 1},       {"s32", PTX_S32, 4, 0, 1},
    {"s64", PTX_S64, 8, 0, 1},   {"f16", PTX_F16, 2, 1, 1},       {"f16x2", PTX_F16X2, 4, 1, 1},
    {"bf16", PTX_BF16, 2, 1, 1}, {"bf16x2", PTX_BF16X2, 4, 1, 1}, {"f32", PTX_F32, 4, 1, 1},
    {"f64", PTX_F64, 8, 1, 1},   {"pred", PTX_PRED, 1, 0, 0},
};
#define N_TYPES (sizeof types / sizeof types[0])

uint32_t ptx_type_of(const char *word, uint32_t n)
{
    if (n && *word == '.')
        word++, n--;
    for (size_t i = 0; i < N_TYPES; i++)
        if (strlen(types[i].word) == n && !memcmp(types[i].word, word, n))
            return types[i].type;
    return PTX_NONE;
}

uint32_t ptx_type_bytes(uint32_t type)
{
    return type >= 1 && type <= N_TYPES ? types[type - 1].bytes : 0;
}

int ptx_type_is_float(uint32_t type)
{
    return type >= 1 && type <= N_TYPES && types[type - 1].is_float;
}

int ptx_type_is_signed(uint32_t type)
{
    return type >= 1 && type <= N_TYPES && types[type - 1].is_signed;
}

/* ---- Errors, scopes, symbols ----------------------------------------------------------------- */

int ptx_fail(struct ptx_parser *ps, const char *what)
{
    if (!ps->failed) {
        int n = ps->lx.token.len < 60 ? (int)ps->lx.token.len : 60;

        ps->failed = 1;
        ps->out->problem_line = ps->lx.token.line;
        snprintf(ps->out->problem, sizeof ps->out->problem, "%s near '%.*s'", what, n,
                 ps->lx.token.ptr ? ps->lx.token.ptr : "");
    }
    return -1;
}

int ptx_expect(struct ptx_parser *ps, char punct)
{
    char what[24];

    if (ptx_lex_at(&ps->lx, punct)) {
        ptx_lex_next(&ps->lx);
        return 0;
    }
    snprintf(what, sizeof what, "expected '%c'", punct);
    return ptx_fail(ps, what);
}

uint32_t ptx_take_word(struct ptx_parser *ps)
{
    uint32_t name;

    if (ps->lx.token.kind != PTX_T_WORD) {
        ptx_fail(ps, "expected a name");
        return UINT32_MAX;
    }
    name = ptx_name_of(&ps->out->names, ps->lx.token.ptr, ps->lx.token.len);
    if (name == UINT32_MAX)
        ptx_fail(ps, "out of memory");
    ptx_lex_next(&ps->lx);
    return name;
}

static struct ptx_sym **binding(struct ptx_parser *ps, uint32_t name)
{
    if (name >= ps->n_bound) {
        uint32_t wider = (name + 1) * 2;
        struct ptx_sym **moved = ptx_arena_array(&ps->out->arena, wider, sizeof(*moved));

        if (!moved)
            return NULL;
        if (ps->n_bound)
            memcpy(moved, ps->bound, ps->n_bound * sizeof *moved);
        ps->bound = moved;
        ps->n_bound = wider;
    }
    return &ps->bound[name];
}

/* Binds at the scope depth `depth`, so that the scope's end takes the binding away again. */
static struct ptx_sym *declare_at(struct ptx_parser *ps, uint32_t name, uint32_t kind,
                                  uint32_t depth)
{
    struct ptx_sym **slot = binding(ps, name);
    struct ptx_sym *sym = ptx_arena_alloc(&ps->out->arena, sizeof *sym);

    if (!slot || !sym) {
        ptx_fail(ps, "out of memory");
        return NULL;
    }
    sym->kind = kind;
    sym->name = name;
    sym->depth = depth;
    sym->shadowed = *slot;
    sym->in_scope = ps->scope_syms[depth];
    ps->scope_syms[depth] = sym;
    *slot = sym;
    return sym;
}

struct ptx_sym *ptx_declare(struct ptx_parser *ps, uint32_t name, uint32_t kind)
{
    return declare_at(ps, name, kind, ps->depth);
}

/* %f17 out of ".reg .f32 %f<195>": made when it is first named. */
static struct ptx_sym *register_of_range(struct ptx_parser *ps, uint32_t name)
{
    struct ptx_name text = ps->out->names.names[name];
    uint32_t stem = text.len;
    uint64_t number = 0;

    while (stem && text.ptr[stem - 1] >= '0' && text.ptr[stem - 1] <= '9')
        stem--;
    if (!stem || stem == text.len || text.len - stem > 9 ||
        (text.ptr[stem] == '0' && text.len - stem > 1))
        return NULL;
    for (uint32_t i = stem; i < text.len; i++)
        number = number * 10 + (uint64_t)(text.ptr[i] - '0');
    uint32_t prefix = ptx_name_of(&ps->out->names, text.ptr, stem);
    struct ptx_sym *range = prefix < ps->n_bound ? ps->bound[prefix] : NULL;
    if (!range || range->kind != PTX_SYM_RANGE || number >= range->range || !ps->func)
        return NULL;
    struct ptx_sym *sym = declare_at(ps, name, PTX_SYM_REG, range->depth);
    if (sym) {
        sym->type = range->type;
        sym->index = ps->func->n_regs++;
    }
    return sym;
}

struct ptx_sym *ptx_lookup(struct ptx_parser *ps, uint32_t name)
{
    struct ptx_sym *sym = name < ps->n_bound ? ps->bound[name] : NULL;

    if (sym && sym->kind != PTX_SYM_RANGE)
        return sym;
    return register_of_range(ps, name);
}

int ptx_open_scope(struct ptx_parser *ps)
{
    struct ptx_func *f = ps->func;
    uint32_t *parent;

    if (ps->depth >= PTX_MAX_SCOPE_DEPTH)
        return ptx_fail(ps, "scopes are nested too deeply");
    parent = ptx_arena_grow(&ps->out->arena, (void **)&f->scope_parent, f->n_scopes, &f->cap_scopes,
                            sizeof *parent);
    if (!parent)
        return ptx_fail(ps, "out of memory");
    *parent = ps->scope;
    ps->scope = f->n_scopes++;
    ps->scope_syms[++ps->depth] = NULL;
    return 0;
}

void ptx_close_scope(struct ptx_parser *ps)
{
    for (struct ptx_sym *s = ps->scope_syms[ps->depth]; s; s = s->in_scope)
        ps->bound[s->name] = s->shadowed;
    ps->depth--;
    ps->scope = ps->func->scope_parent[ps->scope];
}

void ptx_skip_statement(struct ptx_parser *ps)
{
    uint32_t depth = 0;

    for (; ps->lx.token.kind != PTX_T_END; ptx_lex_next(&ps->lx)) {
        if (ptx_lex_at(&ps->lx, '{'))
            depth++;
        else if (ptx_lex_at(&ps->lx, '}') && depth-- == 0)
            return;
        else if (ptx_lex_at(&ps->lx, ';') && !depth)
            break;
    }
    if (ptx_lex_at(&ps->lx, ';'))
        ptx_lex_next(&ps->lx);
}

/* ---- Functions ------------------------------------------------------------------------------- */

static int parse_param_list(struct ptx_parser *ps, struct ptx_sym ***list, uint32_t *n)
{
    uint32_t cap = 0;

    if (ptx_expect(ps, '('))
        return -1;
    while (!ptx_lex_at(&ps->lx, ')')) {
        struct ptx_sym *sym = ptx_parse_param(ps);
        struct ptx_sym **slot =
            sym ? ptx_arena_grow(&ps->out->arena, (void **)list, *n, &cap, sizeof *slot) : NULL;

        if (!slot)
            return ptx_fail(ps, "bad parameter");
        *slot = sym;
        (*n)++;
        if (!ptx_lex_at(&ps->lx, ')') && ptx_expect(ps, ','))
            return -1;
    }
    return ptx_expect(ps, ')');
}

static void lay_out_params(struct ptx_func *func)
{
    uint64_t offset = 0;

    for (uint32_t i = 0; i < func->n_formals; i++) {
        struct ptx_sym *p = func->formals[i];
        uint64_t align = p->align ? p->align : 1;

        offset = (offset + align - 1) / align * align;
        p->offset = offset;
        offset += p->size;
    }
    func->param_bytes = offset;
}

/* .maxntid 256, 1, 1 and its like between the parameters and the body. */
static int parse_directives(struct ptx_parser *ps)
{
    while (ps->lx.token.kind == PTX_T_WORD && *ps->lx.token.ptr == '.') {
        int bound = ptx_lex_is(&ps->lx, ".maxntid") || ptx_lex_is(&ps->lx, ".reqntid");
        int cluster = ptx_lex_is(&ps->lx, ".reqnctapercluster");
        uint64_t product = 1;
        uint32_t n = 0;

        ptx_lex_next(&ps->lx);
        while (ps->lx.token.kind == PTX_T_INT || ps->lx.token.kind == PTX_T_STRING ||
               ptx_lex_at(&ps->lx, ',')) {
            if (ps->lx.token.kind == PTX_T_INT && ps->lx.token.value <= 4096 && product <= 4096)
                product *= ps->lx.token.value;
            if (ps->lx.token.kind == PTX_T_INT && cluster && n < 3)
                ps->func->cluster[n++] = (uint32_t)ps->lx.token.value;
            ptx_lex_next(&ps->lx);
        }
        if (bound)
            ps->func->max_threads = (uint32_t)product;
        for (; cluster && n < 3; n++)
            ps->func->cluster[n] = 1;
    }
    return 0;
}

static struct ptx_func *new_func(struct ptx_parser *ps, int is_entry)
{
    struct ptx_func *func = ptx_arena_alloc(&ps->out->arena, sizeof *func);

    if (!func) {
        ptx_fail(ps, "out of memory");
        return NULL;
    }
    func->is_entry = (uint32_t)is_entry;
    ps->func = func;
    ps->scope = 0;
    ps->line = 0;
    ps->main_file = 0;
    if (ptx_open_scope(ps))
        return NULL;
    return func;
}

/* A declaration is superseded by the definition: calls find the body through the symbol. */
static int bind_func(struct ptx_parser *ps, struct ptx_func *func)
{
    struct ptx_sym *sym = func->name < ps->n_bound ? ps->bound[func->name] : NULL;

    if (!sym || sym->kind != PTX_SYM_FUNC)
        sym = declare_at(ps, func->name, PTX_SYM_FUNC, 0);
    if (!sym)
        return -1;
    if (!sym->func || func->has_body)
        sym->func = func;
    func->next = ps->out->funcs;
    ps->out->funcs = func;
    return 0;
}

static int parse_func(struct ptx_parser *ps, int is_entry)
{
    struct ptx_func *func = new_func(ps, is_entry);

    if (!func)
        return -1;
    ptx_lex_next(&ps->lx);
    if (ptx_lex_at(&ps->lx, '(') && parse_param_list(ps, &func->returns, &func->n_returns))
        return -1;
    func->name = ptx_take_word(ps);
    if (ps->failed)
        return -1;
    if (ptx_lex_at(&ps->lx, '(') && parse_param_list(ps, &func->formals, &func->n_formals))
        return -1;
    lay_out_params(func);
    parse_directives(ps);
    func->has_body = ptx_lex_at(&ps->lx, '{');
    if (bind_func(ps, func))
        return -1;
    if (func->has_body) {
        ptx_lex_next(&ps->lx);
        if (ptx_parse_body(ps))
            return -1;
    } else if (ptx_expect(ps, ';')) {
        return -1;
    }
    ptx_close_scope(ps);
    ps->func = NULL;
    return 0;
}

/* ---- Module ---------------------------------------------------------------------------------- */

static void skip_section(struct ptx_parser *ps)
{
    uint32_t depth = 0;

    for (; ps->lx.token.kind != PTX_T_END; ptx_lex_next(&ps->lx)) {
        if (ptx_lex_at(&ps->lx, '{'))
            depth++;
        else if (ptx_lex_at(&ps->lx, '}') && --depth == 0)
            break;
    }
    ptx_lex_next(&ps->lx);
}

/* .version 9.0, .target sm_90, texmode, .address_size 64, .file 1 "x": nothing of them is needed.
 */
static void skip_header(struct ptx_parser *ps)
{
    ptx_lex_next(&ps->lx);
    while (ps->lx.token.kind != PTX_T_END &&
           !(ps->lx.token.kind == PTX_T_WORD && *ps->lx.token.ptr == '.'))
        ptx_lex_next(&ps->lx);
}

static int is_space_word(const struct ptx_lexer *lx)
{
    return ptx_lex_is(lx, ".global") || ptx_lex_is(lx, ".const") || ptx_lex_is(lx, ".shared");
}

static int parse_directive(struct ptx_parser *ps)
{
    struct ptx_lexer *lx = &ps->lx;
    int is_extern = 0;

    while (ptx_lex_is(lx, ".visible") || ptx_lex_is(lx, ".weak") || ptx_lex_is(lx, ".common") ||
           ptx_lex_is(lx, ".extern")) {
        is_extern |= ptx_lex_is(lx, ".extern");
        ptx_lex_next(lx);
    }
    if (ptx_lex_is(lx, ".entry") || ptx_lex_is(lx, ".func"))
        return parse_func(ps, ptx_lex_is(lx, ".entry"));
    if (is_space_word(lx))
        return ptx_parse_var(ps, is_extern);
    if (ptx_lex_is(lx, ".section")) {
        skip_section(ps);
        return 0;
    }
    if (ptx_lex_is(lx, ".version") || ptx_lex_is(lx, ".target") ||
        ptx_lex_is(lx, ".address_size") || ptx_lex_is(lx, ".file")) {
        skip_header(ps);
        return 0;
    }
    if (ptx_lex_is(lx, ".pragma") || ptx_lex_is(lx, ".alias")) {
        ptx_skip_statement(ps);
        return 0;
    }
    return ptx_fail(ps, "unknown directive");
}

int ptx_parse(struct ptx_text *out, const char *text, size_t n)
{
    struct ptx_parser ps = {.out = out};

    memset(out, 0, sizeof *out);
    out->arena.limit = (uint64_t)4 << 30;
    out->names.arena = &out->arena;
    char *copy = ptx_arena_text(&out->arena, text, n);
    if (!copy)
        return ptx_fail(&ps, "out of memory");
    n = strnlen(copy, n); /* the ABI lets a compiler count the final 0 byte */
    ptx_lex_start(&ps.lx, copy, n);
    while (ps.lx.token.kind != PTX_T_END)
        if (parse_directive(&ps))
            return -1;
    return ps.failed ? -1 : 0;
}

void ptx_text_free(struct ptx_text *text)
{
    ptx_arena_free(&text->arena);
}

uint32_t ptx_find_label(const struct ptx_func *func, const uint32_t *heads, uint32_t name,
                        uint32_t scope)
{
    for (;; scope = func->scope_parent[scope]) {
        for (uint32_t l = heads[name]; l; l = func->labels[l - 1].next_same)
            if (func->labels[l - 1].scope == scope)
                return l - 1;
        if (!scope)
            return UINT32_MAX;
    }
}
