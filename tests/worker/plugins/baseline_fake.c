/*
 * A baseline that measures itself, on the shared clock, or misbehaves as its setting says. Compiled
 * with BASELINE_QUEUES it queues its work instead, and the timer measures it.
 */
#include "fake.h"
#include <rung/baseline.h>

#include <math.h>
#include <signal.h>
#include <time.h>

static const struct rung_option what = {.struct_size = sizeof what,
                                        .type = RUNG_OPT_STRING,
                                        .name = "what",
                                        .default_text = "good",
                                        .summary = "how it behaves"};
static const struct rung_option us = {.struct_size = sizeof us,
                                      .type = RUNG_OPT_STRING,
                                      .name = "us",
                                      .default_text = "15",
                                      .summary = "microseconds that it takes"};
static const struct rung_option *const options[] = {&what, &us, NULL};

struct self {
    const struct rung_host *host;
    const struct rung_options *options;
    char what[32];
    double ns;
    unsigned turns, prepared;
};

static int is(const struct self *s, const char *word)
{
    return strcmp(s->what, word) == 0;
}

static int32_t start(void *self, struct rung_error *err)
{
    const struct self *s = self;
    if (!is(s, "no-start"))
        return RUNG_OK;
    err->code = RUNG_EUNAVAILABLE;
    strcpy(err->message, "its library is not on this machine");
    return RUNG_EUNAVAILABLE;
}

static int32_t prepare(void *self, struct rung_call *call, const struct rung_session *session,
                       const int64_t *dims, struct rung_baseline_case *out)
{
    struct self *s = self;
    struct timespec moment = {100, 0};
    (void)session, (void)dims;
    if (is(s, "missing"))
        return fake_fail(call, RUNG_EUNAVAILABLE, "no library libfake.so");
    if (is(s, "unsupported"))
        return fake_fail(call, RUNG_EUNSUPPORTED, "it has nothing for this task");
    if (is(s, "crash"))
        raise(SIGSEGV);
    if (is(s, "hang"))
        nanosleep(&moment, NULL);
    s->prepared++;
    out->label = "fakeSgemm";
    out->math = is(s, "tf32") ? "tf32" : "fp32";
    return RUNG_OK;
}

#ifdef BASELINE_QUEUES
#define BASELINE_NAME "queue"

static int32_t enqueue(void *self, struct rung_call *call, const struct rung_baseline_case *c,
                       const uint64_t *addresses, uint64_t scratch)
{
    struct self *s = self;
    (void)scratch;
    if (strcmp(c->label, "fakeSgemm") != 0 || !addresses[0] || !addresses[1])
        return fake_fail(call, RUNG_EINTERNAL, "not what was prepared");
    s->turns++;
    return is(s, "helper-dies") && s->turns == 5 ? fake_fail(call, RUNG_EUNAVAILABLE, "it broke")
                                                 : RUNG_OK;
}
#else
#define BASELINE_NAME "fake"

static void misbehave(const struct self *s)
{
    if (is(s, "turn-crash") && s->turns == 5)
        raise(SIGABRT);
}

static int32_t measure(void *self, struct rung_call *call, const struct rung_baseline_case *c,
                       const struct rung_timing_recipe *recipe, struct rung_timing *out)
{
    struct self *s = self;
    double *samples = s->host->alloc(s->host, call->arena, recipe->samples * sizeof *samples, 8);
    (void)c;
    s->turns++;
    misbehave(s);
    if (is(s, "helper-dies") && s->turns == 5)
        return fake_fail(call, RUNG_EUNAVAILABLE, "its helper died with signal 9");
    for (uint32_t i = 0; i < recipe->samples; i++)
        samples[i] = is(s, "garbage") ? NAN : s->ns * fake_clock(is(s, "drift") ? 1e-4 : 0);
    out->kind = is(s, "modelled") ? RUNG_TIME_MODELLED : RUNG_TIME_MEASURED;
    out->measured.n_samples = recipe->samples;
    out->measured.samples_ns = samples;
    out->measured.n_verified = is(s, "good") ? recipe->verify : 0;
    if (is(s, "tf32") && recipe->verify) {
        strcpy(out->fault.code, "numeric.precision");
        strcpy(out->fault.message, "a mantissa of 10 bits");
    }
    return RUNG_OK;
}

#endif

static void release(void *self, struct rung_baseline_case *c)
{
    struct self *s = self;
    (void)c;
    s->prepared--;
}

static int32_t create(const struct rung_host *host, const struct rung_options *opts,
                      struct rung_error *err, void **out)
{
    struct self *s = calloc(1, sizeof *s);
    (void)err;
    if (!s)
        abort();
    s->host = host;
    snprintf(s->what, sizeof s->what, "%s", host->opt_string(host, opts, "what"));
    s->ns = 1000 * strtod(host->opt_string(host, opts, "us"), NULL);
    *out = s;
    return RUNG_OK;
}

/* What was prepared must have been released. */
static void destroy(void *self)
{
    struct self *s = self;
    if (s->prepared)
        abort();
    free(s);
}

static const struct rung_baseline_ops ops = {.struct_size = sizeof ops,
                                             .prepare = prepare,
#ifdef BASELINE_QUEUES
                                             .enqueue = enqueue,
#else
                                             .measure = measure,
#endif
                                             .release = release};
static const struct rung_factory factory = {.struct_size = sizeof factory,
                                            .thread_model = RUNG_SERIAL_INSTANCE,
                                            .kind = RUNG_KIND_BASELINE,
                                            .name = BASELINE_NAME,
                                            .summary = "for tests",
                                            .options = options,
                                            .ops = &ops,
                                            .create = create,
                                            .start = start,
                                            .destroy = destroy};
static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "test.worker.baseline." BASELINE_NAME,
                                          .version = "1",
                                          .vendor = "test",
                                          .licence = "MIT",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t major, uint32_t draft)
{
    return major == RUNG_ABI_MAJOR && draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
