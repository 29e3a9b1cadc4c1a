/*
 * llm_replay: serves replies that were recorded before, by request key, from a cassette
 * (cassette.c). The cassette is read in start() and immutable after, so that calls may run at once.
 */
#include "../common/prompt_hash.h"
#include "../common/text.h"
#include "cassette.h"
#include <stdlib.h>
#include <string.h>

struct replay {
    const struct rung_host *host;
    char *path;
    bool strict;
    struct cassette *cassette; /* NULL before start */
};

static int32_t complete(void *self, struct rung_call *call, const struct rung_llm_request *request,
                        struct rung_llm_response *out)
{
    const struct replay *replay = self;
    const int32_t status = llm_check_request(request, call->error);
    if (status != RUNG_OK)
        return status;
    const struct cassette_entry *entry = cassette_find(replay->cassette, request->key);
    if (!entry)
        return llm_fail(call->error, RUNG_ENOTFOUND, "replay.no_key",
                        "no reply with key %s in %s (%u replies)", request->key, replay->path,
                        cassette_count(replay->cassette));
    char hash[LLM_SHA256_HEX];
    llm_prompt_sha256(request, hash);
    if (entry->prompt_sha256[0] && strcmp(entry->prompt_sha256, hash) != 0) {
        if (replay->strict)
            return llm_fail(call->error, RUNG_ENOTFOUND, "replay.other_prompt",
                            "%s:%u: key %s was recorded for another prompt (%.12s, now %.12s)",
                            replay->path, entry->line, request->key, entry->prompt_sha256, hash);
        llm_log(replay->host, RUNG_LOG_WARN, "%s:%u: key %s was recorded for another prompt",
                replay->path, entry->line, request->key);
    }
    const int32_t answer = llm_answer(replay->host, call, request, entry->reply, entry->reply_len,
                                      entry->finish, entry->model, out);
    if (answer == RUNG_OK && !entry->usage.estimated)
        out->usage = entry->usage;
    return answer;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *error, void **self)
{
    struct replay *replay = calloc(1, sizeof *replay);
    if (replay)
        replay->path = strdup(host->opt_string(host, options, "cassette"));
    if (!replay || !replay->path) {
        free(replay);
        return llm_fail(error, RUNG_ENOMEM, "replay.memory", "no memory");
    }
    replay->host = host;
    replay->strict = host->opt_int(host, options, "strict") != 0;
    *self = replay;
    return RUNG_OK;
}

static int32_t start(void *self, struct rung_error *error)
{
    struct replay *replay = self;
    return cassette_open(replay->path, &replay->cassette, error);
}

static void stop(void *self)
{
    struct replay *replay = self;
    cassette_free(replay->cassette);
    replay->cassette = NULL;
}

static void destroy(void *self)
{
    struct replay *replay = self;
    cassette_free(replay->cassette);
    free(replay->path);
    free(replay);
}

static const struct rung_option opt_cassette = {
    .struct_size = sizeof opt_cassette,
    .type = RUNG_OPT_PATH,
    .flags = RUNG_OPT_REQUIRED,
    .name = "cassette",
    .summary = "File of recorded replies, one JSON object a line.",
};
static const struct rung_option opt_strict = {
    .struct_size = sizeof opt_strict,
    .type = RUNG_OPT_BOOL,
    .name = "strict",
    .default_text = "false",
    .summary = "Refuse a reply that was recorded for another prompt instead of warning.",
};
static const struct rung_option *const options[] = {&opt_cassette, &opt_strict, NULL};

static const struct rung_llm_ops ops = {.struct_size = sizeof ops, .complete = complete};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .capabilities = RUNG_LLM_FREE,
    .kind = RUNG_KIND_LLM,
    .name = "replay",
    .summary = "Serves recorded replies by request key.",
    .doc = "The cassette's first line is {\"rung_cassette\": 1, ...}; each further line holds key, "
           "role, "
           "prompt_sha256, reply, finish, model and usage. prompt_sha256 covers the request's role "
           "and, "
           "for each message, its role's name and the texts of its text parts, joined by newlines.",
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
    .id = "org.rung.llm.replay",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
