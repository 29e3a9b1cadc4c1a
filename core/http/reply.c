/* What comes back: the head line by line, the body piece by piece, limits and secrets applied. */
#include "base/arena.h"
#include "base/io.h"
#include "base/status.h"
#include "http/transfer.h"

#include <string.h>
#include <strings.h>

enum { MAX_FIELDS = 1024 };

struct rung_reply_field {
    struct rung_reply_field *next;
    struct rung_text name, value;
};

/* Ends the transfer. Returns false. */
static bool stop(struct rung_transfer *t, int32_t code, const char *symbol, const char *what)
{
    t->stopped = rung_fail(t->call->error, code, symbol, "%s: %s", t->url.place, what);
    return false;
}

/* ---- The head ---- */

/* The code of "HTTP/1.1 200 OK" or "HTTP/2 200", 0 for anything else; text ends with a NUL. */
static uint32_t status_of(const char *text)
{
    const char *code = strchr(text, ' ');
    uint32_t value = 0;
    for (int i = 1; code && i <= 3; i++) {
        if (code[i] < '0' || code[i] > '9')
            return 0;
        value = value * 10 + (uint32_t)(code[i] - '0');
    }
    return value;
}

static void start_head(struct rung_transfer *t, const char *line)
{
    t->response.status = status_of(line);
    t->fields = NULL;
    t->last = &t->fields;
    t->n_fields = 0;
}

