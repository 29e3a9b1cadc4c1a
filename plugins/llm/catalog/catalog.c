/*
 * llm_catalog: a model that needs no network. It knows some operators and, for each, kernels that
 * realise ideas (config/catalog). It reads nothing but a request's role, key, seed and texts, and
 * answers in prose, idea lists and fenced blocks like any model. For what it lacks it says so.
 *
 * The store is read in start() and immutable after, so that calls may run at once. The same request
 * gives the same reply.
 */
#include "choose.h"
#include "render.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct catalog {
    const struct rung_host *host;
    char *dir;
    uint32_t mistakes; /* percent */
    struct store store;
};

/*
 * The numbers of a key ("code/12/0") added up, so that the candidates of one idea, which follow
 * each other, get different variants; the seed decides where they begin.
 */
static uint32_t variant_of(const struct rung_llm_request *request)
{
    uint32_t sum = 0, number = 0;
    for (const char *c = request->key; *c; ++c) {
        const bool digit = isdigit((unsigned char)*c);
        number = digit ? number * 10 + (uint32_t)(*c - '0') : 0;
        number %= 100000;
        if (digit && !isdigit((unsigned char)c[1]))
            sum = (sum + number) % 100000;
    }
    return sum + (uint32_t)(llm_hash(LLM_HASH_START, &request->seed, sizeof request->seed) % 8);
}

/* Whether this request is one of those that get a faulty kernel, and which fault. */
static enum mistake mistake_of(const struct catalog *catalog,
                               const struct rung_llm_request *request)
{
    const uint64_t hash =
        llm_hash(~LLM_HASH_START ^ request->seed, request->key, strlen(request->key)) >> 8;
    if (strcmp(request->role, "code") != 0 || hash % 100 >= catalog->mistakes)
        return MISTAKE_NONE;
    return MISTAKE_SEMICOLON + (enum mistake)(hash / 100 % 3);
}

static void answer_ideas(const struct catalog *catalog, const struct rung_llm_request *request,
                         const struct prompt *prompt, const struct target *target,
                         struct llm_text *out)
{
    const struct kernel *picks[CHOOSE_MAX];
    const uint64_t seed =
        llm_hash(LLM_HASH_START ^ request->seed, request->key, strlen(request->key));
    const uint32_t wanted = prompt->wanted ? prompt->wanted : 4;
    const uint32_t n = choose_ideas(&catalog->store, target, prompt, seed, wanted, picks);
    if (n == 0) {
        llm_text_printf(out, "Every idea that the catalog has for %s from here has been tried.\n",
                        target->family);
        return;
    }
    for (uint32_t i = 0; i < n; ++i)
        llm_text_printf(out, "- [%s] %s\n", picks[i]->category, picks[i]->idea);
}

static void put_code(const char *intro, const struct llm_text *source, struct llm_text *out)
{
    llm_text_printf(out, "%s\n\n```cuda\n", intro);
    llm_text_add(out, source->ptr ? source->ptr : "", source->len);
    llm_text_puts(out, "```\n");
}

static const struct kernel *kernel_for_idea(const struct catalog *catalog,
                                            const struct prompt *prompt,
                                            const struct target *target)
{
    const struct kernel *kernel = choose_kernel(&catalog->store, target, prompt->idea);
    if (!kernel && (prompt->idea.len == 0 || !prompt->has_parent))
        kernel = choose_first(&catalog->store, target);
    return kernel;
}

static void answer_code(const struct catalog *catalog, const struct rung_llm_request *request,
                        const struct prompt *prompt, struct target *target, struct llm_text *out)
{
    const struct kernel *kernel = kernel_for_idea(catalog, prompt, target);
    if (!kernel) {
        llm_text_printf(out, "The catalog has no %s kernel for this idea.\n", target->family);
        return;
    }
    struct llm_text source = {0};
    target_bind(target, prompt, &catalog->store, kernel);
    render_kernel(kernel, target, variant_of(request), mistake_of(catalog, request), &source);
    put_code(kernel->idea, &source, out);
    out->failed |= source.failed;
    llm_text_free(&source);
}

/* The failing source is the last one that is no parent, else the last one. */
static const struct prompt_source *failing_source(const struct prompt *prompt)
{
    for (uint32_t i = prompt->n_sources; i-- > 0;)
        if (!prompt->sources[i].parent)
            return &prompt->sources[i];
    return prompt->n_sources ? &prompt->sources[prompt->n_sources - 1] : NULL;
}

static bool same_code(struct llm_span a, const struct llm_text *b)
{
    const struct llm_span x = llm_trim(a),
                          y = llm_trim((struct llm_span){b->ptr ? b->ptr : "", b->len});
    return x.len == y.len && memcmp(x.ptr, y.ptr, x.len) == 0;
}

static void answer_repair(const struct catalog *catalog, const struct rung_llm_request *request,
                          const struct prompt *prompt, struct target *target, struct llm_text *out)
{
    const struct prompt_source *failing = failing_source(prompt);
    const struct kernel *kernel =
        failing ? store_find(&catalog->store, failing->family, failing->stem) : NULL;
    if (!kernel || !target_has(target, &catalog->store, kernel)) {
        answer_code(catalog, request, prompt, target, out);
        return;
    }
    struct llm_text source = {0};
    target_bind(target, prompt, &catalog->store, kernel);
    render_kernel(kernel, target, failing->variant, MISTAKE_NONE, &source);
    if (same_code(failing->body, &source))
        llm_text_printf(out,
                        "This is all that the catalog has for %s/%s; it knows no other form.\n",
                        kernel->family, kernel->stem);
    else
        put_code("The kernel had a slip; this is the whole of it, repaired.", &source, out);
    out->failed |= source.failed;
    llm_text_free(&source);
}

