/*
 * A plugin of tests: a verifier with an option of every type, whose check() reports what it was
 * given, and a search policy that shares the file. Counts calls so that tests see the order of
 * life.
 */
#include <rung/search.h>
#include <rung/verifier.h>
#include <stdlib.h>
#include <string.h>

struct good {
    const struct rung_host *host;
    int64_t whole;
    uint32_t started;
    uint32_t inside; /* calls that are in check() now */
};

static const char *const colours[] = {"red", "green", NULL};

#define OPTION(id, ...)                                                                            \
    static const struct rung_option opt_##id = {                                                   \
        .struct_size = sizeof opt_##id, .name = #id, .summary = "A " #id ".", __VA_ARGS__}

OPTION(flag, .type = RUNG_OPT_BOOL, .default_text = "true");
OPTION(whole, .type = RUNG_OPT_INT, .default_text = "5", .min = 1, .max = 10, .unit = "blocks");
OPTION(share, .type = RUNG_OPT_FLOAT, .default_text = "0.25", .min = 0, .max = 1);
OPTION(word, .type = RUNG_OPT_STRING, .default_text = "plain");
OPTION(colour, .type = RUNG_OPT_ENUM, .default_text = "green", .values = colours);
OPTION(file, .type = RUNG_OPT_PATH, .default_text = "data:gpus/h200.cfg");
OPTION(wait, .type = RUNG_OPT_DURATION, .default_text = "90s", .min = 0, .max = 3600, .unit = "s");
OPTION(room, .type = RUNG_OPT_BYTES, .default_text = "64KiB", .min = 1, .max = 1 << 30);
OPTION(names, .type = RUNG_OPT_STRINGS, .default_text = "one, two");
OPTION(sizes, .type = RUNG_OPT_INTS, .default_text = "1, 2, 4");
OPTION(key, .type = RUNG_OPT_SECRET);
OPTION(bare, .type = RUNG_OPT_INT);

static const struct rung_option *const options[] = {
    &opt_flag, &opt_whole, &opt_share, &opt_word, &opt_colour, &opt_file, &opt_wait,
    &opt_room, &opt_names, &opt_sizes, &opt_key,  &opt_bare,   NULL};

static int32_t refuse(struct rung_error *err, const char *why)
{
    err->code = RUNG_ECONFIG;
    strncpy(err->message, why, sizeof err->message - 1);
    return RUNG_ECONFIG;
}

static int32_t validate(const struct rung_host *host, const struct rung_options *o,
                        struct rung_error *err)
{
    if (host->opt_int(host, o, "whole") == 9)
        return refuse(err, "whole may not be 9");
    return RUNG_OK;
}

static int32_t create(const struct rung_host *host, const struct rung_options *o,
                      struct rung_error *err, void **self)
{
    if (strcmp(host->opt_string(host, o, "word"), "refuse") == 0)
        return refuse(err, "refused in create");
    struct good *good = calloc(1, sizeof *good);
    good->host = host;
    good->whole = host->opt_int(host, o, "whole");
    *self = good;
    return RUNG_OK;
}

static int32_t start(void *self, struct rung_error *err)
{
    struct good *good = self;
    if (good->whole == 8)
        return refuse(err, "refused in start");
    good->started++;
    return RUNG_OK;
}

static void stop(void *self)
{
    struct good *good = self;
    good->started--;
}

static void destroy(void *self)
{
    struct good *good = self;
    if (good->started)
        abort(); /* destroyed without stop */
    free(good);
}

/* whole and started as metrics; a second call inside at the same time becomes an error. */
static int32_t check(void *self, struct rung_call *call, const struct rung_session *session,
                     struct rung_verdict *out)
{
    struct good *good = self;
    const struct rung_host *host = good->host;
    (void)session;
    if (good->inside++)
        return refuse(call->error, "two calls at once");
    struct rung_map *map = host->map_new(host, call->arena);
    host->map_set_int(map, "whole", good->whole);
    host->map_set_int(map, "started", good->started);
    out->status = RUNG_PASS;
    out->metrics = map;
    good->inside--;
    return RUNG_OK;
}

static const void *extension(const char *id)
{
    return strcmp(id, "org.rung.tests/0") == 0 ? options : NULL;
}

static const struct rung_verifier_ops verifier_ops = {.struct_size = sizeof verifier_ops,
                                                      .check = check};

static const struct rung_factory verifier = {.struct_size = sizeof verifier,
                                             .thread_model = RUNG_SERIAL_INSTANCE,
                                             .kind = RUNG_KIND_VERIFIER,
                                             .name = "good",
                                             .summary = "Passes everything.",
                                             .options = options,
                                             .ops = &verifier_ops,
                                             .get_extension = extension,
                                             .validate = validate,
                                             .create = create,
                                             .start = start,
                                             .stop = stop,
                                             .destroy = destroy};

static int32_t decide(void *self, struct rung_call *call, const struct rung_history *history,
                      const struct rung_event *events, uint32_t n_events,
                      const struct rung_action **actions, uint32_t *n)
{
    (void)self;
    (void)call;
    (void)history;
    (void)events;
    (void)n_events;
    *n = 0;
    *actions = NULL;
    return RUNG_OK;
}

static const struct rung_search_ops search_ops = {.struct_size = sizeof search_ops,
                                                  .decide = decide};

static const struct rung_factory search = {.struct_size = sizeof search,
                                           .kind = RUNG_KIND_SEARCH,
                                           .name = "idle",
                                           .summary = "Does nothing.",
                                           .options = options,
                                           .ops = &search_ops,
                                           .create = create,
                                           .destroy = destroy};

static const struct rung_factory *const factories[] = {&verifier, &search, NULL};

static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "org.rung.tests.good",
                                          .version = "1.0",
                                          .vendor = "rung tests",
                                          .licence = "MIT",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t major, uint32_t draft)
{
    return major == RUNG_ABI_MAJOR && draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
