/* The one call of a provider's plugin: send, read whole or in pieces, repair once; see provider.h.
 */
#include "repair.h"
#include "reply.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADERS = 32, MAX_REPLY = 64 << 20, MAX_EVENT = 8 << 20 };

/* One call, and its try at work. */
struct exchange {
    const struct llm_provider *p;
    struct rung_call *call;
    const struct rung_llm_request *request;
    struct rung_llm_response *out;
    struct llm_asker asker;
    struct llm_ask ask;
    struct llm_reply reply;
    struct rung_http_response http;
    struct llm_wire wire;
    struct rung_error error; /* of the event that ended the stream */
    bool events;             /* there was one */
    uint64_t begin_ns, first_ns;
};

/* ---- Headers ---- */

static struct rung_http_header header_of(struct llm_span name, struct llm_span value)
{
    return (struct rung_http_header){.struct_size = sizeof(struct rung_http_header),
                                     .name = {name.ptr, name.len},
                                     .value = {value.ptr, value.len}};
}

static struct rung_http_header header_text(const char *name, const char *value)
{
    return header_of((struct llm_span){name, strlen(name)},
                     (struct llm_span){value, strlen(value)});
}

static uint32_t fill_headers(const struct llm_provider *p, bool stream,
                             struct rung_http_header headers[MAX_HEADERS + 4])
{
    struct llm_span name, value;
    uint32_t n = 0;
    headers[n++] = header_text("content-type", "application/json");
    if (stream)
        headers[n++] = header_text("accept", "text/event-stream");
    if (p->key[0]) {
        headers[n] = header_text(p->login.header, "");
        headers[n].secret = p->key;
        headers[n++].prefix = p->login.prefix;
    }
    if (p->login.name[0])
        headers[n++] = header_text(p->login.name[0], p->login.name[1]);
    for (uint32_t i = 0; i < p->n_headers && i < MAX_HEADERS; ++i)
        if (llm_split(p->headers[i], ':', &name, &value))
            headers[n++] = header_of(name, value);
    return n;
}

static struct llm_span find_header(const struct llm_wire *wire, const char *name)
{
    const struct rung_host_http *http = wire->ctx;
    const struct rung_text value = http->find(wire->reply, name);
    return (struct llm_span){value.ptr, value.len};
}

/* ---- Over the wire ---- */

/* [the calling thread] Non-zero ends the transfer: at the stream's last event, since some servers
 * leave the connection open behind it, at an error, or when the reader of the text has enough. */
static int32_t on_event(void *ctx, struct rung_text name, struct rung_text data)
{
    struct exchange *x = ctx;
    const bool is_error = llm_span_is((struct llm_span){name.ptr, name.len}, "error");
    x->events = true;
    const int32_t status = llm_reply_event(x->p->dialect, (struct llm_span){data.ptr, data.len},
                                           is_error, &x->asker, &x->reply, x->call->error);
    if (status != RUNG_OK)
        x->error = *x->call->error;
    if (x->reply.began && !x->first_ns)
        x->first_ns = x->p->host->now_ns(x->p->host) - x->begin_ns;
    return status != RUNG_OK || x->reply.through || x->reply.stopped;
}

/* The body as text on the heap (free), with the user's own fields put over it. */
static char *print_body(const struct llm_provider *p, struct llm_body *body)
{
    struct llm_span path, value;
    for (uint32_t i = 0; i < p->n_extras; ++i)
        if (!llm_split(p->extras[i], '=', &path, &value) || !llm_body_set(body, path, value))
            return NULL;
    return body->failed ? NULL : cJSON_PrintUnformatted(body->root);
}

static uint32_t in_ms(double a, double b)
{
    return (uint32_t)((a < b ? a : b) * 1e3);
}

static int32_t perform(struct exchange *x, const struct rung_http_request *request)
{
    struct rung_call timed = *x->call;
    const uint64_t end = x->p->host->now_ns(x->p->host) + (uint64_t)(x->p->timeout_s * 1e9);
    if (!timed.deadline_ns || end < timed.deadline_ns)
        timed.deadline_ns = end;
    return x->p->http->perform(x->p->host, &timed, request, &x->http);
}

