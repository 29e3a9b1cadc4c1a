/*
 * decode_call.c - calls: device functions are expanded in place, each call with registers of its
 * own; parameter memory becomes registers too. printf and failed assertions are operations.
 */
#include "decode_int.h"

#include <string.h>

/* ---- Instances ------------------------------------------------------------------------------- */

static int instance_init(struct ptx_decoder *d, struct ptx_instance *in,
                         const struct ptx_func *func)
{
    in->func = func;
    in->caller = d->in;
    in->depth = d->in ? d->in->depth + 1 : 0;
    in->carry = PTX_NO_VREG;
    in->local_base = d->local_bytes;
    in->regs = ptx_arena_array(&d->scratch, func->n_regs, sizeof *in->regs);
    in->heads = ptx_arena_array(&d->scratch, d->text->names.n, sizeof *in->heads);
    in->params = ptx_arena_array(&d->scratch, func->n_params, sizeof *in->params);
    if (!in->regs || !in->heads || !in->params)
        return ptx_no_memory(d);
    memset(in->regs, 0xff, func->n_regs * sizeof *in->regs);
    for (uint32_t i = 0; i < func->n_labels; i++)
        in->heads[func->labels[i].name] = i + 1;
    in->first_label = d->n_labels;
    for (uint32_t i = 0; i <= func->n_labels; i++)
        if (ptx_new_label(d) == UINT32_MAX)
            return -1;
    in->end_label = d->n_labels - 1;
    d->local_bytes += (func->local_bytes + 15) / 16 * 16;
    return 0;
}

static int bind_params(struct ptx_decoder *d, struct ptx_instance *in, struct ptx_sym **formals,
                       uint32_t n, struct ptx_sym **actuals)
{
    for (uint32_t i = 0; i < n; i++) {
        in->params[formals[i]->index] = ptx_call_param(d, actuals[i]);
        if (!in->params[formals[i]->index])
            return -1;
    }
    return 0;
}

int ptx_expand(struct ptx_decoder *d, const struct ptx_call_site *site)
{
    struct ptx_instance *in = ptx_arena_alloc(&d->scratch, sizeof *in);
    const struct ptx_func *f = site->func;
    const struct ptx_stmt *call = d->stmt;
    int rc;

    if (!in || instance_init(d, in, f))
        return ptx_no_memory(d);
    if (site->arguments && (bind_params(d, in, f->formals, f->n_formals, site->arguments) ||
                            bind_params(d, in, f->returns, f->n_returns, site->results)))
        return -1;
    d->in = in;
    rc = ptx_decode_body(d);
    d->in = in->caller;
    d->stmt = rc ? d->stmt : call; /* a problem names the inner instruction */
    return rc;
}

/* ---- Parameters of calls --------------------------------------------------------------------- */

struct ptx_block_param *ptx_call_param(struct ptx_decoder *d, const struct ptx_sym *sym)
{
    struct ptx_block_param **slot;

    if (sym->kind != PTX_SYM_PARAM || sym->index >= d->in->func->n_params)
        return NULL;
    if (sym->is_formal && !d->in->caller)
        return NULL;
    slot = &d->in->params[sym->index];
    if (!*slot)
        *slot = ptx_arena_alloc(&d->scratch, sizeof **slot);
    if (!*slot)
        ptx_no_memory(d);
    return *slot;
}

uint32_t ptx_param_piece(struct ptx_decoder *d, struct ptx_block_param *param, uint64_t offset,
                         uint32_t bytes)
{
    struct ptx_piece *p;

    for (p = param->pieces; p; p = p->next) {
        if (p->offset == offset && p->bytes == bytes)
            return p->vreg;
        if (offset < p->offset + p->bytes && p->offset < offset + bytes) {
            ptx_unsupported(d, "reads a call's parameter in other pieces than it was written");
            return PTX_NO_VREG;
        }
    }
    p = ptx_arena_alloc(&d->scratch, sizeof *p);
    if (!p) {
        ptx_no_memory(d);
        return PTX_NO_VREG;
    }
    *p = (struct ptx_piece){.next = param->pieces, .offset = offset, .bytes = bytes};
    p->vreg = ptx_new_vreg(d, bytes == 8 ? PTX_W64 : PTX_W32);
    param->pieces = p;
    return p->vreg;
}