/* A text in the arena, secrets hidden, odd bytes as '?' so that it is UTF-8 on one line. */
static bool clean_text(struct rung_transfer *t, const char *text, size_t n, bool lower,
                       struct rung_text *out)
{
    struct rung_buf clean = {0};
    rung_scrub_text(&t->scrub, text, n, &clean);
    bool utf8 = rung_utf8_valid(rung_buf_text(&clean), clean.len);
    char *copy = rung_arena_alloc(t->call->arena, clean.len + 1, 1);
    for (size_t i = 0; copy && i < clean.len; i++) {
        unsigned char c = (unsigned char)clean.ptr[i];
        if ((c < 32 && c != '\t') || c == 127 || (c > 127 && !utf8))
            c = '?';
        copy[i] = (char)(lower && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    *out = (struct rung_text){copy, clean.len};
    rung_buf_free(&clean);
    return copy != NULL;
}

/* Adds "name: value"; a line without a colon (a folded one too, which RFC 9112 forbids) is skipped.
 */
static bool add_field(struct rung_transfer *t, const char *line, size_t n)
{
    const char *colon = memchr(line, ':', n);
    if (!colon || line[0] == ' ' || line[0] == '\t')
        return true;
    const char *value = colon + 1, *end = line + n;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    struct rung_reply_field *field =
        rung_arena_alloc(t->call->arena, sizeof *field, _Alignof(struct rung_reply_field));
    if (!field || !clean_text(t, line, (size_t)(colon - line), true, &field->name) ||
        !clean_text(t, value, (size_t)(end - value), false, &field->value))
        return false;
    *t->last = field;
    t->last = &field->next;
    t->n_fields++;
    return true;
}

/* The list as the array of the response. */
static bool publish_fields(struct rung_transfer *t)
{
    struct rung_http_header *headers = rung_arena_alloc(
        t->call->arena, (t->n_fields + 1) * sizeof *headers, _Alignof(struct rung_http_header));
    if (!headers)
        return false;
    uint32_t n = 0;
    for (const struct rung_reply_field *f = t->fields; f; f = f->next)
        headers[n++] = (struct rung_http_header){
            .struct_size = sizeof *headers, .name = f->name, .value = f->value};
    t->response.headers = headers;
    t->response.n_headers = n;
    return true;
}

/* The value up to parameters such as "; charset=utf-8", in any case, is `word`. */
static bool is_word(struct rung_text value, const char *word)
{
    size_t n = 0, end = strlen(word);
    while (n < value.len && !strchr("; \t", value.ptr[n]))
        n++;
    return n == end && strncasecmp(value.ptr, word, end) == 0;
}

/* Whether the body is a stream of events that the caller wants. */
static bool brings_events(const struct rung_transfer *t)
{
    struct rung_text coding = rung_reply_find(&t->response, "content-encoding");
    return t->request.on_event && t->response.status / 100 == 2 &&
           is_word(rung_reply_find(&t->response, "content-type"), "text/event-stream") &&
           (t->decodes || coding.len == 0 || is_word(coding, "identity"));
}

/* The blank line: the head is whole, unless it was that of an interim reply (1xx). */
static bool end_head(struct rung_transfer *t)
{
    if (t->response.status / 100 == 1) {
        t->response.status = 0;
        return true;
    }
    t->head_done = true;
    if (!publish_fields(t))
        return stop(t, RUNG_ENOMEM, "http.memory", "the arena is full");
    t->is_events = brings_events(t);
    t->events.max_bytes = t->request.max_event_bytes;
    if (t->request.on_head && t->request.on_head(t->request.ctx, &t->response) != 0)
        return stop(t, RUNG_ECANCELLED, "http.stopped",
                    "the caller stopped at the head of the reply");
    return true;
}

bool rung_reply_line(struct rung_transfer *t, const char *line, size_t n)
{
    if (t->head_done)
        return true; /* trailers */
    t->head_bytes += n;
    if (t->head_bytes > RUNG_HTTP_HEAD_BYTES || t->n_fields == MAX_FIELDS)
        return stop(t, RUNG_EIO, "http.too_large",
                    "the reply's headers are above 256 KiB or 1024 lines");
    size_t len = n;
    while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
        len--;
    if (len == 0)
        return end_head(t);
    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        char first[32] = "";
        memcpy(first, line, len < sizeof first - 1 ? len : sizeof first - 1);
        start_head(t, first);
        return true;
    }
    return add_field(t, line, len) || stop(t, RUNG_ENOMEM, "http.memory", "the arena is full");
}

/* ---- The body ---- */

static int32_t pass_event(void *transfer, struct rung_text name, struct rung_text data)
{
    struct rung_transfer *t = transfer;
    int32_t stopped = t->request.on_event(t->request.ctx, name, data);
    t->event_ns = rung_now_ns();
    return stopped;
}

static bool hand_out_events(struct rung_transfer *t, struct rung_text piece)
{
    switch (rung_events_feed(&t->events, piece.ptr, piece.len, pass_event, t)) {
    case RUNG_EVENTS_STOPPED:
        return stop(t, RUNG_ECANCELLED, "http.stopped", "the caller stopped at an event");
    case RUNG_EVENTS_TOO_LARGE:
        return stop(t, RUNG_EIO, "http.too_large", "an event is above its limit");
    case RUNG_EVENTS_FED:
        break;
    }
    return true;
}

/* Hands out the body's bytes from `from` on; false when the caller stops. */
static bool hand_out(struct rung_transfer *t, size_t from)
{
    if (t->response.status / 100 != 2 || t->body.len == from)
        return true;
    struct rung_text piece = {t->body.ptr + from, t->body.len - from};
    if (t->request.on_data && t->request.on_data(t->request.ctx, piece) != 0)
        return stop(t, RUNG_ECANCELLED, "http.stopped", "the caller stopped amid the reply");
    if (t->is_events && !hand_out_events(t, piece))
        return false;
    if (t->is_events && t->request.flags & RUNG_HTTP_EVENTS_ONLY)
        t->body.len = 0;
    return true;
}

bool rung_reply_data(struct rung_transfer *t, const char *bytes, size_t n)
{
    size_t from = t->body.len;
    if (!t->response.first_byte_ns)
        t->response.first_byte_ns = rung_now_ns() - t->begin_ns;
    if (n > t->request.max_response_bytes - t->received)
        return stop(t, RUNG_EIO, "http.too_large", "the reply is above its limit");
    t->received += n;
    rung_scrub_feed(&t->scrub, bytes, n, &t->body);
    if (!hand_out(t, from))
        return false;
    t->data_ns = rung_now_ns();
    return true;
}

bool rung_reply_end(struct rung_transfer *t)
{
    size_t from = t->body.len;
    rung_scrub_end(&t->scrub, &t->body);
    return hand_out(t, from);
}

bool rung_reply_body(struct rung_transfer *t)
{
    char *copy = rung_arena_alloc(t->call->arena, t->body.len + 1, 1);
    if (!copy)
        return false;
    if (t->body.len)
        memcpy(copy, t->body.ptr, t->body.len);
    t->response.body = (struct rung_text){copy, t->body.len};
    return true;
}

struct rung_text rung_reply_find(const struct rung_http_response *response, const char *name)
{
    size_t n = strlen(name);
    for (uint32_t i = 0; i < response->n_headers; i++) {
        const struct rung_http_header *h =
            (const void *)((const char *)response->headers +
                           (size_t)i * response->headers[0].struct_size);
        if (h->name.len == n && strncasecmp(h->name.ptr, name, n) == 0)
            return h->value;
    }
    return (struct rung_text){NULL, 0};
}