static int32_t post(struct exchange *x, const char *text)
{
    const struct llm_provider *p = x->p;
    struct rung_http_header headers[MAX_HEADERS + 4];
    const uint32_t whole_ms = in_ms(p->timeout_s, p->timeout_s);
    const uint32_t wait_ms = x->ask.stream ? in_ms(p->timeout_s, p->silence_s) : whole_ms;
    const struct rung_http_request request = {
        .struct_size = sizeof request,
        .flags = p->allow_plain ? (uint32_t)RUNG_HTTP_ALLOW_PLAIN : 0,
        .method = "POST",
        .url = x->ask.stream && p->stream_endpoint ? p->stream_endpoint : p->endpoint,
        .headers = headers,
        .n_headers = fill_headers(p, x->ask.stream, headers),
        .first_byte_ms = wait_ms,
        .between_bytes_ms = wait_ms,
        .max_response_bytes = MAX_REPLY,
        .body = {text, strlen(text)},
        .ctx = x,
        .on_event = x->ask.stream ? on_event : NULL,
        .first_event_ms = wait_ms,
        .between_events_ms = wait_ms,
        .max_event_bytes = MAX_EVENT,
    };
    x->http = (struct rung_http_response){.struct_size = sizeof x->http};
    const int32_t status = perform(x, &request);
    x->wire = (struct llm_wire){.status = x->http.status,
                                .body = {x->http.body.ptr, x->http.body.len},
                                .header = find_header,
                                .ctx = p->http,
                                .reply = &x->http};
    return status;
}

static int32_t send(struct exchange *x)
{
    struct llm_body body = llm_body_new();
    x->p->dialect->build(&x->ask, &body);
    char *text = print_body(x->p, &body);
    llm_body_free(&body);
    if (!text)
        return llm_fail(x->call->error, RUNG_ENOMEM, "llm.memory", "no memory for the request");
    x->out->tries++;
    const int32_t status = post(x, text);
    free(text);
    x->out->limits = llm_limits(&x->wire);
    return status;
}

/* ---- What came of it ---- */

/* The error of the stream's reader, which the transfer's own end has written over. */
static int32_t restore(struct exchange *x)
{
    *x->call->error = x->error;
    return x->error.code;
}

static int32_t read_stream(struct exchange *x, int32_t status)
{
    const bool broke = status == RUNG_EIO || status == RUNG_ETIMEOUT;
    if (x->error.code != RUNG_OK)
        return restore(x);
    if (x->reply.stopped)
        return llm_fail(x->call->error, RUNG_ECANCELLED, "llm.stopped",
                        "the reader of the reply stopped it");
    if (x->reply.through || ((status == RUNG_OK || broke) && x->reply.ended))
        return RUNG_OK;
    if (status != RUNG_OK)
        return status;
    return llm_fail(x->call->error, RUNG_EIO, "http.broken",
                    "%s: the stream ended before the reply did", x->p->plugin);
}

static int32_t read_reply(struct exchange *x, int32_t status)
{
    if (x->events)
        return read_stream(x, status);
    if (status != RUNG_OK)
        return status;
    status = llm_reply_read(x->p->dialect, &x->wire, &x->asker, &x->reply, x->call->error);
    if (status == RUNG_OK && x->reply.stopped)
        status = llm_fail(x->call->error, RUNG_ECANCELLED, "llm.stopped",
                          "the reader of the reply stopped it");
    return status;
}

/* A prompt that the server counts at an eighth of its bytes was most likely cut (Ollama does). */
static void warn_of_cut(const struct exchange *x)
{
    enum { FEWEST_BYTES = 16384, BYTES_A_TOKEN = 8 };
    const struct rung_usage *u = &x->out->usage;
    uint64_t bytes = 0;
    for (uint32_t m = 0; m < x->request->n_messages; ++m)
        for (uint32_t p = 0; p < x->request->messages[m].n_parts; ++p)
            bytes += x->request->messages[m].parts[p].text.len;
    const int64_t counted = u->input + (u->cache_read > 0 ? u->cache_read : 0) +
                            (u->cache_write_5m > 0 ? u->cache_write_5m : 0) +
                            (u->cache_write_1h > 0 ? u->cache_write_1h : 0);
    if (u->estimated || u->input < 0 || bytes < FEWEST_BYTES ||
        (uint64_t)counted * BYTES_A_TOKEN >= bytes)
        return;
    llm_log(x->p->host, RUNG_LOG_WARN,
            "request %s: the server counts %lld tokens for a prompt of %llu bytes; its context may "
            "be too small, so that it cut the prompt",
            x->request->key, (long long)counted, (unsigned long long)bytes);
}

