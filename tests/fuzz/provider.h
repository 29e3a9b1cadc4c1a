/*
 * Any bytes as what a provider sent: as a whole reply of every status, as the events of a stream
 * (one a line), and as the value of every header. A reply is either a response of valid UTF-8 or an
 * error that says something. Included by one target a dialect.
 */
#ifndef TESTS_FUZZ_PROVIDER_H
#define TESTS_FUZZ_PROVIDER_H

#include "../../plugins/llm/common/repair.h"
#include "../../plugins/llm/common/reply.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *fuzz_take(const struct rung_host *host, struct rung_arena *arena, uint64_t size,
                       uint64_t align)
{
    (void)host;
    return rung_arena_alloc(arena, size, align);
}

static bool fuzz_is_text(struct rung_text text)
{
    return text.ptr && text.ptr[text.len] == 0 && rung_utf8_valid(text.ptr, text.len);
}

static bool fuzz_is_name(const char *name)
{
    return !name || fuzz_is_text(rung_text_of(name));
}

static bool fuzz_is_sound(const struct rung_llm_response *r)
{
    const struct rung_usage *u = &r->usage;
    bool sound = r->finish >= RUNG_FINISH_STOP && r->finish <= RUNG_FINISH_CONTEXT &&
                 r->n_parts >= 1 && fuzz_is_text(r->raw) && r->model && fuzz_is_name(r->model) &&
                 fuzz_is_name(r->request_id) && fuzz_is_name(r->finish_word) && u->input >= -1 &&
                 u->cache_read >= -1 && u->cache_write_5m >= -1 && u->cache_write_1h >= -1 &&
                 u->output >= -1 && u->reasoning >= -1;
    for (uint32_t i = 0; i < r->n_parts; i++)
        sound = sound && fuzz_is_text(r->parts[i].text) && fuzz_is_name(r->parts[i].id) &&
                fuzz_is_name(r->parts[i].name);
    return sound;
}

static struct llm_span fuzz_header(const struct llm_wire *wire, const char *name)
{
    (void)name;
    return wire->body;
}

static int32_t fuzz_show(void *ctx, struct rung_text delta)
{
    (void)ctx;
    if (!fuzz_is_text(delta))
        __builtin_trap();
    return delta.len == 77; /* a reader that has enough, now and then */
}

static int32_t fuzz_stream(const struct llm_dialect *dialect, struct llm_span body,
                           const struct llm_asker *asker, struct llm_reply *reply,
                           struct rung_error *error)
{
    struct llm_span line;
    int32_t status = RUNG_OK;
    while (status == RUNG_OK && !reply->through && !reply->stopped && llm_next_line(&body, &line)) {
        const bool is_error = llm_span_starts(line, "E");
        if (is_error || llm_span_starts(line, "data:")) {
            line.ptr += is_error ? 1 : 5;
            line.len -= is_error ? 1 : 5;
        }
        status = llm_reply_event(dialect, line, is_error, asker, reply, error);
    }
    if (dialect->end)
        dialect->end(asker, reply);
    return status;
}

static void fuzz_one(const struct llm_dialect *dialect, uint32_t http, bool stream,
                     const char *echo, struct llm_span body)
{
    static const struct rung_host host = {.struct_size = sizeof host, .alloc = fuzz_take};
    static struct llm_provider provider = {.host = &host, .name = "m", .login = {.id_header = "x"}};
    const struct llm_wire wire = {.status = http, .body = body, .header = fuzz_header};
    const struct llm_asker asker = {"p", "p", echo, "http://localhost/v1", "m", "env:KEY"};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .key = "code/1/0",
                                             .role = "code",
                                             .temperature = -1,
                                             .on_delta = fuzz_show};
    struct rung_error error = rung_error_init();
    struct rung_call call = {
        .struct_size = sizeof call, .arena = rung_arena_new(), .error = &error};
    struct rung_llm_response out = {.struct_size = sizeof out};
    struct llm_reply reply;
    llm_reply_init(&reply, &request);
    int32_t got = stream ? fuzz_stream(dialect, body, &asker, &reply, &error)
                         : llm_reply_read(dialect, &wire, &asker, &reply, &error);
    if (got == RUNG_OK)
        got = llm_reply_settle(&reply, &asker, &error);
    if (got &&
        (error.code != got || !error.symbol[0] || !fuzz_is_text(rung_text_of(error.message))))
        __builtin_trap();
    const int32_t filled =
        llm_reply_fill(&reply, got != RUNG_OK, &wire, &provider, &call, &request, &out);
    if (filled == RUNG_OK ? !fuzz_is_sound(&out) : !reply.failed)
        __builtin_trap();
    llm_limits(&wire);
    llm_reply_free(&reply);
    rung_arena_free(call.arena);
}

static void fuzz_dialect(const struct llm_dialect *dialect, const char *echo, const uint8_t *data,
                         size_t size)
{
    static const uint32_t statuses[] = {200, 400, 429, 500};
    const struct llm_span body = {(const char *)data, size};
    const char *word;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const struct llm_wire wire = {.status = statuses[i], .body = body};
        fuzz_one(dialect, statuses[i], false, echo, body);
        llm_repair(&wire, NULL, ~0u, "max_tokens", &word);
    }
    if (dialect->event)
        fuzz_one(dialect, 200, true, echo, body);
}

#endif
