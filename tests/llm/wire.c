/* A scripted wire for the providers' plugins; see wire.h. */
#include "wire.h"
#include "base/status.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_ANSWERS = 8, MAX_LINES = 64 };

struct answer {
    uint32_t status;
    const char *headers;
    const char *body;
    size_t n;
    int32_t broken; /* rung_status */
    const char *symbol;
};

static struct {
    struct answer answers[MAX_ANSWERS];
    size_t n_answers, next;
    char url[1024];
    char lines[MAX_LINES][512];
    size_t n_lines;
    uint32_t flags, first_byte_ms, first_event_ms, between_events_ms;
    bool asks_for_events;
    cJSON *body;
} wire;

/* ---- The service ---- */

static void keep(const struct rung_http_request *request)
{
    snprintf(wire.url, sizeof wire.url, "%s", request->url);
    wire.flags = request->flags;
    wire.first_byte_ms = request->first_byte_ms;
    wire.first_event_ms = request->first_event_ms;
    wire.between_events_ms = request->between_events_ms;
    wire.asks_for_events = request->on_event != NULL;
    wire.n_lines = 0;
    for (uint32_t i = 0; i < request->n_headers; ++i) {
        const struct rung_http_header *h = &request->headers[i];
        assert_int_equal(h->struct_size, sizeof *h);
        assert_true(wire.n_lines < MAX_LINES);
        if (h->secret)
            snprintf(wire.lines[wire.n_lines++], sizeof wire.lines[0], "%.*s: %s{%s}",
                     (int)h->name.len, h->name.ptr, h->prefix ? h->prefix : "", h->secret);
        else
            snprintf(wire.lines[wire.n_lines++], sizeof wire.lines[0], "%.*s: %.*s",
                     (int)h->name.len, h->name.ptr, (int)h->value.len, h->value.ptr);
    }
    cJSON_Delete(wire.body);
    wire.body = cJSON_ParseWithLength(request->body.ptr, request->body.len);
    assert_non_null(wire.body);
}

static void *copy(const struct rung_host *host, struct rung_call *call, const char *bytes, size_t n)
{
    char *to = host->alloc(host, call->arena, n + 1, 16);
    assert_non_null(to);
    if (n)
        memcpy(to, bytes, n);
    return to;
}

static void add_headers(const struct rung_host *host, struct rung_call *call, const char *lines,
                        struct rung_http_response *out)
{
    struct rung_http_header *headers =
        host->alloc(host, call->arena, MAX_LINES * sizeof *headers, 16);
    out->headers = headers;
    while (lines && *lines) {
        const size_t n = strcspn(lines, "\n"), name = strcspn(lines, ":");
        assert_true(name + 2 <= n);
        headers[out->n_headers++] = (struct rung_http_header){
            .struct_size = sizeof *headers,
            .name = {copy(host, call, lines, name), name},
            .value = {copy(host, call, lines + name + 2, n - name - 2), n - name - 2}};
        lines += n + 1;
    }
}

static bool is_stream(const struct rung_http_response *r)
{
    for (uint32_t i = 0; i < r->n_headers; ++i)
        if (strcasecmp(r->headers[i].name.ptr, "content-type") == 0)
            return strncmp(r->headers[i].value.ptr, "text/event-stream", 17) == 0;
    return false;
}

/* Events of lines "event: name" and "data: text", closed by an empty line. */
static bool give_events(const struct rung_http_request *request, const char *body)
{
    char name[64] = "message";
    while (*body) {
        const size_t n = strcspn(body, "\n");
        if (strncmp(body, "event: ", 7) == 0) {
            snprintf(name, sizeof name, "%.*s", (int)(n - 7), body + 7);
        } else if (strncmp(body, "data: ", 6) == 0) {
            char *data = strndup(body + 6, n - 6);
            const int32_t stop =
                request->on_event(request->ctx, (struct rung_text){name, strlen(name)},
                                  (struct rung_text){data, n - 6});
            free(data);
            snprintf(name, sizeof name, "message");
            if (stop)
                return false;
        }
        body += n + (body[n] == '\n');
    }
    return true;
}

static int32_t perform(const struct rung_host *host, struct rung_call *call,
                       const struct rung_http_request *request, struct rung_http_response *out)
{
    keep(request);
    assert_true(wire.next < wire.n_answers);
    const struct answer *a = &wire.answers[wire.next++];
    if (a->broken && !a->body)
        return rung_fail(call->error, a->broken, a->symbol, "the wire broke");
    *out = (struct rung_http_response){.struct_size = sizeof *out,
                                       .status = a->status,
                                       .body = {copy(host, call, a->body, a->n), a->n}};
    add_headers(host, call, a->headers, out);
    if (request->on_event && is_stream(out) && !give_events(request, a->body))
        return rung_fail(call->error, RUNG_ECANCELLED, "http.stopped", "stopped by on_event");
    if (a->broken)
        return rung_fail(call->error, a->broken, a->symbol, "the wire broke");
    return RUNG_OK;
}

