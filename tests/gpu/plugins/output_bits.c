/*
 * A rung that judges nothing: it runs the plan on a few inputs and tells a hash of every output's
 * bytes as a metric, so that two devices can be compared bit for bit.
 */
#include <rung/verifier.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2 };

struct self {
    const struct rung_host *host;
};

/* 64-bit FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash(uint64_t h, const unsigned char *bytes, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    return h;
}

static int32_t add_outputs(struct rung_call *call, const struct rung_session *session,
                           struct rung_run *run, uint64_t *h)
{
    const struct rung_task *task = session->task;
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < task->n_tensors && status == RUNG_OK; i++) {
        struct rung_tensor_view v = {.struct_size = sizeof v};
        if ((task->tensors[i].role & ~1u) != RUNG_ROLE_OUTPUT)
            continue;
        status = session->map(session, call, run, i, &v);
        uint64_t n = rung_dtype_bits(v.dtype) / 8;
        for (uint32_t d = 0; d < v.n_dims; d++)
            n *= (uint64_t)v.dims[d];
        if (status == RUNG_OK)
            *h = hash(*h, v.data, n);
    }
    return status;
}

static int32_t one(struct self *self, struct rung_call *call, const struct rung_session *session,
                   const int64_t *dims, uint64_t seed, const char *key, struct rung_verdict *out,
                   struct rung_map *metrics)
{
    struct rung_run *run = NULL;
    struct rung_run_request request = {.struct_size = sizeof request, .dims = dims, .seed = seed};
    uint64_t h = 0xcbf29ce484222325u;
    char text[17];
    int32_t status = session->run(session, call, &request, &run);
    if (status != RUNG_OK)
        return status;
    if (run->fault.code[0]) {
        out->status = RUNG_FAIL;
        snprintf(out->code, sizeof out->code, "%s", run->fault.code);
    } else {
        status = add_outputs(call, session, run, &h);
        snprintf(text, sizeof text, "%016llx", (unsigned long long)h);
        self->host->map_set_string(metrics, key, text);
    }
    session->end(session, run);
    return status;
}

static int32_t check(void *ptr, struct rung_call *call, const struct rung_session *session,
                     struct rung_verdict *out)
{
    struct self *self = ptr;
    const struct rung_task *task = session->task;
    struct rung_map *metrics = self->host->map_new(self->host, call->arena);
    int32_t status = RUNG_OK;
    char key[32];
    *out = (struct rung_verdict){
        .struct_size = sizeof *out, .status = RUNG_PASS, .detail = {"", 0}, .metrics = metrics};
    for (uint32_t s = 0; s < task->n_bench + task->n_extra; s++)
        for (uint64_t seed = 2; seed < 2 + SEEDS && status == RUNG_OK; seed++) {
            const struct rung_shape_case *shape =
                s < task->n_bench ? &task->bench[s] : &task->extra[s - task->n_bench];
            snprintf(key, sizeof key, "bits.%u.%u", s, (unsigned)seed);
            status = one(self, call, session, shape->dims, seed, key, out, metrics);
        }
    return status;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **out)
{
    struct self *self = calloc(1, sizeof *self);
    (void)options;
    if (!self)
        return err->code = RUNG_ENOMEM;
    self->host = host;
    *out = self;
    return RUNG_OK;
}

static const struct rung_verifier_ops ops = {.struct_size = sizeof ops, .check = check};
static const struct rung_factory factory = {.struct_size = sizeof factory,
                                            .thread_model = RUNG_SERIAL_INSTANCE,
                                            .kind = RUNG_KIND_VERIFIER,
                                            .name = "output_bits",
                                            .summary = "tells a hash of the outputs",
                                            .ops = &ops,
                                            .create = create,
                                            .destroy = free};
static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "org.rung.tests.output_bits",
                                          .version = "0.1.0",
                                          .vendor = "rung",
                                          .licence = "Apache-2.0",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
