/*
 * decode.c - statements to instructions: registers, constants, labels, guards, plain operations,
 * and the table of families that need code of their own.
 */
#include "decode_int.h"

#include <stdio.h>
#include <string.h>

int ptx_unsupported(struct ptx_decoder *d, const char *why)
{
    struct ptx_problem *p = d->problem;
    const struct ptx_name *name = d->stmt ? &d->text->names.names[d->stmt->name] : NULL;

    if (p->message[0])
        return -1;
    p->line = d->stmt ? d->stmt->line : 0;
    p->ptx_line = d->stmt ? d->stmt->ptx_line : 0;
    snprintf(p->message, sizeof p->message, "the PTX instruction '%.*s' %s",
             name ? (int)(name->len < 100 ? name->len : 100) : 1, name ? name->ptr : "?", why);
    return -1;
}

int ptx_no_memory(struct ptx_decoder *d)
{
    if (!d->problem->message[0])
        snprintf(d->problem->message, sizeof d->problem->message,
                 "the kernel is too large for the interpreter");
    return -1;
}

/* Operands as the operation table has them. */
int ptx_decode_plain(struct ptx_decoder *d, uint32_t op)
{
    const struct ptx_opinfo *info = &ptx_ops[op];
    uint32_t r[PTX_MAX_OPERANDS], n = (uint32_t)info->defs.n + info->uses.n;

    if (d->stmt->n_ops != n)
        return ptx_unsupported(d, "has an unexpected number of operands");
    for (uint32_t i = info->defs.n; i < n; i++)
        r[i] = ptx_use(d, &d->stmt->ops[i], info->uses.tag[i - info->defs.n]);
    for (uint32_t i = 0; i < info->defs.n; i++)
        r[i] = ptx_def(d, &d->stmt->ops[i], info->defs.tag[i]);
    return ptx_emit(d, op, r) ? 0 : -1;
}

/* ---- Mnemonics ------------------------------------------------------------------------------- */

void ptx_split_words(const struct ptx_decoder *d, struct ptx_words *words)
{
    const struct ptx_name *name = &d->text->names.names[d->stmt->name];
    uint32_t start = 0;

    *words = (struct ptx_words){.text = name->ptr, .len = name->len};
    for (uint32_t i = 0; i <= name->len && words->n < 16; i++) {
        if (i < name->len && name->ptr[i] != '.')
            continue;
        words->word[words->n].ptr = name->ptr + start;
        words->word[words->n].len = i - start;
        words->n++;
        start = i + 1;
    }
}

int ptx_word_is(const struct ptx_words *w, uint32_t i, const char *text)
{
    size_t n = strlen(text);

    return i < w->n && w->word[i].len == n && !memcmp(w->word[i].ptr, text, n);
}

int ptx_has_word(const struct ptx_words *w, const char *text)
{
    for (uint32_t i = 1; i < w->n; i++)
        if (ptx_word_is(w, i, text))
            return 1;
    return 0;
}

int ptx_word_in(const struct ptx_words *w, uint32_t i, const char *const *list)
{
    for (int k = 0; list[k]; k++)
        if (ptx_word_is(w, i, list[k]))
            return k;
    return -1;
}

static const struct {
    char word[18];
    ptx_family decode;
} families[] = {
    {"ld", ptx_decode_load},
    {"ldu", ptx_decode_load},
    {"st", ptx_decode_store},
    {"atom", ptx_decode_atom},
    {"red", ptx_decode_atom},
    {"cp", ptx_decode_cp},
    {"cvt", ptx_decode_cvt},
    {"cvta", ptx_decode_cvta},
    {"mov", ptx_decode_mov},
    {"setp", ptx_decode_setp},
    {"set", ptx_decode_set},
    {"testp", ptx_decode_testp},
    {"isspacep", ptx_decode_isspacep},
    {"and", ptx_decode_logic},
    {"or", ptx_decode_logic},
    {"xor", ptx_decode_logic},
    {"not", ptx_decode_logic},
    {"addc", ptx_decode_carry},
    {"subc", ptx_decode_carry},
    {"madc", ptx_decode_carry},
    {"add", ptx_decode_carry},
    {"sub", ptx_decode_carry},
    {"mad", ptx_decode_carry},
    {"bfi", ptx_decode_bits},
    {"lop3", ptx_decode_bits},
    {"prmt", ptx_decode_bits},
    {"shfl", ptx_decode_shfl},
    {"vote", ptx_decode_vote},
    {"match", ptx_decode_match},
    {"redux", ptx_decode_redux},
    {"activemask", ptx_decode_active},
    {"elect", ptx_decode_elect},
    {"bar", ptx_decode_bar},
    {"barrier", ptx_decode_bar},
    {"bra", ptx_decode_bra},
    {"ret", ptx_decode_end},
    {"exit", ptx_decode_end},
    {"trap", ptx_decode_end},
    {"call", ptx_decode_call},
    {"mma", ptx_decode_mma},
    {"wmma", ptx_decode_wmma},
    {"ldmatrix", ptx_decode_ldmatrix},
    {"membar", ptx_decode_fence},
    {"fence", ptx_decode_fence},
    {"mapa", ptx_decode_mapa},
    {"getctarank", ptx_decode_mapa},
    {"nanosleep", ptx_decode_nothing},
    {"prefetch", ptx_decode_nothing},
    {"prefetchu", ptx_decode_nothing},
    {"discard", ptx_decode_nothing},
    {"griddepcontrol", ptx_decode_nothing},
    {"pmevent", ptx_decode_nothing},
    {"applypriority", ptx_decode_nothing},
    {"createpolicy", ptx_decode_policy},
};

