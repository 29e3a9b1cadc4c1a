/*
 * libFuzzer: any bytes as a reply, of any status, to each provider's plugin. Built with the readers
 * of the plugins; a reply is either a response of valid UTF-8 or an error that says something. The
 * bytes are taken as a retry-after header too.
 */
#include "../../plugins/llm/anthropic/reply.h"
#include "../../plugins/llm/gemini/reply.h"
#include "../../plugins/llm/openai/reply.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *take(const struct rung_host *host, struct rung_arena *arena, uint64_t size,
                  uint64_t align)
{
    (void)host;
    return rung_arena_alloc(arena, size, align);
}

static bool is_text(struct rung_text text)
{
    return text.ptr && text.ptr[text.len] == 0 && rung_utf8_valid(text.ptr, text.len);
}

static bool is_sound(const struct rung_llm_response *r)
{
    const struct rung_usage *u = &r->usage;
    return r->finish >= RUNG_FINISH_STOP && r->finish <= RUNG_FINISH_CONTEXT && r->n_parts == 1 &&
           is_text(r->parts[0].text) && is_text(r->raw) && is_text(rung_text_of(r->model)) &&
           (!r->request_id || is_text(rung_text_of(r->request_id))) && u->input >= -1 &&
           u->cache_read >= -1 && u->cache_write_5m >= -1 && u->cache_write_1h >= -1 &&
           u->output >= -1 && u->reasoning >= -1;
}

static void read_one(const struct llm_dialect *dialect, const char *plugin, uint32_t status,
                     struct llm_span body)
{
    static const struct rung_host host = {.struct_size = sizeof host, .alloc = take};
    const struct llm_wire wire = {
        .status = status, .body = body, .retry_after = body, .request_id = body, .location = body};
    const struct llm_asker asker = {plugin, "http://localhost/v1", "m", "env:KEY"};
    const struct rung_llm_request request = {
        .struct_size = sizeof request, .key = "code/1/0", .role = "code", .temperature = -1};
    struct rung_error error = rung_error_init();
    struct rung_call call = {
        .struct_size = sizeof call, .arena = rung_arena_new(), .error = &error};
    struct rung_llm_response out = {.struct_size = sizeof out};
    const int32_t got = llm_reply_read(dialect, &wire, &asker, &host, &call, &request, &out);
    if (got ? error.code != got || !error.symbol[0] || !is_text(rung_text_of(error.message))
            : !is_sound(&out))
        __builtin_trap();
    rung_arena_free(call.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t statuses[] = {200, 400, 429, 500};
    const struct llm_span body = {(const char *)data, size};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const struct llm_wire wire = {.status = statuses[i], .body = body};
        read_one(&openai_dialect, "openai", statuses[i], body);
        read_one(&anthropic_dialect, "anthropic", statuses[i], body);
        read_one(&gemini_dialect, "gemini", statuses[i], body);
        openai_refuses_cap(&wire, "max_tokens");
    }
    return 0;
}
