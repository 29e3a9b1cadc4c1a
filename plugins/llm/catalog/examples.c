/*
 * examples_catalog: kernels of the catalog for the prompts of other models: the plainest ones that
 * compute the task itself, or, when there is none, the plain ones of the operators nearest to it,
 * with the names that their own form gives.
 *
 * The store is read in start() and immutable after; calls may run at once.
 */
#include "choose.h"
#include "render.h"
#include "signature.h"
#include <rung/examples.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct examples {
    const struct rung_host *host;
    char *dir;
    struct store store;
};

/* What is worked out for one call: too large for a stack. */
struct search {
    const struct examples *self;
    struct rung_call *call;
    struct prompt prompt;
    struct target target;
    struct pick {
        const struct kernel *kernel;
        double score;
        uint32_t depth;
    } picks[STORE_MAX_KERNELS];
    uint32_t n;
};

static struct llm_span span_of(const char *text)
{
    return (struct llm_span){text ? text : "", text ? strlen(text) : 0};
}

static struct llm_span dtype_name(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_F32:
        return span_of("f32");
    case RUNG_F16:
        return span_of("f16");
    case RUNG_I64:
        return span_of("i64");
    default:
        return span_of("other"); /* no kernel of the catalog has another type */
    }
}

static struct prompt_tensor tensor_of(const struct rung_tensor_spec *spec)
{
    static const char *const roles[] = {"", "input", "output", "inout", "weight"};
    struct prompt_tensor tensor = {
        .name = span_of(spec->name),
        .role = span_of(spec->role <= RUNG_ROLE_WEIGHT ? roles[spec->role] : ""),
        .dtype = dtype_name(spec->dtype),
        .alignment = (uint32_t)spec->alignment,
        .strided = spec->stride[0] != NULL};
    for (; tensor.n_dims < spec->n_dims && tensor.n_dims < PROMPT_MAX_DIMS; ++tensor.n_dims)
        tensor.dims[tensor.n_dims] = span_of(spec->shape[tensor.n_dims]);
    return tensor;
}

/* The task as the reader of prompts would have found it. Spans point into the task. */
static void read_task(const struct rung_task *task, struct prompt *prompt)
{
    memset(prompt, 0, sizeof *prompt);
    prompt->graph = span_of(task->graph);
    prompt->idea = span_of("");
    for (uint32_t i = 0; i < task->n_tensors && i < PROMPT_MAX_TENSORS; ++i)
        prompt->tensors[prompt->n_tensors++] = tensor_of(&task->tensors[i]);
    for (uint32_t i = 0; i < task->n_params && i < PROMPT_MAX_PARAMS; ++i)
        prompt->params[prompt->n_params++] = span_of(task->params[i].name);
    for (uint32_t i = 0; i < task->n_dims && i < PROMPT_MAX_DIM_NAMES; ++i)
        prompt->dim_names[prompt->n_dim_names++] = span_of(task->dims[i].name);
}

static uint32_t count_inputs(const char *tensors)
{
    uint32_t n = 0;
    for (const char *c = tensors; *c; ++c)
        n += *c == ';';
    return n;
}

/* How near a form's task is to one that it does not serve: half for an operator of it, little for
 * another; a bit more for the same number of inputs. */
static double nearness(const struct form *form, const struct graph *graph, uint32_t n_tensors)
{
    char operator[64];
    double score = 0.1;
    if (!match_operator(form, operator, sizeof operator))
        return score;
    for (uint32_t i = 0; i < graph->n_nodes; ++i)
        if (graph->nodes[i].kind == GRAPH_CALL && signature_means(graph->nodes[i].name, operator))
            score = 0.5;
    const uint32_t inputs = form->tensors ? count_inputs(form->tensors) : 1;
    return score + (inputs + 1 == n_tensors ? 0.05 : 0.0);
}

static void find_picks(struct search *s)
{
    const struct store *store = &s->self->store;
    const bool served = s->target.family != NULL;
    for (uint32_t i = 0; i < store->n; ++i) {
        const struct kernel *kernel = &store->kernels[i];
        struct pick pick = {kernel, 1.0, choose_depth(store, kernel)};
        if (served ? !target_has(&s->target, store, kernel) : kernel->after != NULL)
            continue;
        for (uint32_t f = 0; !served && f < kernel->n_forms; ++f) {
            const double score = nearness(&kernel->forms[f], &s->target.graph, s->prompt.n_tensors);
            pick.score = f == 0 || score > pick.score ? score : pick.score;
        }
        s->picks[s->n++] = pick;
    }
}

static int by_worth(const void *a, const void *b)
{
    const struct pick *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return strcmp(x->kernel->stem, y->kernel->stem);
}