/* The response, good or cut; an error keeps its message. */
static int32_t finish(struct exchange *x, int32_t status)
{
    if (x->events && x->p->dialect->end)
        x->p->dialect->end(&x->asker, &x->reply);
    if (status == RUNG_OK)
        status = llm_reply_settle(&x->reply, &x->asker, x->call->error);
    const struct rung_error kept = *x->call->error;
    const bool cut = status != RUNG_OK;
    if (x->events || !cut) {
        const int32_t filled = llm_reply_fill(&x->reply, cut && x->events, &x->wire, x->p, x->call,
                                              x->request, x->out);
        status = cut ? status : filled;
        x->out->first_token_ns = x->first_ns;
    } else {
        struct llm_reply nothing = x->reply;
        nothing.n_pieces = 0;
        llm_reply_fill(&nothing, false, &x->wire, x->p, x->call, x->request, x->out);
        x->out->usage = x->reply.usage;
    }
    if (status == RUNG_OK)
        warn_of_cut(x);
    if (cut)
        *x->call->error = kept;
    else if (status == RUNG_OK)
        *x->call->error = (struct rung_error){.struct_size = kept.struct_size};
    return status;
}

/* ---- Repair ---- */

/* The knob that this reply turns away, and its name; 0: none. */
static uint32_t refused(struct exchange *x, const char **word)
{
    const char *why;
    uint32_t sent = x->ask.sent;
    struct llm_turned_away away;
    struct rung_error quiet = {.struct_size = sizeof quiet};
    if (x->events || (x->wire.status != 400 && x->wire.status != 422))
        return 0;
    if (x->p->cap_fixed)
        sent &= ~(uint32_t)LLM_CAP;
    cJSON *json = llm_json_parse(x->wire.body, &why);
    /* Only what is no other fault: a prompt that is too long may well name max_tokens. */
    const int32_t fault = llm_fault_read(&x->wire, json, &x->asker, &away, &quiet);
    const uint32_t knob = fault == RUNG_ECONFIG && strcmp(quiet.symbol, "llm.request") == 0
                              ? llm_repair(&x->wire, json, sent, llm_cap_name(&x->ask), word)
                              : 0;
    cJSON_Delete(json);
    return knob;
}

static void begin_try(struct exchange *x, uint32_t learned)
{
    const uint32_t known = x->p->model.refuses | learned;
    x->ask = (struct llm_ask){.provider = x->p, .request = x->request, .drop = known};
    x->ask.stream = x->p->stream && x->p->dialect->event && llm_may(&x->ask, LLM_STREAM);
    llm_reply_free(&x->reply);
    llm_reply_init(&x->reply, x->request);
    x->events = false;
    x->error = (struct rung_error){.struct_size = sizeof x->error};
}

/* The name of the cap is changed once for all calls that found out together. */
static void swap_cap(struct llm_provider *p, uint32_t learned)
{
    uint32_t now = atomic_load(&p->learned);
    while (((now ^ learned) & LLM_CAP) == 0 &&
           !atomic_compare_exchange_weak(&p->learned, &now, now ^ LLM_CAP))
        ;
}

/* learned: what the call knew when it began. */
static void remember(struct llm_provider *p, uint32_t knob, uint32_t learned, const char *word)
{
    if (knob == LLM_CAP)
        swap_cap(p, learned);
    else
        atomic_fetch_or(&p->learned, knob);
    llm_log(p->host, RUNG_LOG_INFO,
            "the server doesn't take %s as it was sent; it is %s from now on", word,
            knob & (LLM_CAP | LLM_ROLE) ? "renamed" : "left out");
}

static int32_t complete(void *self, struct rung_call *call, const struct rung_llm_request *request,
                        struct rung_llm_response *out)
{
    struct llm_provider *p = self;
    const char *word = NULL;
    *out = (struct rung_llm_response){.struct_size = sizeof *out, .usage = llm_no_usage()};
    struct exchange x = {.p = p,
                         .call = call,
                         .request = request,
                         .out = out,
                         .asker = llm_provider_asker(p),
                         .begin_ns = p->host->now_ns(p->host)};
    int32_t status = llm_turns_check(request, call->error);
    if (status != RUNG_OK)
        return status;
    const uint32_t learned = atomic_load(&p->learned);
    begin_try(&x, learned);
    status = send(&x);
    const uint32_t knob = status == RUNG_OK ? refused(&x, &word) : 0;
    if (knob) {
        begin_try(&x, learned ^ knob);
        status = send(&x);
        if (x.wire.status >= 200 && x.wire.status < 300) {
            remember(p, knob, learned, word);
            out->repaired = word;
        }
    }
    status = finish(&x, read_reply(&x, status));
    llm_reply_free(&x.reply);
    return status;
}

const struct rung_llm_ops llm_provider_ops = {.struct_size = sizeof llm_provider_ops,
                                              .complete = complete};
