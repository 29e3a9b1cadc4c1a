/*
 * codegen "cuda": candidates are CUDA C++ with their launches in //@ comment lines. The contract
 * comes from a template file; replies and sources are read in reply.c. After start nothing changes,
 * so calls may run at once.
 */
#include "contract.h"
#include "reply.h"
#include "text.h"
#include <stdlib.h>
#include <string.h>

struct codegen {
    const struct rung_host *host;
    char *path;     /* of the template */
    char *template; /* NULL before start */
};

static const struct rung_option option_contract = {
    .struct_size = sizeof(option_contract),
    .type = RUNG_OPT_PATH,
    .flags = RUNG_OPT_AFFECTS_RESULT,
    .name = "contract",
    .default_text = "data:prompts/cuda_contract.md",
    .summary = "Template of the text that tells the model how to write a candidate.",
};
static const struct rung_option *const options[] = {&option_contract, NULL};

static int32_t create(const struct rung_host *host, const struct rung_options *opts,
                      struct rung_error *err, void **self)
{
    struct codegen *c = calloc(1, sizeof(*c));
    char *path = strdup(host->opt_string(host, opts, "contract"));
    if (!c || !path) {
        free(c);
        free(path);
        return cg_no_memory(err);
    }
    *c = (struct codegen){.host = host, .path = path};
    *self = c;
    return RUNG_OK;
}

static int32_t start(void *self, struct rung_error *err)
{
    struct codegen *c = self;
    c->template = cg_contract_read(c->path, err);
    return c->template ? RUNG_OK : err->code;
}

static void stop(void *self)
{
    struct codegen *c = self;
    free(c->template);
    c->template = NULL;
}

static void destroy(void *self)
{
    struct codegen *c = self;
    free(c->path);
    free(c->template);
    free(c);
}

static int32_t contract(void *self, struct rung_call *call, const struct rung_task *task,
                        struct rung_text *out)
{
    struct codegen *c = self;
    if (!c->template)
        return cg_fail(call->error, RUNG_EMISUSE, "codegen.not_started",
                       "codegen cuda was not started");
    return cg_contract_fill(c->host, call, c->template, task, out);
}

static int32_t read_reply(void *self, struct rung_call *call, const struct rung_reply_request *req,
                          struct rung_reply_result *out)
{
    return cg_read_reply(((struct codegen *)self)->host, call, req, out);
}

static int32_t read_source(void *self, struct rung_call *call, const struct rung_task *task,
                           const char *path, struct rung_text source, struct rung_reply_result *out)
{
    return cg_read_source(((struct codegen *)self)->host, call, task, path, source, out);
}

static const struct rung_codegen_ops ops = {
    .struct_size = sizeof(ops),
    .contract = contract,
    .read_reply = read_reply,
    .read_source = read_source,
};

static const struct rung_factory factory = {
    .struct_size = sizeof(factory),
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_CODEGEN,
    .name = "cuda",
    .summary = "CUDA C++ with launches in //@ lines: the contract for the model, and the reader of "
               "its replies.",
    .doc = "Takes the kernel out of a markdown reply (usage examples and thoughts are left), joins "
           "files, and checks the //@ lines. Where these slipped they are repaired; where host "
           "code launches instead, it is read, never run, and its launches become //@ lines. What "
           "was done is told in a note; what is wrong is told to the model.",
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
    .struct_size = sizeof(plugin),
    .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT,
    .id = "org.rung.codegen.cuda",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "see LICENSE",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
