/* From collected steps to lines: see emit.h. */
#include "emit.h"
#include "names.h"
#include <string.h>

enum { FIELD_SHARED = 9, FIELD_ARGS = 10, MAX_NAME = 60 };

static bool name_is_free(const struct cg_host *h, const char *name)
{
    static const char *const words[] = {"sm_count", "and",      "or",     "not",  "min",
                                        "max",      "ceil_div", "sizeof", "true", "false"};
    const struct rung_task *t = h->task;
    bool taken = false;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        taken |= !strcmp(words[i], name);
    for (uint32_t i = 0; i < t->n_dims; i++)
        taken |= !strcmp(t->dims[i].name, name);
    for (uint32_t i = 0; i < t->n_params; i++)
        taken |= !strcmp(t->params[i].name, name);
    for (uint32_t i = 0; i < t->n_tensors; i++)
        taken |= !strcmp(t->tensors[i].name, name);
    return !taken;
}

/* The variable's name as one that the plan may use. */
static const char *temp_name(struct cg_host *h, const struct cg_buffer *b)
{
    char name[MAX_NAME + 1];
    size_t n = 0;
    for (const char *p = b->name; *p && n < MAX_NAME - 8; p++) {
        bool digit = *p >= '0' && *p <= '9';
        bool word = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' || digit;
        if (!n && digit)
            name[n++] = '_';
        name[n++] = word ? *p : '_';
    }
    name[n] = '\0';
    const char *text = n ? cg_text(h->pool, name, n) : "scratch";
    while (!name_is_free(h, text))
        text = cg_format(h->pool, "%s_buf", text);
    return text;
}

/* The temp of a buffer, added when it is new. */
static const char *temp_of(struct cg_host *h, struct cg_temps *temps, const struct cg_buffer *b)
{
    const char *name = temp_name(h, b);
    uint32_t dtype = b->dtype ? b->dtype : RUNG_U8;
    const struct cg_sym *count =
        cg_sym(h->pool, SYM_DIV, b->bytes, cg_sym_int(h->pool, cg_dtype_bytes(dtype)));
    if (!count || count->real)
        cg_problem(h, "the size of the scratch memory `%s` is not known", name);
    for (uint32_t i = 0; i < temps->n; i++) {
        struct cg_temp *t = &temps->list[i];
        if (strcmp(t->name, name) != 0)
            continue;
        if (t->dtype == dtype && count && !cg_sym_same(t->count, count))
            t->count = cg_sym(h->pool, SYM_MAX, t->count, count);
        if (t->dtype == dtype)
            return name;
        name = cg_format(h->pool, "%s_%s", name, rung_dtype_name(dtype));
        i = (uint32_t)-1;
    }
    if (temps->n == CG_MAX_STEPS)
        cg_problem(h, "more than %d pieces of scratch memory", CG_MAX_STEPS);
    else
        temps->list[temps->n++] = (struct cg_temp){name, dtype, count};
    return name;
}

static const char *buffer_name(struct cg_host *h, struct cg_temps *temps, struct cg_buffer *buffer,
                               int64_t *element)
{
    struct cg_buffer *b = cg_real_buffer(buffer);
    if (b->tensor >= 0) {
        *element = cg_dtype_bytes(h->task->tensors[b->tensor].dtype);
        return h->task->tensors[b->tensor].name;
    }
    if (b->host)
        cg_problem(h, "`%s` is memory of the host and no tensor of the task", b->name);
    *element = cg_dtype_bytes(b->dtype ? b->dtype : RUNG_U8);
    return temp_of(h, temps, b);
}