static struct rung_text find(const struct rung_http_response *response, const char *name)
{
    for (uint32_t i = 0; i < response->n_headers; ++i)
        if (strcasecmp(response->headers[i].name.ptr, name) == 0)
            return response->headers[i].value;
    return (struct rung_text){0};
}

static const struct rung_host_http table = {
    .struct_size = sizeof table, .perform = perform, .find = find};

/* ---- The script ---- */

int32_t wire_open(struct model *model, const char *name, const char *options)
{
    static const struct rung_service services[] = {{RUNG_HOST_HTTP, &table, NULL},
                                                   {NULL, NULL, NULL}};
    cJSON_Delete(wire.body);
    memset(&wire, 0, sizeof wire);
    return model_open_with(model, name, options, services);
}

static struct answer *add(void)
{
    if (wire.next == wire.n_answers)
        wire.next = wire.n_answers = 0;
    assert_true(wire.n_answers < MAX_ANSWERS);
    struct answer *a = &wire.answers[wire.n_answers++];
    *a = (struct answer){0};
    return a;
}

void wire_answer_bytes(uint32_t status, const char *headers, const char *body, size_t n)
{
    struct answer *a = add();
    a->status = status;
    a->headers = headers;
    a->body = body;
    a->n = n;
}

void wire_answer(uint32_t status, const char *headers, const char *body)
{
    wire_answer_bytes(status, headers, body, strlen(body));
}

void wire_break(int32_t status, const char *symbol)
{
    struct answer *a = add();
    a->broken = status;
    a->symbol = symbol;
}

static const char stream_headers[] = "content-type: text/event-stream; charset=utf-8\n";

void wire_stream(const char *events)
{
    wire_answer(200, stream_headers, events);
}

void wire_cut(const char *events, int32_t status, const char *symbol)
{
    wire_stream(events);
    wire.answers[wire.n_answers - 1].broken = status;
    wire.answers[wire.n_answers - 1].symbol = symbol;
}

int32_t wire_ask_stream(struct model *model, const char *events)
{
    wire_stream(events);
    return model_ask(model, "code", "code/1/0", 1, "Write it.");
}

char *wire_golden(const char *name)
{
    char *path = support_path(GOLDEN_DIR, name);
    char *text = support_read(path, NULL);
    free(path);
    return text;
}

int32_t wire_ask(struct model *model, const char *body)
{
    wire_answer(200, NULL, body);
    return model_ask(model, "code", "code/1/0", 1, "Write it.");
}

int32_t wire_ask_golden(struct model *model, const char *name)
{
    char *body = wire_golden(name);
    const int32_t status = wire_ask(model, body);
    free(body);
    return status;
}

void wire_usage(const struct model *model, int64_t input, int64_t cache_read, int64_t write_5m,
                int64_t write_1h, int64_t output, int64_t reasoning)
{
    const struct rung_usage *u = &model->response.usage;
    assert_int_equal(u->input, input);
    assert_int_equal(u->cache_read, cache_read);
    assert_int_equal(u->cache_write_5m, write_5m);
    assert_int_equal(u->cache_write_1h, write_1h);
    assert_int_equal(u->output, output);
    assert_int_equal(u->reasoning, reasoning);
}

/* ---- What was sent ---- */

size_t wire_sent_count(void)
{
    return wire.next;
}

const char *wire_url(void)
{
    return wire.url;
}

const char *wire_header(const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < wire.n_lines; ++i)
        if (strncasecmp(wire.lines[i], name, n) == 0 && wire.lines[i][n] == ':')
            return wire.lines[i];
    return NULL;
}

uint32_t wire_flags(void)
{
    return wire.flags;
}

uint32_t wire_first_byte_ms(void)
{
    return wire.first_byte_ms;
}

const cJSON *wire_body(void)
{
    return wire.body;
}

void wire_has(const char *path, const char *json)
{
    const cJSON *at = wire.body;
    for (const char *p = path; *p;) {
        char name[64];
        const size_t n = strcspn(p, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, (int)strtol(name, NULL, 10))
                               : cJSON_GetObjectItemCaseSensitive(at, name);
        p += n + (p[n] == '.');
    }
    char *text = at ? cJSON_PrintUnformatted(at) : NULL;
    if (!text || strcmp(text, json) != 0)
        fail_msg("%s is %s, not %s", path, text ? text : "absent", json);
    free(text);
}

void wire_lacks(const char *name)
{
    if (cJSON_GetObjectItemCaseSensitive(wire.body, name))
        fail_msg("the request holds %s", name);
}

bool wire_asked_for_events(void)
{
    return wire.asks_for_events;
}

uint32_t wire_first_event_ms(void)
{
    return wire.first_event_ms;
}

uint32_t wire_between_events_ms(void)
{
    return wire.between_events_ms;
}