/* Plain operations by their whole mnemonic; families by the first word, for what the table lacks.
 */
static int decode_insn(struct ptx_decoder *d)
{
    struct ptx_words words;
    uint32_t op;

    ptx_split_words(d, &words);
    op = ptx_optable_find(d->table, words.text, words.len);
    if (op < PTX_N_OPS && ptx_ops[op].text && !ptx_word_is(&words, 0, "mov"))
        return ptx_decode_plain(d, op);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (ptx_word_is(&words, 0, families[i].word))
            return families[i].decode(d, &words);
    return ptx_unsupported(d, "is not supported by the interpreter");
}

/* "@p insn": the instruction is jumped over where p is false. Branches carry their guard
 * themselves. */
static int decode_statement(struct ptx_decoder *d)
{
    const struct ptx_stmt *st = d->stmt;
    const struct ptx_name *name = &d->text->names.names[st->name];
    int is_branch =
        name->len >= 3 && !memcmp(name->ptr, "bra", 3) && (name->len == 3 || name->ptr[3] == '.');
    uint32_t skip = UINT32_MAX;

    if (st->kind == PTX_S_BAD)
        return ptx_unsupported(d, "has operands that the interpreter does not read");
    if (st->guard && !is_branch) {
        struct ptx_operand guard = {.kind = PTX_O_SYM, .sym = st->guard};
        struct ptx_insn *in;

        skip = ptx_new_label(d);
        d->weighted = 1;
        in = ptx_emit_n(d, PTX_OP_bra_if, ptx_use(d, &guard, PTX_TAG_p), 0, 0, 0);
        if (!in)
            return -1;
        in->target = skip;
        in->flags |= st->guard_negated ? 0 : PTX_F_NEGATED;
        d->weighted = 0;
    }
    if (decode_insn(d))
        return -1;
    ptx_place_label(d, skip);
    return 0;
}

int ptx_decode_body(struct ptx_decoder *d)
{
    const struct ptx_func *f = d->in->func;

    for (uint32_t i = 0; i < f->n_stmts; i++) {
        d->stmt = &f->stmts[i];
        d->weighted = 0;
        if (d->stmt->kind == PTX_S_LABEL)
            ptx_place_label(d, d->in->first_label + d->stmt->label);
        else if (decode_statement(d))
            return -1;
    }
    ptx_place_label(d, d->in->end_label);
    return 0;
}

/* ---- Entry ----------------------------------------------------------------------------------- */

/* Places the shared variables that the kernel could use: the module's and the function's own. */
static void place_shared(struct ptx_decoder *d, struct ptx_sym *vars, int external)
{
    for (struct ptx_sym *s = vars; s; s = s->next) {
        uint64_t align = s->align ? s->align : 1;

        if (s->space != PTX_SHARED || (int)s->is_extern != external)
            continue;
        if (external) {
            d->dynamic_offset = (d->dynamic_offset + align - 1) / align * align;
            s->offset = d->dynamic_offset;
            continue;
        }
        d->static_shared = (d->static_shared + align - 1) / align * align;
        s->offset = d->static_shared;
        d->static_shared += s->size;
    }
}

static void place_all_shared(struct ptx_decoder *d, const struct ptx_func *entry)
{
    place_shared(d, d->text->vars, 0);
    place_shared(d, entry->vars, 0);
    for (const struct ptx_func *f = d->text->funcs; f; f = f->next)
        if (!f->is_entry)
            place_shared(d, f->vars, 0);
    d->dynamic_offset = (d->static_shared + 15) / 16 * 16;
    place_shared(d, d->text->vars, 1); /* all at the same place, but for alignment */
    place_shared(d, entry->vars, 1);
}

static int finish(struct ptx_decoder *d, const struct ptx_func *entry, struct ptx_program *out)
{
    d->stmt = NULL;
    d->weighted = 1;
    if (!ptx_emit_n(d, PTX_OP_fell_off, 0, 0, 0, 0) || ptx_layout(d) || ptx_assign_slots(d, out))
        return -1;
    out->param_bytes = (uint32_t)entry->param_bytes;
    out->max_threads = entry->max_threads;
    out->static_shared = d->static_shared;
    out->dynamic_offset = d->dynamic_offset;
    out->local_bytes = d->local_bytes;
    out->n_hints = d->n_hints;
    out->shared_unit = d->shared_unit ? d->shared_unit : 4;
    memcpy(out->cluster, entry->cluster, sizeof out->cluster);
    return 0;
}

int ptx_decode(struct ptx_arena *arena, const struct ptx_optable *table,
               const struct ptx_text *text, const struct ptx_func *entry, struct ptx_program *out,
               struct ptx_problem *problem)
{
    struct ptx_decoder d = {.out = arena, .table = table, .text = text, .problem = problem};
    struct ptx_call_site top = {.func = entry};
    int rc;

    memset(problem, 0, sizeof *problem);
    memset(out, 0, sizeof *out);
    d.scratch.limit = (uint64_t)2 << 30;
    place_all_shared(&d, entry);
    rc = ptx_expand(&d, &top) || finish(&d, entry, out);
    ptx_arena_free(&d.scratch);
    if (rc && !problem->message[0])
        snprintf(problem->message, sizeof problem->message, "the kernel could not be decoded");
    return rc ? -1 : 0;
}
