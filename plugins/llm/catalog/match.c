/* Unifying a form with a task's graph and shapes; see match.h. */
#include "match.h"
#include "shape.h"
#include "signature.h"
#include "target.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct matcher {
    const struct form *form;
    const struct graph *pattern;
    const struct prompt *prompt;
    const struct graph *task;
    struct match *out;
};

static bool same(struct llm_span a, struct llm_span b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

const char *match_text(const struct match *match, struct llm_span name)
{
    for (uint32_t i = 0; i < match->n; ++i)
        if (llm_span_is(name, match->bindings[i].name))
            return match->bindings[i].text;
    return NULL;
}

bool match_bind(struct match *match, struct llm_span name, struct llm_span text)
{
    const char *known = match_text(match, name);
    if (known)
        return llm_span_is(text, known);
    struct binding *binding = &match->bindings[match->n];
    if (match->n == MATCH_MAX_BINDINGS || name.len >= sizeof binding->name ||
        text.len >= sizeof binding->text)
        return false;
    memcpy(binding->name, name.ptr, name.len);
    binding->name[name.len] = 0;
    memcpy(binding->text, text.ptr, text.len);
    binding->text[text.len] = 0;
    match->n++;
    return true;
}

/* ---- attributes ---- */

/* A number as the plan language and CUDA C both read it. */
static void put_number(double number, char *text, size_t size)
{
    if (number == floor(number) && fabs(number) < 1e15)
        snprintf(text, size, "%.0f", number);
    else
        snprintf(text, size, "%.17g", number);
}

static bool is_size(const struct prompt *prompt, struct llm_span name)
{
    for (uint32_t i = 0; i < prompt->n_params; ++i)
        if (same(prompt->params[i], name))
            return true;
    return prompt_has_dim(prompt, name);
}

/* The text of an attribute that the task gives; false for what is no number, dim or parameter. */
static bool attribute_text(const struct matcher *m, const struct graph_node *node, char *text,
                           size_t size)
{
    const bool minus = node->kind == GRAPH_MINUS;
    if (minus)
        node = &m->task->nodes[node->args[0]];
    if (node->kind == GRAPH_NUMBER) {
        put_number(minus ? -node->number : node->number, text, size);
        return true;
    }
    if (minus || node->kind != GRAPH_NAME)
        return false;
    if (llm_span_is(node->name, "true") || llm_span_is(node->name, "True"))
        return snprintf(text, size, "1") > 0;
    if (llm_span_is(node->name, "false") || llm_span_is(node->name, "False"))
        return snprintf(text, size, "0") > 0;
    return is_size(m->prompt, node->name) &&
           snprintf(text, size, "%.*s", (int)node->name.len, node->name.ptr) < (int)size;
}

/* The value of parameter `param` of the task's call, given or standard; false when it has none. */
static bool value_of(const struct matcher *m, const struct signature *signature,
                     const struct graph_node *call, uint32_t param, char *text, size_t size)
{
    const struct graph_node *given = signature_arg(signature, m->task, call, param);
    const char *standard = signature->params[param].standard;
    if (given)
        return attribute_text(m, given, text, size);
    if (!standard)
        return false;
    if (standard[0] != '=')
        return snprintf(text, size, "%s", standard) < (int)size;
    const struct graph_node *other = NULL;
    for (uint32_t i = 0; !other && i < SIGNATURE_MAX_PARAMS && signature->params[i].name; ++i)
        if (strcmp(signature->params[i].name, standard + 1) == 0)
            other = signature_arg(signature, m->task, call, i);
    return other && attribute_text(m, other, text, size);
}

static bool match_attribute(const struct matcher *m, const struct signature *signature,
                            const struct graph_node *wanted, const struct graph_node *call,
                            uint32_t param)
{
    char text[MATCH_MAX_TEXT], literal[64];
    if (!value_of(m, signature, call, param, text, sizeof text))
        return false;
    if (!wanted)
        return signature->params[param].standard &&
               strcmp(signature->params[param].standard, text) == 0;
    if (wanted->kind == GRAPH_NAME)
        return match_bind(m->out, wanted->name, (struct llm_span){text, strlen(text)});
    put_number(wanted->number, literal, sizeof literal);
    return strcmp(literal, text) == 0;
}

/* ---- graphs ---- */

static bool match_node(const struct matcher *m, const struct graph_node *wanted,
                       const struct graph_node *node, uint32_t statement);

/* Follows names of earlier statements to what they stand for. */
static const struct graph_node *resolve(const struct matcher *m, const struct graph_node *node,
                                        uint32_t *statement)
{
    for (uint32_t i = *statement; node->kind == GRAPH_NAME && i-- > 0;) {
        if (!same(m->task->statements[i].target, node->name))
            continue;
        node = &m->task->nodes[m->task->statements[i].root];
        *statement = i;
    }
    return node;
}

static bool match_tensor(const struct matcher *m, struct llm_span wanted,
                         const struct graph_node *node)
{
    const struct prompt_tensor *tensor =
        node->kind == GRAPH_NAME ? target_tensor(m->prompt, node->name) : NULL;
    return tensor && (llm_span_is(tensor->role, "input") || llm_span_is(tensor->role, "weight")) &&
           match_bind(m->out, wanted, tensor->name);
}

static bool match_call(const struct matcher *m, const struct graph_node *wanted,
                       const struct graph_node *call, uint32_t statement)
{
    const struct signature *signature = signature_find(wanted->name);
    if (call->kind != GRAPH_CALL || !signature || signature_find(call->name) != signature ||
        !signature_fits(signature, call))
        return false;
    for (uint32_t i = 0; i < SIGNATURE_MAX_PARAMS && signature->params[i].name; ++i) {
        const struct graph_node *arg = signature_arg(signature, m->pattern, wanted, i);
        const struct graph_node *given = signature_arg(signature, m->task, call, i);
        const bool attribute =
            arg && (arg->kind == GRAPH_NUMBER ||
                    (arg->kind == GRAPH_NAME && !shape_lists(m->form->tensors, arg->name)));
        bool fits = true;
        if (attribute || (!arg && given))
            fits = match_attribute(m, signature, arg, call, i);
        else if (arg)
            fits = given && match_node(m, arg, given, statement);
        if (!fits)
            return false;
    }
    return true;
}

/* Both orders count for + and *. */
static bool match_binary(const struct matcher *m, const struct graph_node *wanted,
                         const struct graph_node *node, uint32_t statement)
{
    if (node->kind != GRAPH_BINARY || node->op != wanted->op)
        return false;
    const uint32_t n = m->out->n;
    for (uint32_t turn = 0; turn < (node->op == '+' || node->op == '*' ? 2u : 1u); ++turn) {
        m->out->n = n;
        if (match_node(m, &m->pattern->nodes[wanted->args[0]], &m->task->nodes[node->args[turn]],
                       statement) &&
            match_node(m, &m->pattern->nodes[wanted->args[1]],
                       &m->task->nodes[node->args[1 - turn]], statement))
            return true;
    }
    return false;
}

static bool match_node(const struct matcher *m, const struct graph_node *wanted,
                       const struct graph_node *node, uint32_t statement)
{
    node = resolve(m, node, &statement);
    switch (wanted->kind) {
    case GRAPH_NAME:
        return match_tensor(m, wanted->name, node);
    case GRAPH_CALL:
        return match_call(m, wanted, node, statement);
    case GRAPH_BINARY:
        return match_binary(m, wanted, node, statement);
    default:
        return false; /* match_check refused it */
    }
}

static bool is_chain(const struct graph_node *node)
{
    return node->kind == GRAPH_CALL && llm_span_is(node->name, "chain") && node->n_args == 1;
}

/* Inside a chain: the first node of the task, in the order in which it is written, that fits. */
static bool match_core(const struct matcher *m, const struct graph_node *wanted)
{
    const uint32_t n = m->out->n;
    uint32_t statement = 0;
    for (uint32_t i = 0; i < m->task->n_nodes; ++i) {
        const struct graph_node *node = &m->task->nodes[i];
        while (i > m->task->statements[statement].root)
            ++statement;
        m->out->n = n;
        if (node->kind != GRAPH_NAME && match_node(m, wanted, node, statement)) {
            m->out->core = node;
            return true;
        }
    }
    return false;
}

/* The task's only output is what its last statement gives. */
static bool match_output(const struct matcher *m)
{
    const struct llm_span last = m->task->statements[m->task->n_statements - 1].target;
    for (uint32_t i = 0; i < m->prompt->n_tensors; ++i) {
        const struct prompt_tensor *tensor = &m->prompt->tensors[i];
        const bool output =
            !llm_span_is(tensor->role, "input") && !llm_span_is(tensor->role, "weight");
        if (output && (!llm_span_is(tensor->role, "output") || !same(tensor->name, last)))
            return false;
    }
    const struct prompt_tensor *output = target_tensor(m->prompt, last);
    return output && llm_span_is(output->role, "output") &&
           match_bind(m->out, m->pattern->statements[0].target, last);
}

bool match_form(const struct form *form, const struct prompt *prompt, const struct graph *task,
                struct match *out)
{
    struct graph pattern;
    const char *problem = NULL;
    const struct matcher m = {form, &pattern, prompt, task, out};
    *out = (struct match){.n = 0};
    if (!form->tensors ||
        !graph_parse((struct llm_span){form->graph, strlen(form->graph)}, &pattern, &problem))
        return false;
    const struct graph_node *root = &pattern.nodes[pattern.statements[0].root];
    const uint32_t last = task->n_statements - 1;
    const bool fits = is_chain(root)
                          ? match_core(&m, &pattern.nodes[root->args[0]])
                          : match_node(&m, root, &task->nodes[task->statements[last].root], last);
    return fits && match_output(&m) && shape_match(form->tensors, prompt, out) &&
           shape_constants(form->let, out);
}

/* ---- patterns ---- */

static bool wrong(char *problem, size_t size, const char *what, struct llm_span name)
{
    snprintf(problem, size, "%s %.*s", what, (int)(name.len < 40 ? name.len : 40), name.ptr);
    return false;
}

static bool check_node(const struct form *form, const struct graph *pattern, uint16_t at,
                       char *problem, size_t size)
{
    const struct graph_node *node = &pattern->nodes[at];
    if (node->kind == GRAPH_NAME)
        return shape_lists(form->tensors, node->name) ||
               wrong(problem, size, "'tensors' lacks", node->name);
    if (node->kind != GRAPH_CALL && node->kind != GRAPH_BINARY)
        return wrong(problem, size, "'graph' has more than calls, tensors and attributes",
                     (struct llm_span){"", 0});
    const struct signature *signature = signature_find(node->name);
    if (node->kind == GRAPH_CALL && (!signature || !signature_fits(signature, node)))
        return wrong(problem, size,
                     "'graph' has an operator or argument that is not known:", node->name);
    for (uint32_t i = 0; i < node->n_args; ++i) {
        const struct graph_node *arg = &pattern->nodes[node->args[i]];
        const bool attribute = node->kind == GRAPH_CALL && node->keywords[i].len &&
                               (arg->kind == GRAPH_NAME || arg->kind == GRAPH_NUMBER);
        if (!attribute && !check_node(form, pattern, node->args[i], problem, size))
            return false;
    }
    return true;
}

bool match_check(const struct form *form, char *problem, size_t size)
{
    struct graph pattern;
    const char *fault = NULL;
    const struct llm_span text = {form->graph, strlen(form->graph)};
    if (!form->tensors) /* elementwise chains are no pattern */
        return llm_span_is(text, "elementwise") ||
               wrong(problem, size, "'tensors' must follow 'graph'", (struct llm_span){"", 0});
    if (!graph_parse(text, &pattern, &fault))
        return wrong(problem, size, fault, (struct llm_span){"", 0});
    const struct llm_span target = pattern.statements[0].target;
    const struct graph_node *root = &pattern.nodes[pattern.statements[0].root];
    const uint16_t inner = is_chain(root) ? root->args[0] : pattern.statements[0].root;
    if (pattern.n_statements != 1)
        return wrong(problem, size, "'graph' has a second statement", (struct llm_span){"", 0});
    if (!shape_lists(form->tensors, target))
        return wrong(problem, size, "'tensors' lacks", target);
    return check_node(form, &pattern, inner, problem, size) &&
           shape_check(form->tensors, form->let, problem, size);
}

void match_itself(const struct form *form, struct match *out)
{
    struct graph pattern;
    const char *problem = NULL;
    *out = (struct match){.n = 0};
    if (!form->tensors ||
        !graph_parse((struct llm_span){form->graph, strlen(form->graph)}, &pattern, &problem))
        return;
    for (uint32_t i = 0; i < pattern.n_nodes; ++i) {
        const struct graph_node *call = &pattern.nodes[i];
        const struct signature *signature =
            call->kind == GRAPH_CALL ? signature_find(call->name) : NULL;
        for (uint32_t p = 0; signature && p < SIGNATURE_MAX_PARAMS && signature->params[p].name;
             ++p) {
            const struct graph_node *arg = signature_arg(signature, &pattern, call, p);
            const char *standard = signature->params[p].standard;
            if (!arg || arg->kind != GRAPH_NAME || shape_lists(form->tensors, arg->name))
                continue;
            standard = standard && standard[0] != '=' ? standard : "1";
            match_bind(out, arg->name, (struct llm_span){standard, strlen(standard)});
        }
    }
    shape_itself(form->tensors, out);
    shape_constants(form->let, out);
}

bool match_operator(const struct form *form, char *name, size_t size)
{
    struct graph pattern;
    const char *problem = NULL;
    if (!form->tensors ||
        !graph_parse((struct llm_span){form->graph, strlen(form->graph)}, &pattern, &problem)) {
        snprintf(name, size, "elementwise chains");
        return true;
    }
    const struct graph_node *node = &pattern.nodes[pattern.statements[0].root];
    if (is_chain(node))
        node = &pattern.nodes[node->args[0]];
    snprintf(name, size, "%.*s", (int)node->name.len, node->name.ptr);
    return node->kind == GRAPH_CALL;
}