static const char *pointer_text(struct cg_host *h, struct cg_temps *temps, const struct cg_value *v)
{
    int64_t element, zero;
    const char *name = buffer_name(h, temps, v->buffer, &element);
    if (cg_sym_constant(v->sym, &zero) && zero == 0)
        return name;
    const struct cg_sym *offset = cg_sym(h->pool, SYM_DIV, v->sym, cg_sym_int(h->pool, element));
    if (!offset) {
        cg_problem(h, "the offset into `%s` is no number of elements", name);
        return name;
    }
    const char *text = cg_sym_text(h->pool, offset);
    return cg_format(h->pool, strpbrk(text, "<>=") ? "%s + (%s)" : "%s + %s", name, text);
}

/* A literal that a parameter of the task also has, under a name that says so, is that parameter. */
static const char *named_literal(struct cg_host *h, const struct cg_sym *s, const char *param)
{
    const char *plain = cg_plain_name(h->pool, param);
    for (uint32_t i = 0; s->op == SYM_REAL && i < h->task->n_params; i++) {
        const struct rung_param *p = &h->task->params[i];
        double gap = p->f64 - s->f, size = p->f64 < 0 ? -p->f64 : p->f64;
        bool same = p->dtype == RUNG_F64 && gap <= 1e-6 * size && -gap <= 1e-6 * size;
        if (same && !strncmp(cg_plain_name(h->pool, p->name), plain, 3))
            return p->name;
    }
    return NULL;
}

static const char *argument(struct cg_host *h, struct cg_temps *temps, const struct cg_launch *s,
                            uint32_t k)
{
    const struct cg_value *v = &s->args[k];
    const char *param = k < s->item->n_params ? s->item->params[k].name : "";
    if (v->kind == CG_POINTER)
        return pointer_text(h, temps, v);
    const struct cg_sym *sym = v->kind == CG_NUM ? v->sym : NULL;
    if (!sym) {
        cg_problem(h, "the argument `%s` of `%s` is no number", param, s->item->name);
        return "0";
    }
    const char *named = named_literal(h, sym, param);
    if (named)
        return named;
    if (sym->op == SYM_MUL && sym->a->op == SYM_REAL && sym->a->f == 1.0)
        sym = sym->b; /* an integer that was cast */
    return cg_sym_text(h->pool, sym);
}

static const char *size_text(struct cg_host *h, const struct cg_sym *s)
{
    return s ? cg_sym_text(h->pool, s) : "1";
}

static void launch_line(struct cg_host *h, struct cg_temps *temps, const struct cg_launch *s,
                        struct cg_line *line)
{
    for (int i = 0; i < 3; i++) {
        line->fields[i] = size_text(h, s->grid[i]);
        line->fields[3 + i] = size_text(h, s->block[i]);
        line->fields[6 + i] = size_text(h, s->cluster[i]);
        line->clustered |= s->cluster[i] && strcmp(line->fields[6 + i], "1") != 0;
    }
    line->fields[FIELD_SHARED] = s->shared ? cg_sym_text(h->pool, s->shared) : "0";
    for (uint32_t k = 0; k < s->n_args; k++)
        line->fields[FIELD_ARGS + k] = argument(h, temps, s, k);
    line->n_fields = FIELD_ARGS + s->n_args;
    line->cooperative = s->cooperative;
}

/* zero and symbol: field 0 is the memory, field 1 a count of elements or "". */
static void memory_line(struct cg_host *h, struct cg_temps *temps, const struct cg_launch *s,
                        struct cg_line *line)
{
    int64_t element, zero;
    const struct cg_value *v = &s->args[0];
    const struct cg_buffer *b = cg_real_buffer(v->buffer);
    const char *name = buffer_name(h, temps, v->buffer, &element);
    bool whole = !s->bytes || cg_sym_same(s->bytes, b->bytes);
    bool at_start = cg_sym_constant(v->sym, &zero) && zero == 0;
    line->fields[0] = name;
    line->fields[1] = "";
    line->n_fields = 2;
    if (s->kind == CG_SYMBOL) {
        line->fields[0] = pointer_text(h, temps, v);
        const struct cg_sym *count =
            whole ? NULL : cg_sym(h->pool, SYM_DIV, s->bytes, cg_sym_int(h->pool, element));
        line->fields[1] = count ? cg_sym_text(h->pool, count) : "";
    } else if (!at_start) {
        cg_problem(h, "`%s` is cleared in part; plans clear the whole", name);
    } else if (b->tensor >= 0 && (h->task->tensors[b->tensor].role == RUNG_ROLE_INPUT ||
                                  h->task->tensors[b->tensor].role == RUNG_ROLE_WEIGHT)) {
        cg_problem(h, "the input `%s` is cleared", name);
    } else if (!whole) {
        cg_note(h, "`%s` is cleared as a whole.", name);
    }
}

