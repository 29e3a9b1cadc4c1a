/* From host code to plan lines: see translate.h. */
#include "translate.h"
#include "emit.h"
#include "entry.h"
#include "names.h"
#include <string.h>

enum { MAX_LEAVES = 64 };

/* ---- After a walk --------------------------------------------------------------------------- */

static bool is_output(const struct rung_task *task, uint32_t i)
{
    return task->tensors[i].role == RUNG_ROLE_OUTPUT || task->tensors[i].role == RUNG_ROLE_INOUT;
}

static bool is_bound(const struct cg_host *h, uint32_t tensor)
{
    for (const struct cg_buffer *b = h->buffers; b; b = b->next)
        if (b->tensor == (int)tensor)
            return true;
    return false;
}

/* A tensor that was returned is the next output that nothing is bound to. */
static void bind_result(struct cg_host *h, const struct cg_value *v)
{
    struct cg_buffer *b = cg_real_buffer(v->buffer);
    int64_t offset;
    if (v->transposed || !cg_sym_constant(v->sym, &offset) || offset)
        cg_problem(h, "the result is a view of a part, or a transposed one");
    if (b->tensor >= 0)
        return;
    for (uint32_t i = 0; i < h->task->n_tensors; i++) {
        if (!is_output(h->task, i) || is_bound(h, i))
            continue;
        if (h->task->tensors[i].stride[0])
            cg_problem(h, "the result is a new tensor without gaps, but `%s` has strides",
                       h->task->tensors[i].name);
        if (b->dtype && b->dtype != h->task->tensors[i].dtype)
            cg_problem(h, "the result is %s, but `%s` is %s", rung_dtype_name(b->dtype),
                       h->task->tensors[i].name, rung_dtype_name(h->task->tensors[i].dtype));
        b->same = cg_tensor_buffer(h, i);
        return;
    }
}

static void bind_results(struct cg_host *h, const struct cg_value *result)
{
    if (result->kind == CG_TENSOR)
        bind_result(h, result);
    else if (result->kind == CG_UNKNOWN)
        cg_problem(h, "the result is %s", result->text);
    for (uint32_t k = 0; result->kind == CG_LIST && k < result->n; k++)
        bind_results(h, &result->list[k]);
}

/* Memory that some name of it says is a tensor. */
static void bind_named(struct cg_host *h)
{
    for (struct cg_buffer *b = h->buffers; b; b = b->next) {
        struct cg_buffer *real = cg_real_buffer(b);
        int tensor = real->tensor < 0 ? cg_bind_tensor(h, b->name) : -1;
        if (tensor < 0 || is_bound(h, (uint32_t)tensor) || !b->name[0])
            continue;
        bool out = is_output(h->task, (uint32_t)tensor);
        bool pure = h->task->tensors[tensor].role == RUNG_ROLE_OUTPUT;
        if (pure && ((real->from_host && !real->written) || (real->read_only && !real->written)))
            continue;
        if (!out && ((real->to_host && !real->from_host) || (real->written && !real->read_only)))
            continue;
        real->same = cg_tensor_buffer(h, (uint32_t)tensor);
    }
}

/*
 * What was copied to the device is an input, what was copied back an output, in order. So are, of
 * memory that nobody copies, what kernels only read and what they only write.
 */
static void bind_copied(struct cg_host *h, bool copied)
{
    for (struct cg_buffer *b = h->buffers; b; b = b->next) {
        struct cg_buffer *real = cg_real_buffer(b);
        bool both = real->managed || !copied;
        bool out = real->to_host || (both && real->written && !real->read_only) ||
                   (real->written && !real->from_host && b->to_host);
        bool in = real->from_host || b->from_host || (both && real->read_only && !real->written);
        if (real->tensor >= 0 || (!out && !in) || (!real->written && !real->read_only))
            continue;
        for (uint32_t i = 0; i < h->task->n_tensors; i++)
            if (is_output(h->task, i) == out && !is_bound(h, i)) {
                real->same = cg_tensor_buffer(h, i);
                break;
            }
    }
}

static void finish_walk(struct cg_host *h, struct cg_value result, bool tensors)
{
    if (tensors)
        bind_results(h, &result);
    if (h->in_main) {
        cg_drop_repeats(h, 0);
        bind_named(h);
        bind_copied(h, true);
        bind_copied(h, false);
    }
}

/* ---- All walks of one entry ----------------------------------------------------------------- */

static void reset(struct cg_host *h)
{
    h->n_vars = h->frame = h->n_globals = 0;
    h->nesting = h->calls = 0;
    h->flow = CG_NEXT;
    h->buffers = NULL;
    h->n_steps = 0;
    h->at_path = 0;
    h->code = h->tokens;
    h->i = h->end = 0;
}

static bool returns_tensor(const struct cg_host *h, const struct cg_item *item)
{
    for (uint32_t i = item->from; i < item->open; i++) {
        if (cg_is(&h->tokens->t[i], item->name))
            return false;
        if (cg_is(&h->tokens->t[i], "Tensor"))
            return true;
    }
    return false;
}

