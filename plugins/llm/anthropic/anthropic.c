/* llm_anthropic: Anthropic's Messages, and servers that speak it. */
#include "build.h"
#include "reply.h"
#include <stdlib.h>

static const struct llm_dialect dialect = {.build = anthropic_build,
                                           .read = anthropic_read,
                                           .event = anthropic_event,
                                           .end = anthropic_end};

static const struct rung_option opt_url = {
    .struct_size = sizeof opt_url,
    .type = RUNG_OPT_STRING,
    .name = "url",
    .default_text = "https://api.anthropic.com/v1",
    .summary = "Base of the server's URLs; /v1 is added where no path stands, then /messages.",
};
static const struct rung_option opt_key = {
    .struct_size = sizeof opt_key,
    .type = RUNG_OPT_SECRET,
    .name = "key",
    .summary = "Where the key is; local servers need none.",
};
static const struct rung_option *const options[] = {&llm_opt_model,
                                                    &opt_url,
                                                    &opt_key,
                                                    &anthropic_opt_cap,
                                                    &anthropic_opt_effort,
                                                    &anthropic_opt_thinking,
                                                    &anthropic_opt_budget,
                                                    &anthropic_opt_cache,
                                                    LLM_OPTIONS,
                                                    NULL};

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct anthropic *a = calloc(1, sizeof *a);
    if (!a)
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    int32_t status = anthropic_init(a, host, set, "anthropic", error);
    a->base.dialect = &dialect;
    a->base.login = (struct llm_login){.header = "x-api-key",
                                       .id_header = "request-id",
                                       .name = {"anthropic-version", "2023-06-01"}};
    a->base.endpoint = llm_endpoint(host->opt_string(host, set, "url"), "/v1", "/messages");
    if (status == RUNG_OK)
        status = llm_provider_ready(&a->base, error);
    if (status != RUNG_OK)
        anthropic_destroy(a);
    else
        *self = a;
    return status;
}

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .kind = RUNG_KIND_LLM,
    .name = "anthropic",
    .summary = "Anthropic's Messages.",
    .doc = "Parts of prompts that the engine marks are cached by the provider. docs/providers.md "
           "tells more.",
    .options = options,
    .ops = &llm_provider_ops,
    .validate = anthropic_validate,
    .create = create,
    .start = llm_provider_start,
    .destroy = anthropic_destroy,
};

LLM_PLUGIN("org.rung.llm.anthropic", factory)
