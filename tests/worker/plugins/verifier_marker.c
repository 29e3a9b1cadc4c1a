/* A verifier whose verdict is what the candidate's markers say. */
#include "fake.h"
#include <rung/verifier.h>

#include <signal.h>
#include <stdlib.h>
#include <time.h>

static const struct rung_option word = {.struct_size = sizeof word,
                                        .type = RUNG_OPT_STRING,
                                        .name = "word",
                                        .default_text = "check",
                                        .summary = "prefix of the markers that this rung obeys"};
static const struct rung_option *const options[] = {&word, NULL};

struct self {
    const struct rung_host *host;
    const struct rung_options *options;
};

/* Its own faults, with no kernel running: not the candidate's. */
static void misbehave(const char *text)
{
    struct timespec moment = {100, 0};
    if (fake_marked(text, "check-crash"))
        raise(SIGSEGV);
    if (fake_marked(text, "check-hang"))
        nanosleep(&moment, NULL);
}

static void verdict_of(const char *text, struct rung_verdict *out)
{
    static const struct {
        const char *word;
        uint32_t status;
        const char *code;
    } table[] = {
        {"fail", RUNG_FAIL, "numeric.mismatch"},
        {"note", RUNG_NOTE, "run.nondeterministic"},
        {"unsupported", RUNG_UNSUPPORTED, "device.unsupported"},
        {"error", RUNG_ERROR, ""},
        {"codeless", RUNG_FAIL, ""},
        {"nonsense", 99, ""},
        {"badcode", RUNG_FAIL, "Not A Code"},
    };
    out->status = RUNG_PASS;
    out->detail = (struct rung_text){"fine", 4};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (fake_marked(text, table[i].word)) {
            out->status = table[i].status;
            strcpy(out->code, table[i].code);
            out->detail = (struct rung_text){"as the marker says", 18};
        }
}

static int32_t status_of(struct rung_call *call, const char *text)
{
    if (fake_marked(text, "late"))
        return fake_fail(call, RUNG_ETIMEOUT, "out of time");
    if (fake_marked(text, "nomem"))
        return fake_fail(call, RUNG_ENOMEM, "no room to compare");
    return fake_marked(text, "broken") ? fake_fail(call, RUNG_EINTERNAL, "the check broke")
                                       : RUNG_OK;
}

static void store(const struct rung_host *host, struct rung_call *call, const char *text)
{
    const struct rung_host_artifact *artifacts = host->get_extension(host, RUNG_HOST_ARTIFACT);
    char sha256[65];
    if (artifacts && fake_marked(text, "store"))
        artifacts->put(host, call, "notes.txt", "kept", 4, sha256);
}

static int32_t check(void *self, struct rung_call *call, const struct rung_session *session,
                     struct rung_verdict *out)
{
    const struct self *s = self;
    const struct rung_task *task = session->task;
    const struct rung_run_request request = {.struct_size = sizeof request,
                                             .dims = task->bench[0].dims};
    struct rung_run *run = NULL;
    const char *text = session->artifact->codes[0].bytes;
    int32_t status = session->run(session, call, &request, &run);
    if (status != RUNG_OK)
        return status;
    if (run->fault.code[0]) {
        out->status = RUNG_FAIL;
        memcpy(out->code, run->fault.code, sizeof out->code);
        session->end(session, run);
        return RUNG_OK;
    }
    session->end(session, run);
    if (strcmp(s->host->opt_string(s->host, s->options, "word"), "check") != 0) {
        out->status = RUNG_PASS;
        return RUNG_OK;
    }
    store(s->host, call, text);
    misbehave(text);
    verdict_of(text, out);
    return status_of(call, text);
}

static int32_t create(const struct rung_host *host, const struct rung_options *opts,
                      struct rung_error *err, void **out)
{
    struct self *s = malloc(sizeof *s);
    if (!s) {
        err->code = RUNG_ENOMEM;
        strcpy(err->message, "memory is out");
        return RUNG_ENOMEM;
    }
    *s = (struct self){host, opts};
    *out = s;
    return RUNG_OK;
}

static const struct rung_verifier_ops ops = {.struct_size = sizeof ops, .check = check};
static const struct rung_factory factory = {.struct_size = sizeof factory,
                                            .thread_model = RUNG_SERIAL_INSTANCE,
                                            .kind = RUNG_KIND_VERIFIER,
                                            .name = "marker",
                                            .summary = "for tests",
                                            .options = options,
                                            .ops = &ops,
                                            .create = create,
                                            .destroy = free};
static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "test.worker.marker",
                                          .version = "1",
                                          .vendor = "test",
                                          .licence = "MIT",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t major, uint32_t draft)
{
    return major == RUNG_ABI_MAJOR && draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
