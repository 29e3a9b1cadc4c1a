#include "base/diag.h"
#include "base/die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_item(struct rung_diags *diags, const char *file, int line, const char *message)
{
    diags->items = rung_xrealloc(diags->items, (diags->n + 1) * sizeof *diags->items);
    diags->items[diags->n++] = (struct rung_diag_item){
        .file = file ? rung_xstrdup(file) : NULL, .line = line, .message = rung_xstrdup(message)};
}

void rung_diag(struct rung_diags *diags, const char *file, int line, const char *format, ...)
{
    if (file && line > 0)
        rung_buf_printf(&diags->text, "%s:%d: ", file, line);
    else if (file)
        rung_buf_printf(&diags->text, "%s: ", file);
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    rung_buf_puts(&diags->text, message);
    rung_buf_putc(&diags->text, '\n');
    add_item(diags, file, line, message);
}

void rung_diag_unknown(struct rung_diags *diags, const struct rung_node *group, const char *what,
                       const char *const *known)
{
    size_t n = 0;
    struct rung_buf all = {0};
    for (; known[n]; n++)
        rung_buf_printf(&all, "%s%s", n ? ", " : "", known[n]);
    for (const struct rung_node *c = group->first; c; c = c->next) {
        if (c->used || !c->name)
            continue;
        const char *near = rung_nearest(c->name, known, n);
        if (near)
            RUNG_DIAG_AT(diags, c, "%s has no setting '%s'; did you mean '%s'? (it knows: %s)",
                         what, c->name, near, rung_buf_text(&all));
        else
            RUNG_DIAG_AT(diags, c, "%s has no setting '%s' (it knows: %s)", what, c->name,
                         rung_buf_text(&all));
    }
    rung_buf_free(&all);
}

void rung_diags_free(struct rung_diags *diags)
{
    rung_buf_free(&diags->text);
    for (size_t i = 0; i < diags->n; i++) {
        free(diags->items[i].file);
        free(diags->items[i].message);
    }
    free(diags->items);
    *diags = (struct rung_diags){0};
}
