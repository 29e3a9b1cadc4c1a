/* From a prompt's task to an operator of the catalog. */
#include "target.h"
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
    target->family = NULL;
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

static bool is_axis_last(const struct graph_node *axis, bool minus, uint32_t n_dims)
{
    return axis->kind == GRAPH_NUMBER && axis->number == (minus ? 1.0 : (double)n_dims - 1.0);
}

/* y = softmax(x, axis=1) over a matrix. */
static bool read_softmax(const struct prompt *prompt, const struct graph *graph,
                         struct target *target)
{
    const struct graph_statement *statement = &graph->statements[0];
    const struct graph_node *call = &graph->nodes[statement->root];
    const struct graph_node *input = graph_arg(graph, call, 0, "x");
    const struct graph_node *axis = graph_arg(graph, call, 1, "axis");
    if (!axis)
        axis = graph_arg(graph, call, -1, "dim");
    if (graph->n_statements != 1 || !input || input->kind != GRAPH_NAME)
        return target_refuse(target, "It has softmax only alone, of an input tensor.");
    const struct prompt_tensor *x = target_tensor(prompt, input->name);
    const struct prompt_tensor *y = target_tensor(prompt, statement->target);
    if (!x || !y || !llm_span_is(x->role, "input") || !llm_span_is(y->role, "output"))
        return target_refuse(target,
                             "It has softmax only from an input tensor to an output tensor.");
    if (x->n_dims != 2)
        return target_refuse(target, "It has softmax only of matrices, not of %u dimensions.",
                             x->n_dims);
    const bool minus = axis && axis->kind == GRAPH_MINUS;
    const struct graph_node *number = minus ? &graph->nodes[axis->args[0]] : axis;
    if (call->n_args > 2 || !number || !is_axis_last(number, minus, x->n_dims))
        return target_refuse(target, "It has softmax only over the last axis.");
    target->inputs[0] = x->name;
    target->n_inputs = 1;
    target->output = y->name;
    put_dim(&target->rows, x->dims[0]);
    put_dim(&target->cols, x->dims[1]);
    target->family = "softmax";
    return true;
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

static void put_elements(struct llm_text *text, const struct prompt_tensor *tensor)
{
    llm_text_puts(text, tensor->n_dims > 1 ? "(" : tensor->n_dims == 0 ? "1" : "");
    for (uint32_t i = 0; i < tensor->n_dims; ++i) {
        llm_text_puts(text, i ? " * " : "");
        put_dim(text, tensor->dims[i]);
    }
    llm_text_puts(text, tensor->n_dims > 1 ? ")" : "");
}

static bool read_elementwise(const struct prompt *prompt, const struct graph *graph,
                             struct target *target)
{
    const struct prompt_tensor *y = NULL;
    for (uint32_t i = 0; i < prompt->n_tensors; ++i) {
        if (!llm_span_is(prompt->tensors[i].role, "output"))
            continue;
        if (y)
            return target_refuse(target, "It has chains only with one output.");
        y = &prompt->tensors[i];
    }
    if (!y || !same(graph->statements[graph->n_statements - 1].target, y->name))
        return target_refuse(target, "It has chains only whose last statement gives the output.");
    target->output = y->name;
    if (!target_emit(prompt, graph, target))
        return false;
    for (uint32_t i = 0; i < target->n_inputs; ++i)
        if (!same_shape(target_tensor(prompt, target->inputs[i]), y))
            return target_refuse(target,
                                 "It has chains only without broadcasting; %.*s has another shape.",
                                 (int)target->inputs[i].len, target->inputs[i].ptr);
    put_elements(&target->elements, y);
    target->family = "elementwise";
    return true;
}

/* What every kernel of the catalog takes for granted. */
static bool check_tensors(const struct prompt *prompt, struct target *target)
{
    if (prompt->n_tensors == 0)
        return target_refuse(target, "It finds no tensors in the task.");
    for (uint32_t i = 0; i < prompt->n_tensors; ++i) {
        const struct prompt_tensor *tensor = &prompt->tensors[i];
        if (!llm_span_is(tensor->dtype, "f32"))
            return target_refuse(target, "It has kernels for f32 only; %.*s is %.*s.",
                                 (int)tensor->name.len, tensor->name.ptr,
                                 (int)(tensor->dtype.len < 16 ? tensor->dtype.len : 16),
                                 tensor->dtype.ptr);
        if (tensor->alignment && tensor->alignment < MIN_ALIGNMENT)
            return target_refuse(target, "Its kernels need tensors that are aligned to %d bytes.",
                                 MIN_ALIGNMENT);
        for (uint32_t d = 0; d < tensor->n_dims; ++d)
            if (!plain_dim(tensor->dims[d]))
                return target_refuse(target, "It can't read the shape of %.*s.",
                                     (int)tensor->name.len, tensor->name.ptr);
    }
    return true;
}

void target_read(const struct prompt *prompt, struct target *target)
{
    struct graph graph;
    const char *problem = NULL;
    *target = (struct target){0};
    if (!graph_parse(prompt->graph, &graph, &problem)) {
        target_refuse(target, "It can't read the task: %s.", problem);
        return;
    }
    if (!check_tensors(prompt, target))
        return;
    const struct graph_node *root = &graph.nodes[graph.statements[0].root];
    if (root->kind == GRAPH_CALL && llm_span_is(root->name, "softmax"))
        read_softmax(prompt, &graph, target);
    else
        read_elementwise(prompt, &graph, target);
}

void target_free(struct target *target)
{
    llm_text_free(&target->rows);
    llm_text_free(&target->cols);
    llm_text_free(&target->elements);
    llm_text_free(&target->helpers);
    llm_text_free(&target->lets);
    llm_text_free(&target->expr);
}
