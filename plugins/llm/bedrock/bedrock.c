/*
 * llm_bedrock: Anthropic's models on Amazon Bedrock, by InvokeModel with an API key as bearer
 * token. InvokeModel takes and gives the bodies of Messages, which Converse would put into another
 * form and lose thinking and caching of; its streams are AWS's own binary frames, so replies come
 * whole.
 */
#include "../anthropic/build.h"
#include "../anthropic/reply.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct llm_dialect dialect = {
    .build = anthropic_build, .read = anthropic_read, .end = anthropic_end};

static const struct rung_option opt_url = {
    .struct_size = sizeof opt_url,
    .type = RUNG_OPT_STRING,
    .flags = RUNG_OPT_ADVANCED,
    .name = "url",
    .default_text = "https://bedrock-runtime.{region}.amazonaws.com",
    .summary = "Base of the server's URLs; {region} stands for the region, and /model/MODEL/invoke "
               "is added.",
};
static const struct rung_option opt_region = {
    .struct_size = sizeof opt_region,
    .type = RUNG_OPT_STRING,
    .name = "region",
    .default_text = "us-east-1",
    .summary = "AWS region of the endpoint.",
};
static const struct rung_option opt_key = {
    .struct_size = sizeof opt_key,
    .type = RUNG_OPT_SECRET,
    .name = "key",
    .default_text = "env:AWS_BEARER_TOKEN_BEDROCK",
    .summary = "Where the Bedrock API key is.",
};
static const struct rung_option *const options[] = {&llm_opt_model,
                                                    &opt_region,
                                                    &opt_url,
                                                    &opt_key,
                                                    &anthropic_opt_cap,
                                                    &anthropic_opt_effort,
                                                    &anthropic_opt_thinking,
                                                    &anthropic_opt_budget,
                                                    &anthropic_opt_cache,
                                                    LLM_OPTIONS,
                                                    NULL};

static bool is_region(const char *region)
{
    size_t n = 0;
    for (; region[n]; ++n)
        if (!islower((unsigned char)region[n]) && !isdigit((unsigned char)region[n]) &&
            region[n] != '-')
            return false;
    return n > 0 && n <= 40;
}

static int32_t validate(const struct rung_host *host, const struct rung_options *set,
                        struct rung_error *error)
{
    if (!is_region(host->opt_string(host, set, "region")))
        return llm_fail(error, RUNG_ECONFIG, "llm.region",
                        "'region' must be a name such as us-east-1");
    return anthropic_validate(host, set, error);
}

/* The URL with {region} filled in, and the path of the model. */
static char *endpoint_of(const char *url, const char *region, const char *model)
{
    static const char mark[] = "{region}";
    struct llm_text base = {0}, path = {0};
    const char *at = strstr(url, mark);
    llm_text_add(&base, url, at ? (size_t)(at - url) : strlen(url));
    if (at) {
        llm_text_puts(&base, region);
        llm_text_puts(&base, at + sizeof mark - 1);
    }
    llm_text_puts(&path, "/model/");
    llm_add_encoded(&path, model);
    llm_text_puts(&path, "/invoke");
    char *all = base.failed || path.failed ? NULL : llm_endpoint(base.ptr, "", path.ptr);
    llm_text_free(&base);
    llm_text_free(&path);
    return all;
}

static int32_t create(const struct rung_host *host, const struct rung_options *set,
                      struct rung_error *error, void **self)
{
    struct anthropic *a = calloc(1, sizeof *a);
    if (!a)
        return llm_fail(error, RUNG_ENOMEM, "llm.memory", "no memory");
    int32_t status = anthropic_init(a, host, set, "bedrock", error);
    a->bedrock = true;
    a->base.dialect = &dialect;
    a->base.login = (struct llm_login){
        .header = "authorization", .prefix = "Bearer ", .id_header = "x-amzn-requestid"};
    a->base.endpoint =
        endpoint_of(host->opt_string(host, set, "url"), host->opt_string(host, set, "region"),
                    host->opt_string(host, set, "model"));
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
    .name = "bedrock",
    .summary = "Anthropic's models on Amazon Bedrock, with a bearer token.",
    .doc = "The model is a Bedrock id or the ARN of an inference profile. Requests are not signed "
           "(SigV4): make a Bedrock API key. Replies come whole, whatever 'stream' says.",
    .options = options,
    .ops = &llm_provider_ops,
    .validate = validate,
    .create = create,
    .start = llm_provider_start,
    .destroy = anthropic_destroy,
};

LLM_PLUGIN("org.rung.llm.bedrock", factory)