/* Whether an item allocates a global variable: what an init function is for. */
static bool prepares(const struct cg_host *h, size_t item)
{
    const struct cg_item *it = &h->items->list[item];
    bool allocates = false, global = false;
    if (it->kind != CG_FUNCTION || it->device || h->reaches[item] || !strcmp(it->name, "main"))
        return false;
    for (uint32_t i = it->open; i < it->close; i++) {
        const struct cg_token *t = &h->tokens->t[i];
        allocates |= cg_is(t, "cudaMalloc") || cg_is(t, "cudaMallocAsync");
        for (size_t k = 0; cg_is(t, "&") && k < h->items->n; k++)
            global |= h->items->list[k].kind == CG_VARIABLE && cg_is(t + 1, h->items->list[k].name);
    }
    return allocates && global;
}

static void prepare(struct cg_host *h)
{
    for (size_t k = 0; k < h->items->n; k++)
        if (prepares(h, k)) {
            cg_run_entry(h, &h->items->list[k]);
            h->problem = NULL; /* what it does besides does not matter */
        }
}

/* One walk with the decisions as recorded. */
static void walk(struct cg_host *h, const struct cg_item *entry, struct cg_python *python)
{
    reset(h);
    if (python) {
        struct cg_value v = cg_python_run(h, python);
        finish_walk(h, v, true);
        return;
    }
    h->in_main = !strcmp(entry->name, "main");
    h->calls = h->in_main ? -1 : 0; /* main's own statements are at depth 0 */
    if (!h->in_main)
        prepare(h);
    struct cg_value v = cg_run_entry(h, entry);
    finish_walk(h, v, returns_tensor(h, entry));
}

/* The next outcome to try; false when all were. */
static bool next_path(struct cg_host *h)
{
    h->n_path = h->at_path;
    while (h->n_path > 0 && !h->path[h->n_path - 1].value)
        h->n_path--;
    if (h->n_path == 0)
        return false;
    h->path[h->n_path - 1].value = false;
    return true;
}

static const char *plan_of(struct cg_host *h, const struct cg_item *entry, struct cg_python *python)
{
    struct cg_leaf *leaves = cg_take(h->pool, MAX_LEAVES * sizeof(*leaves));
    struct cg_temps *temps = cg_take(h->pool, sizeof(*temps));
    uint32_t n = 0;
    bool launches = false;
    h->problem = NULL;
    h->n_path = 0;
    do {
        if (n == MAX_LEAVES) {
            cg_problem(h, "the launches depend on more than %d cases", MAX_LEAVES);
            return NULL;
        }
        walk(h, entry, python);
        struct cg_leaf *leaf = &leaves[n++];
        memcpy(leaf->path, h->path, sizeof(h->path));
        leaf->n_path = h->at_path;
        leaf->lines = cg_emit(h, temps);
        for (uint32_t i = 0; i < leaf->lines.n; i++)
            launches |= leaf->lines.list[i].kind == CG_LAUNCH;
        if (h->problem)
            return NULL;
    } while (next_path(h));
    struct cg_lines lines = cg_merge(h, leaves, n);
    if (!launches)
        cg_problem(h, "`%s` launches nothing", entry ? entry->name : "forward");
    return h->problem ? NULL : cg_lines_text(h, temps, &lines);
}

static struct cg_host *open_code(struct cg_pool *pool, const struct rung_task *task,
                                 const char *code)
{
    struct cg_macros *macros = cg_take(pool, sizeof(*macros));
    struct cg_tokens *tokens = cg_take(pool, sizeof(*tokens));
    struct cg_items *items = cg_take(pool, sizeof(*items));
    struct cg_host *h = cg_take(pool, sizeof(*h));
    *tokens = cg_lex(pool, code, CG_CPP, macros);
    *items = cg_items_scan(pool, tokens);
    *h = (struct cg_host){
        .pool = pool, .task = task, .tokens = tokens, .macros = macros, .items = items, .note = ""};
    h->bodies = cg_take(pool, (items->n + 1) * sizeof(*h->bodies));
    h->reaches = cg_find_reaching(pool, tokens, items, macros);
    return h;
}

struct cg_translation cg_translate(struct cg_pool *pool, const struct rung_task *task,
                                   const char *code, const char *around, const char *python_text)
{
    struct cg_translation out = {.note = ""};
    struct cg_python *python = *python_text ? cg_python_read(pool, python_text) : NULL;
    struct cg_host *h = open_code(pool, task, cg_format(pool, "%s\n%s", code, around));
    const struct cg_item *entries[CG_MAX_ENTRIES];
    uint32_t n = cg_find_entries(h, entries);
    if (!n && strstr(around, "<<<")) { /* statements without a function around them */
        h = open_code(pool, task,
                      cg_format(pool, "%s\nvoid launch_snippet_()\n{\n%s\n}\n", code, around));
        h->loose = out.snippet = true;
        n = cg_find_entries(h, entries);
    }
    if (n && python && cg_python_has_forward(python)) {
        out.plan = plan_of(h, NULL, python);
        out.problem = h->problem;
        out.note = h->note;
        return out;
    }
    for (uint32_t k = 0; k < n && !out.plan; k++) {
        h->note = "";
        out.plan = plan_of(h, entries[k], NULL);
        out.note = h->note;
        if (!out.problem)
            out.problem = h->problem;
    }
    if (out.plan)
        out.problem = NULL;
    return out;
}

const char *cg_python_source(struct cg_pool *pool, const char *python)
{
    return cg_python_code(cg_python_read(pool, python));
}
