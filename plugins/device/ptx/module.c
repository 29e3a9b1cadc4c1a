/*
 * module.c - see module.h.
 */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT ((uint64_t)32 << 20)

static const struct rung_code *ptx_code(const struct rung_artifact *a)
{
    for (uint32_t i = 0; i < a->n_codes; i++)
        if (a->codes[i].format == RUNG_FORMAT_PTX)
            return &a->codes[i];
    return NULL;
}

static void set_fault(struct rung_fault *f, const char *code, const char *message)
{
    snprintf(f->code, sizeof f->code, "%s", code);
    snprintf(f->message, sizeof f->message, "%s", message);
}

/* ---- Variables ------------------------------------------------------------------------------- */

static int is_stored(const struct ptx_sym *s)
{
    return (s->space == PTX_GLOBAL || s->space == PTX_CONST) && s->size;
}

static const char *name_of(const struct ptx_module *m, uint32_t name, char *out, size_t n)
{
    const struct ptx_name *t = &m->text.names.names[name];

    snprintf(out, n, "%.*s", (int)(t->len < n ? t->len : n - 1), t->ptr);
    return out;
}

static int place_var(struct ptx_module *m, struct ptx_memory *memory, struct ptx_sym *s)
{
    char label[64];
    struct ptx_buffer *b =
        ptx_buffer_new(memory, s->size, s->align, name_of(m, s->name, label, sizeof label));

    if (!b)
        return -1;
    m->syms[m->n_vars] = s;
    m->vars[m->n_vars++] = b;
    s->address = b->segment.base;
    b->segment.read_only = s->space == PTX_CONST;
    return 0;
}

static void apply_fixups(struct ptx_sym *s, uint8_t *host)
{
    for (const struct ptx_fixup *f = s->fixups; f; f = f->next) {
        uint64_t address = f->target->address + (uint64_t)f->add;

        if (f->at + 8 <= s->size)
            memcpy(host + f->at, &address, 8);
    }
}

/* Every list of variables that can hold .global or .const ones. */
static int each_var(struct ptx_module *m,
                    int (*visit)(struct ptx_module *, struct ptx_memory *, struct ptx_sym *),
                    struct ptx_memory *memory)
{
    for (struct ptx_sym *s = m->text.vars; s; s = s->next)
        if (is_stored(s) && visit(m, memory, s))
            return -1;
    for (struct ptx_func *f = m->text.funcs; f; f = f->next)
        for (struct ptx_sym *s = f->vars; s; s = s->next)
            if (is_stored(s) && visit(m, memory, s))
                return -1;
    return 0;
}

static int count_var(struct ptx_module *m, struct ptx_memory *memory, struct ptx_sym *s)
{
    (void)memory;
    (void)s;
    m->n_vars++;
    return 0;
}

void ptx_module_reset(struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->n_vars; i++) {
        uint8_t *host = m->vars[i]->segment.host;

        if (m->syms[i]->init)
            memcpy(host, m->syms[i]->init, m->syms[i]->size);
        else
            memset(host, 0, m->syms[i]->size);
        apply_fixups(m->syms[i], host);
    }
}

/* A lowered name ends in the length and the text of the last part: _ZN2ns3c_wE, _ZL3c_w. */
static int is_lowered(const char *lowered, size_t n, const char *name)
{
    char part[160];
    const size_t k = (size_t)snprintf(part, sizeof part, "%zu%s", strlen(name), name);

    if (n < 3 || memcmp(lowered, "_Z", 2) || k >= sizeof part)
        return 0;
    n -= lowered[n - 1] == 'E';
    return n > k && !memcmp(lowered + n - k, part, k);
}

struct ptx_buffer *ptx_module_symbol(struct ptx_module *m, const char *name)
{
    struct ptx_buffer *found = NULL;
    const char *last = name;
    uint32_t n_found = 0;

    for (const char *c = name; *c; c++)
        last = c[0] == ':' ? c + 1 : last;
    for (uint32_t i = 0; i < m->n_vars; i++) {
        const struct ptx_name *t = &m->text.names.names[m->syms[i]->name];

        if (t->len == strlen(name) && !memcmp(t->ptr, name, t->len))
            return m->vars[i];
        if (is_lowered(t->ptr, t->len, last)) {
            found = m->vars[i];
            n_found++;
        }
    }
    return n_found == 1 ? found : NULL;
}