/* What is read of one request: too large for a stack. */
struct reading {
    struct prompt prompt;
    struct target target;
};

static void answer(const struct catalog *catalog, const struct rung_llm_request *request,
                   struct reading *reading, struct llm_text *out)
{
    const struct prompt *prompt = &reading->prompt;
    struct target *target = &reading->target;
    if (strcmp(request->role, "ideas") == 0)
        answer_ideas(catalog, request, prompt, target, out);
    else if (strcmp(request->role, "code") == 0)
        answer_code(catalog, request, prompt, target, out);
    else if (strcmp(request->role, "repair") == 0)
        answer_repair(catalog, request, prompt, target, out);
    else
        llm_text_printf(out, "The catalog answers ideas, code and repair, not '%.40s'.\n",
                        request->role);
    out->failed |= target->lets.failed || target->expr.failed || target->helpers.failed;
}

/* A task for which the catalog has nothing: no further request would bring more. */
static int32_t lacks(const struct prompt *prompt, const struct target *target,
                     struct rung_error *error)
{
    if (target->names_operator)
        return llm_fail(error, RUNG_EUNSUPPORTED, "catalog.lacks", "%s", target->reason);
    return llm_fail(error, RUNG_EUNSUPPORTED, "catalog.lacks",
                    "The catalog has no kernel for this task: `%.*s`. %s",
                    (int)(prompt->graph.len < 400 ? prompt->graph.len : 400), prompt->graph.ptr,
                    target->reason);
}

static int32_t complete(void *self, struct rung_call *call, const struct rung_llm_request *request,
                        struct rung_llm_response *out)
{
    const struct catalog *catalog = self;
    int32_t status = llm_check_request(request, call->error);
    if (status != RUNG_OK)
        return status;
    struct reading *reading = malloc(sizeof *reading);
    struct llm_text reply = {0};
    if (!reading)
        return llm_fail(call->error, RUNG_ENOMEM, "catalog.memory", "no memory for the reply to %s",
                        request->key);
    prompt_read(request, &reading->prompt);
    target_read(&reading->prompt, &catalog->store, &reading->target);
    if (reading->target.family)
        answer(catalog, request, reading, &reply);
    else
        status = lacks(&reading->prompt, &reading->target, call->error);
    if (status == RUNG_OK && (reply.failed || !reply.ptr))
        status = llm_fail(call->error, RUNG_ENOMEM, "catalog.memory",
                          "no memory for the reply to %s", request->key);
    else if (status == RUNG_OK)
        status = llm_answer(catalog->host, call, request, reply.ptr, reply.len, RUNG_FINISH_STOP,
                            "catalog", out);
    llm_text_free(&reply);
    target_free(&reading->target);
    free(reading);
    return status;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *error, void **self)
{
    struct catalog *catalog = calloc(1, sizeof *catalog);
    if (catalog)
        catalog->dir = strdup(host->opt_string(host, options, "dir"));
    if (!catalog || !catalog->dir) {
        free(catalog);
        return llm_fail(error, RUNG_ENOMEM, "catalog.memory", "no memory");
    }
    catalog->host = host;
    catalog->mistakes = (uint32_t)host->opt_int(host, options, "mistakes");
    *self = catalog;
    return RUNG_OK;
}

static int32_t start(void *self, struct rung_error *error)
{
    struct catalog *catalog = self;
    return store_open(catalog->dir, &catalog->store, error);
}

static void stop(void *self)
{
    struct catalog *catalog = self;
    store_close(&catalog->store);
}

static void destroy(void *self)
{
    struct catalog *catalog = self;
    store_close(&catalog->store);
    free(catalog->dir);
    free(catalog);
}

static const struct rung_option opt_dir = {
    .struct_size = sizeof opt_dir,
    .type = RUNG_OPT_PATH,
    .name = "dir",
    .default_text = "data:catalog",
    .summary = "Folder of kernels: one folder an operator, one file a kernel.",
};
static const struct rung_option opt_mistakes = {
    .struct_size = sizeof opt_mistakes,
    .type = RUNG_OPT_INT,
    .flags = RUNG_OPT_ADVANCED,
    .name = "mistakes",
    .default_text = "0",
    .unit = "percent",
    .summary = "Share of kernels that first come with a fault (a missing semicolon, bounds check "
               "or tail).",
    .max = 100,
};
static const struct rung_option *const options[] = {&opt_dir, &opt_mistakes, NULL};

static const struct rung_llm_ops ops = {.struct_size = sizeof ops, .complete = complete};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .capabilities = RUNG_LLM_FREE,
    .kind = RUNG_KIND_LLM,
    .name = "catalog",
    .summary = "Answers from a folder of ideas and kernels; needs no network and no key.",
    .doc = "Each kernel states the graphs, types and shapes that it serves (the folder's README). "
           "Proposes ideas that were not tried yet and that build on the parents shown, writes "
           "their kernels in variants, and says so when it has nothing. Token counts are "
           "estimates.",
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
    .id = "org.rung.llm.catalog",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