/* ---- call ------------------------------------------------------------------------------------ */

/* Register of the k-th argument of a built-in function. */
static uint32_t argument(struct ptx_decoder *d, const struct ptx_operand *list, uint32_t k,
                         uint32_t bytes)
{
    const struct ptx_operand *op = list && k < list->n ? &list->items[k] : NULL;
    struct ptx_block_param *param = op && op->kind == PTX_O_SYM ? ptx_call_param(d, op->sym) : NULL;

    if (!param) {
        ptx_unsupported(d, "calls a built-in function with unexpected arguments");
        return PTX_NO_VREG;
    }
    return ptx_param_piece(d, param, 0, bytes);
}

static int call_assert(struct ptx_decoder *d, const struct ptx_operand *args)
{
    const uint32_t r[PTX_MAX_OPERANDS] = {argument(d, args, 0, 8), argument(d, args, 1, 8),
                                          argument(d, args, 2, 4), argument(d, args, 3, 8)};

    return ptx_emit(d, PTX_OP_assert_fail, r) ? 0 : -1;
}

static int call_print(struct ptx_decoder *d, const struct ptx_operand *result,
                      const struct ptx_operand *args)
{
    uint32_t to = result ? argument(d, result, 0, 4) : ptx_new_vreg(d, PTX_W32);
    struct ptx_insn *in =
        ptx_emit_n(d, PTX_OP_print, to, argument(d, args, 0, 8), argument(d, args, 1, 8), 0);

    return in ? 0 : -1;
}

static int is_name(const struct ptx_decoder *d, uint32_t name, const char *text)
{
    const struct ptx_name *n = &d->text->names.names[name];

    return n->len == strlen(text) && !memcmp(n->ptr, text, n->len);
}

/* The .param symbols of a call's list, n of them. */
static struct ptx_sym **list_syms(struct ptx_decoder *d, const struct ptx_operand *list, uint32_t n)
{
    struct ptx_sym **syms = ptx_arena_array(&d->scratch, n, sizeof(*syms));

    if (!syms || (list ? list->n : 0) != n)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (list->items[i].kind != PTX_O_SYM || list->items[i].sym->kind != PTX_SYM_PARAM)
            return NULL;
        syms[i] = list->items[i].sym;
    }
    return syms;
}

static int call_function(struct ptx_decoder *d, const struct ptx_func *f,
                         const struct ptx_operand *result, const struct ptx_operand *args)
{
    struct ptx_call_site site = {.func = f};

    if (!f->has_body)
        return ptx_unsupported(d, "calls a function that has no body in this module");
    for (const struct ptx_instance *i = d->in; i; i = i->caller)
        if (i->func == f)
            return ptx_unsupported(
                d, "calls a function from within itself: recursion is not supported");
    if (d->in->depth >= PTX_MAX_INLINE_DEPTH)
        return ptx_unsupported(d, "calls too deeply");
    site.arguments = list_syms(d, args, f->n_formals);
    site.results = list_syms(d, result, f->n_returns);
    if (!site.arguments || !site.results)
        return ptx_unsupported(d, "calls with parameters that don't fit the function");
    d->weighted = 1; /* the call costs nothing; the body counts */
    return ptx_expand(d, &site);
}

/* call{.uni} (result), function, (arguments); result and arguments may be missing. */
int ptx_decode_call(struct ptx_decoder *d, const struct ptx_words *words)
{
    const struct ptx_stmt *st = d->stmt;
    const struct ptx_operand *result = NULL, *args = NULL, *f;
    uint32_t k = 0;

    (void)words;
    if (k < st->n_ops && st->ops[k].kind == PTX_O_LIST)
        result = &st->ops[k++];
    f = k < st->n_ops ? &st->ops[k++] : NULL;
    if (k < st->n_ops && st->ops[k].kind == PTX_O_LIST)
        args = &st->ops[k++];
    if (!f || f->kind != PTX_O_SYM || f->sym->kind != PTX_SYM_FUNC || k != st->n_ops)
        return ptx_unsupported(d, "calls through a pointer");
    if (is_name(d, f->name, "__assertfail"))
        return call_assert(d, args);
    if (is_name(d, f->name, "vprintf"))
        return call_print(d, result, args);
    return call_function(d, f->sym->func, result, args);
}