static int place_vars(struct ptx_module *m, struct ptx_memory *memory)
{
    each_var(m, count_var, memory);
    m->vars = calloc((size_t)m->n_vars + 1, sizeof(*m->vars));
    m->syms = calloc((size_t)m->n_vars + 1, sizeof(*m->syms));
    m->n_vars = 0;
    if (!m->vars || !m->syms || each_var(m, place_var, memory))
        return -1;
    ptx_module_reset(m);
    return 0;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static int decode_kernels(struct ptx_module *m, const struct ptx_optable *table)
{
    uint32_t n = 0;

    for (const struct ptx_func *f = m->text.funcs; f; f = f->next)
        n += f->is_entry && f->has_body;
    m->kernels = ptx_arena_array(&m->arena, n, sizeof *m->kernels);
    if (!m->kernels)
        return -1;
    for (const struct ptx_func *f = m->text.funcs; f; f = f->next) {
        struct ptx_kernel *k = &m->kernels[m->n_kernels];
        const struct ptx_name *name = &m->text.names.names[f->name];

        if (!f->is_entry || !f->has_body)
            continue;
        k->symbol = ptx_arena_text(&m->arena, name->ptr, name->len);
        k->func = f;
        if (!k->symbol)
            return -1;
        m->n_kernels++;
        ptx_decode(&m->arena, table, &m->text, f, &k->program, &k->problem);
    }
    return 0;
}

void ptx_kernel_fault(const struct ptx_kernel *k, const char *name, struct rung_fault *f)
{
    snprintf(f->code, sizeof f->code, "device.unsupported");
    snprintf(f->kernel, sizeof f->kernel, "%s", name ? name : k->symbol);
    f->line = k->problem.line;
    if (k->problem.line)
        snprintf(f->message, sizeof f->message, "%s", k->problem.message);
    else
        snprintf(f->message, sizeof f->message, "%s (line %u of the PTX)", k->problem.message,
                 k->problem.ptx_line);
}

/* A module none of whose wanted kernels can run is refused as a whole. */
static int check_kernels(struct ptx_module *m, const struct rung_artifact *a,
                         struct rung_fault *fault)
{
    const struct ptx_kernel *bad = NULL;
    const char *name = NULL;

    for (uint32_t i = 0; i < m->n_kernels; i++)
        if (!m->kernels[i].problem.message[0])
            return 0;
        else
            bad = &m->kernels[i];
    for (uint32_t i = 0; i < a->n_kernels; i++) {
        const struct ptx_kernel *k =
            a->kernels[i].symbol ? ptx_module_kernel(m, a->kernels[i].symbol) : NULL;

        if (!k)
            continue;
        bad = k;
        name = a->kernels[i].expression;
    }
    if (!bad)
        return 0;
    ptx_kernel_fault(bad, name, fault);
    return -1;
}

const struct ptx_kernel *ptx_module_kernel(const struct ptx_module *m, const char *symbol)
{
    for (uint32_t i = 0; i < m->n_kernels; i++)
        if (!strcmp(m->kernels[i].symbol, symbol))
            return &m->kernels[i];
    return NULL;
}

struct ptx_module *ptx_module_load(const struct rung_artifact *artifact,
                                   const struct ptx_optable *table, struct ptx_memory *memory,
                                   struct rung_fault *fault)
{
    const struct rung_code *code = ptx_code(artifact);
    struct ptx_module *m;

    if (!code || !code->bytes || code->n_bytes > MAX_TEXT) {
        set_fault(fault, "device.unsupported",
                  code ? "the PTX text is too large" : "the artifact has no PTX form");
        return NULL;
    }
    m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->arena.limit = (uint64_t)2 << 30;
    if (ptx_parse(&m->text, code->bytes, code->n_bytes)) {
        set_fault(fault, "device.unsupported", "");
        snprintf(fault->message, sizeof fault->message,
                 "the PTX text can't be read: %s, line %u of the PTX", m->text.problem,
                 m->text.problem_line);
    } else if (!place_vars(m, memory) && !decode_kernels(m, table) &&
               !check_kernels(m, artifact, fault)) {
        return m;
    }
    ptx_module_free(m);
    return NULL;
}

void ptx_module_free(struct ptx_module *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->n_vars; i++)
        ptx_buffer_free(m->vars[i]);
    free(m->vars);
    free(m->syms);
    ptx_arena_free(&m->arena);
    ptx_text_free(&m->text);
    free(m);
}
