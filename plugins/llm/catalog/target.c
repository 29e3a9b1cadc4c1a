/* From a prompt's task to the kernels of the catalog that serve it. */
#include "target.h"
#include "signature.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DIM_TEXT = 200, MIN_ALIGNMENT = 16 /* bytes: the kernels read float4 */ };

static bool same(struct llm_span a, struct llm_span b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

bool target_refuse(struct target *target, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(target->reason, sizeof target->reason, format, args);
    va_end(args);
    return false;
}

const struct prompt_tensor *target_tensor(const struct prompt *prompt, struct llm_span name)
{
    for (uint32_t i = 0; i < prompt->n_tensors; ++i)
        if (same(prompt->tensors[i].name, name))
            return &prompt->tensors[i];
    return NULL;
}

/* Expressions go into plan lines: only what the plan language has, in one line. */
static bool plain_dim(struct llm_span dim)
{
    if (dim.len == 0 || dim.len > MAX_DIM_TEXT)
        return false;
    for (size_t i = 0; i < dim.len; ++i)
        if (!isalnum((unsigned char)dim.ptr[i]) && !memchr("_ +-*/%()", dim.ptr[i], 9))
            return false;
    return true;
}

static void put_dim(struct llm_text *text, struct llm_span dim)
{
    bool name = true;
    for (size_t i = 0; i < dim.len; ++i)
        name &= isalnum((unsigned char)dim.ptr[i]) || dim.ptr[i] == '_';
    llm_text_printf(text, name ? "%.*s" : "(%.*s)", (int)dim.len, dim.ptr);
}

void target_put_product(struct llm_text *text, const struct prompt_tensor *tensor, uint32_t from,
                        uint32_t to)
{
    if (from == to) {
        llm_text_puts(text, "1");
        return;
    }
    llm_text_puts(text, to - from > 1 ? "(" : "");
    for (uint32_t i = from; i < to; ++i) {
        llm_text_puts(text, i > from ? " * " : "");
        put_dim(text, tensor->dims[i]);
    }
    llm_text_puts(text, to - from > 1 ? ")" : "");
}

static bool same_shape(const struct prompt_tensor *a, const struct prompt_tensor *b)
{
    if (a->n_dims != b->n_dims)
        return false;
    for (uint32_t i = 0; i < a->n_dims; ++i)
        if (!same(a->dims[i], b->dims[i]))
            return false;
    return true;
}

static void clear_texts(struct target *target)
{
    target->n_inputs = 0;
    target->n_scalars = 0;
    llm_text_free(&target->elements);
    llm_text_free(&target->helpers);
    llm_text_free(&target->lets);
    llm_text_free(&target->expr);
}

/* The output that the last statement gives, when it is the only one. */
static const struct prompt_tensor *only_output(const struct prompt *prompt, struct target *target)
{
    const struct prompt_tensor *y = NULL;
    for (uint32_t i = 0; i < prompt->n_tensors; ++i) {
        if (!llm_span_is(prompt->tensors[i].role, "output"))
            continue;
        if (y) {
            target_refuse(target, "It has chains only with one output.");
            return NULL;
        }
        y = &prompt->tensors[i];
    }
    const struct graph *graph = &target->graph;
    if (y && same(graph->statements[graph->n_statements - 1].target, y->name))
        return y;
    target_refuse(target, "It has chains only whose last statement gives the output.");
    return NULL;
}

static bool read_elementwise(const struct prompt *prompt, struct target *target)
{
    const struct prompt_tensor *y = only_output(prompt, target);
    if (!y)
        return false;
    target->output = y->name;
    if (!target_emit(prompt, &target->graph, NULL, target))
        return false;
    if (!llm_span_is(y->dtype, "f32"))
        return target_refuse(target, "It has chains only in f32.");
    for (uint32_t i = 0; i < target->n_inputs; ++i) {
        const struct prompt_tensor *x = target_tensor(prompt, target->inputs[i]);
        if (!llm_span_is(x->dtype, "f32"))
            return target_refuse(target, "It has chains for f32 only; %.*s is %.*s.",
                                 (int)x->name.len, x->name.ptr,
                                 (int)(x->dtype.len < 16 ? x->dtype.len : 16), x->dtype.ptr);
        if (!same_shape(x, y))
            return target_refuse(target,
                                 "It has chains only without broadcasting; %.*s has another shape.",
                                 (int)x->name.len, x->name.ptr);
    }
    target_put_product(&target->elements, y, 0, y->n_dims);
    return true;
}

/* What every kernel of the catalog takes for granted. */
static bool check_tensors(const struct prompt *prompt, struct target *target)
{
    if (prompt->n_tensors == 0)
        return target_refuse(target, "It finds no tensors in the task.");
    for (uint32_t i = 0; i < prompt->n_tensors; ++i) {
        const struct prompt_tensor *tensor = &prompt->tensors[i];
        if (tensor->alignment && tensor->alignment < MIN_ALIGNMENT)
            return target_refuse(target, "Its kernels need tensors that are aligned to %d bytes.",
                                 MIN_ALIGNMENT);
        if (tensor->strided)
            return target_refuse(target, "It has kernels only of dense tensors; %.*s has strides.",
                                 (int)tensor->name.len, tensor->name.ptr);
        for (uint32_t d = 0; d < tensor->n_dims; ++d)
            if (!plain_dim(tensor->dims[d]))
                return target_refuse(target, "It can't read the shape of %.*s.",
                                     (int)tensor->name.len, tensor->name.ptr);
    }
    return true;
}

/* Fills the texts of one form; false, with a reason where it is an elementwise one, when the task
 * is another. */
static bool bind_form(const struct prompt *prompt, const struct form *form, struct target *target)
{
    clear_texts(target);
    target->match.n = 0;
    target->match.core = NULL;
    if (!form->tensors)
        return read_elementwise(prompt, target);
    char before[sizeof target->reason];
    memcpy(before, target->reason, sizeof before);
    target->element = strstr(form->tensors, " f16") ? "__half" : "float";
    const bool fits =
        match_form(form, prompt, &target->graph, &target->match) &&
        (!target->match.core || target_emit(prompt, &target->graph, target->match.core, target));
    memcpy(target->reason, before, sizeof before);
    return fits;
}

/* ---- why there is nothing ---- */

static bool has_operator(const struct store *store, struct llm_span name)
{
    char operator[64];
    for (uint32_t i = 0; i < store->n; ++i)
        for (uint32_t f = 0; f < store->kernels[i].n_forms; ++f)
            if (match_operator(&store->kernels[i].forms[f], operator, sizeof operator) &&
                signature_means(name, operator))
                return true;
    return false;
}

/* "a, b, c": each operator that some form has, once. */
static void list_operators(const struct store *store, struct llm_text *list)
{
    char operator[64], item[80];
    for (uint32_t i = 0; i < store->n; ++i)
        for (uint32_t f = 0; f < store->kernels[i].n_forms; ++f) {
            if (!match_operator(&store->kernels[i].forms[f], operator, sizeof operator))
                continue;
            snprintf(item, sizeof item, " %s,", operator);
            if (!list->ptr || !strstr(list->ptr, item))
                llm_text_puts(list, item);
        }
}

/* The forms that have this operator outermost. */
static void list_forms(const struct store *store, struct llm_span name, struct llm_text *list)
{
    char operator[64];
    for (uint32_t i = 0; i < store->n; ++i)
        for (uint32_t f = 0; f < store->kernels[i].n_forms; ++f) {
            const struct form *form = &store->kernels[i].forms[f];
            if (!form->tensors || !match_operator(form, operator, sizeof operator) ||
                !signature_means(name, operator))
                continue;
            llm_text_printf(list, "%s`%s` with %s", list->len ? "; " : "", form->graph,
                            form->tensors);
        }
}

/* Replaces a reason that speaks of elementwise chains only, when the graph has other operators. */
static void explain(const struct store *store, struct target *target)
{
    const struct graph_node *known = NULL;
    struct llm_text list = {0};
    const struct graph *graph = &target->graph;
    for (uint32_t i = 0; i < graph->n_nodes; ++i) {
        const struct graph_node *node = &graph->nodes[i];
        if (node->kind != GRAPH_CALL || target_is_function(node->name))
            continue;
        if (has_operator(store, node->name)) {
            known = node;
            continue;
        }
        list_operators(store, &list);
        target->names_operator = true;
        if (list.len)
            list.ptr[list.len - 1] = '.';
        target_refuse(target, "The catalog has no kernel for %.*s; it has:%s", (int)node->name.len,
                      node->name.ptr, list.ptr ? list.ptr : "nothing");
        llm_text_free(&list);
        return;
    }
    if (!known)
        return;
    list_forms(store, known->name, &list);
    target->names_operator = true;
    target_refuse(target, "The catalog has no kernel for this form of %.*s; it has %s.",
                  (int)known->name.len, known->name.ptr, list.ptr ? list.ptr : "none");
    llm_text_free(&list);
}

/* ---- */

void target_read(const struct prompt *prompt, const struct store *store, struct target *target)
{
    const char *problem = NULL;
    memset(target, 0, sizeof *target);
    if (!graph_parse(prompt->graph, &target->graph, &problem)) {
        target_refuse(target, "It can't read the task: %s.", problem);
        return;
    }
    if (!check_tensors(prompt, target))
        return;
    for (uint32_t i = 0; i < store->n; ++i) {
        const struct kernel *kernel = &store->kernels[i];
        const struct kernel *owner = store_forms(store, kernel);
        if (target->family && strcmp(target->family, kernel->family) != 0)
            continue;
        for (uint32_t f = 0; f < owner->n_forms && !target->form[i]; ++f)
            if (bind_form(prompt, &owner->forms[f], target))
                target->form[i] = (uint8_t)(f + 1);
        if (target->form[i])
            target->family = kernel->family;
    }
    if (!target->family)
        explain(store, target);
}

bool target_has(const struct target *target, const struct store *store, const struct kernel *kernel)
{
    return target->form[kernel - store->kernels] != 0;
}

void target_bind(struct target *target, const struct prompt *prompt, const struct store *store,
                 const struct kernel *kernel)
{
    const uint8_t form = target->form[kernel - store->kernels];
    bind_form(prompt, &store_forms(store, kernel)->forms[form - 1], target);
}

void target_bind_itself(struct target *target, const struct store *store,
                        const struct kernel *kernel)
{
    const struct form *form = &store_forms(store, kernel)->forms[0];
    static const struct llm_span x = {"x", 1}, y = {"y", 1};
    clear_texts(target);
    match_itself(form, &target->match);
    target->output = y;
    llm_text_puts(&target->elements, "n");
    llm_text_puts(&target->expr, "v0");
    if (!form->tensors)
        target->inputs[target->n_inputs++] = x;
}

void target_free(struct target *target)
{
    clear_texts(target);
}