static char *copy(const struct search *s, const char *text, size_t n)
{
    char *to = s->self->host->alloc(s->self->host, s->call->arena, n + 1, 1);
    if (to)
        memcpy(to, text, n);
    return to;
}

/* The kernel without its first line, which is the catalog's own mark. */
static int32_t put_example(struct search *s, const struct pick *pick, struct rung_example *out)
{
    struct llm_text text = {0};
    char title[400];
    if (s->target.family)
        target_bind(&s->target, &s->prompt, &s->self->store, pick->kernel);
    else
        target_bind_itself(&s->target, &s->self->store, pick->kernel);
    render_kernel(pick->kernel, &s->target, 0, MISTAKE_NONE, &text);
    const char *body = text.ptr ? strchr(text.ptr, '\n') : NULL;
    snprintf(title, sizeof title, "%s: %s", pick->kernel->family, pick->kernel->idea);
    *out = (struct rung_example){.struct_size = sizeof *out,
                                 .same_task = s->target.family != NULL,
                                 .score = pick->score,
                                 .title = copy(s, title, strlen(title))};
    if (body && !text.failed) {
        out->source.len = text.len - (size_t)(body + 1 - text.ptr);
        out->source.ptr = copy(s, body + 1, out->source.len);
    }
    llm_text_free(&text);
    return out->title && out->source.ptr
               ? RUNG_OK
               : llm_fail(s->call->error, RUNG_ENOMEM, "examples.memory", "no memory for examples");
}

static int32_t answer(struct search *s, const struct rung_task *task, uint32_t max,
                      const struct rung_example **out, uint32_t *n)
{
    read_task(task, &s->prompt);
    target_read(&s->prompt, &s->self->store, &s->target);
    find_picks(s);
    qsort(s->picks, s->n, sizeof *s->picks, by_worth);
    if (s->n > max)
        s->n = max;
    struct rung_example *list = s->self->host->alloc(s->self->host, s->call->arena,
                                                     (s->n + 1) * sizeof *list, sizeof(void *));
    if (!list)
        return llm_fail(s->call->error, RUNG_ENOMEM, "examples.memory", "no memory for examples");
    for (uint32_t i = 0; i < s->n; ++i) {
        const int32_t status = put_example(s, &s->picks[i], &list[i]);
        if (status != RUNG_OK)
            return status;
    }
    *out = list;
    *n = s->n;
    return RUNG_OK;
}

static int32_t give_examples(void *self, struct rung_call *call, const struct rung_task *task,
                             uint32_t max, const struct rung_example **out, uint32_t *n)
{
    struct search *s = calloc(1, sizeof *s);
    *out = NULL;
    *n = 0;
    if (!s)
        return llm_fail(call->error, RUNG_ENOMEM, "examples.memory", "no memory for examples");
    s->self = self;
    s->call = call;
    const int32_t status = answer(s, task, max, out, n);
    target_free(&s->target);
    free(s);
    return status;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *error, void **self)
{
    struct examples *examples = calloc(1, sizeof *examples);
    if (examples)
        examples->dir = strdup(host->opt_string(host, options, "dir"));
    if (!examples || !examples->dir) {
        free(examples);
        return llm_fail(error, RUNG_ENOMEM, "examples.memory", "no memory");
    }
    examples->host = host;
    *self = examples;
    return RUNG_OK;
}

static int32_t start(void *self, struct rung_error *error)
{
    struct examples *examples = self;
    return store_open(examples->dir, &examples->store, error);
}

static void stop(void *self)
{
    struct examples *examples = self;
    store_close(&examples->store);
}

static void destroy(void *self)
{
    struct examples *examples = self;
    store_close(&examples->store);
    free(examples->dir);
    free(examples);
}

static const struct rung_option opt_dir = {
    .struct_size = sizeof opt_dir,
    .type = RUNG_OPT_PATH,
    .name = "dir",
    .default_text = "data:catalog",
    .summary = "Folder of kernels: one folder an operator, one file a kernel.",
};
static const struct rung_option *const options[] = {&opt_dir, NULL};

static const struct rung_examples_ops ops = {.struct_size = sizeof ops, .examples = give_examples};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_EXAMPLES,
    .name = "catalog",
    .summary = "Shows models the plainest kernels of the catalog for a task, or for one like it.",
    .doc = "Kernels that compute the task itself come with its own names; where the catalog has "
           "none, the plain kernels of the nearest operators come with names of their own.",
    .options = options,
    .ops = &ops,
    .create = create,
    .start = start,
    .stop = stop,
    .destroy = destroy,
};
static const struct rung_factory *const factories[] = {&factory, NULL};

static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC,
    .struct_size = sizeof plugin,
    .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT,
    .id = "org.rung.examples.catalog",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