struct cg_lines cg_emit(struct cg_host *h, struct cg_temps *temps)
{
    struct cg_lines out = {.list = cg_take(h->pool, (h->n_steps + 1) * sizeof(*out.list))};
    for (uint32_t i = 0; i < h->n_steps; i++) {
        const struct cg_launch *s = &h->steps[i];
        struct cg_line *line = &out.list[out.n++];
        line->kind = s->kind;
        line->name = s->name ? s->name : "";
        if (s->kind == CG_LAUNCH)
            launch_line(h, temps, s, line);
        else
            memory_line(h, temps, s, line);
    }
    return out;
}

/* ---- Text ----------------------------------------------------------------------------------- */

/* "(x, y)" of three fields; ones at the end are left out. */
static const char *triple(struct cg_host *h, const char *const *f)
{
    if (strcmp(f[2], "1") != 0)
        return cg_format(h->pool, "(%s, %s, %s)", f[0], f[1], f[2]);
    if (strcmp(f[1], "1") != 0)
        return cg_format(h->pool, "(%s, %s)", f[0], f[1]);
    return cg_format(h->pool, "(%s)", f[0]);
}

static const char *line_text(struct cg_host *h, const struct cg_line *l)
{
    struct cg_pool *p = h->pool;
    const char *text = "";
    if (l->kind == CG_ZERO)
        return cg_format(p, "//@ zero %s", l->fields[0]);
    if (l->kind == CG_SYMBOL)
        return cg_format(p, "//@ symbol %s = %s%s%s", l->name, l->fields[0],
                         l->fields[1][0] ? " count " : "", l->fields[1]);
    text = cg_format(p, "//@ launch %s grid=%s block=%s", l->name, triple(h, l->fields),
                     triple(h, l->fields + 3));
    if (strcmp(l->fields[FIELD_SHARED], "0") != 0)
        text = cg_format(p, "%s shared=(%s)", text, l->fields[FIELD_SHARED]);
    if (l->clustered)
        text = cg_format(p, "%s cluster=%s", text, triple(h, l->fields + 6));
    if (l->cooperative)
        text = cg_format(p, "%s cooperative", text);
    text = cg_format(p, "%s args=(", text);
    for (uint32_t k = FIELD_ARGS; k < l->n_fields; k++)
        text = cg_format(p, "%s%s%s", text, k > FIELD_ARGS ? ", " : "", l->fields[k]);
    return cg_format(p, "%s)", text);
}

const char *cg_lines_text(struct cg_host *h, const struct cg_temps *temps,
                          const struct cg_lines *lines)
{
    const char *text = "";
    for (uint32_t i = 0; i < temps->n; i++)
        text = cg_format(h->pool, "%s//@ temp %s %s [%s]\n", text, temps->list[i].name,
                         rung_dtype_name(temps->list[i].dtype), size_text(h, temps->list[i].count));
    for (uint32_t i = 0; i < lines->n; i++) {
        const struct cg_line *l = &lines->list[i];
        text = cg_format(h->pool, "%s%s", text, line_text(h, l));
        if (l->when && l->kind == CG_LAUNCH)
            text = cg_format(h->pool, "%s when=(%s)", text, cg_sym_text(h->pool, l->when));
        text = cg_format(h->pool, "%s\n", text);
    }
    return text;
}
