/* Follows a transfer on the thread of its caller: what comes, limits and the cancel flag, and what
 * libcurl's errors mean. */
#include "http/transfer.h"
#include "base/io.h"
#include "base/status.h"
#include "plugin/instance.h"

#include <string.h>

static const uint64_t ms = 1000 * 1000;

/* ---- Limits ---- */

struct limit {
    uint64_t at_ns;
    const char *symbol, *what;
    uint32_t ms; /* 0: the call's deadline */
};

static void earlier(struct limit *limit, struct limit other)
{
    if (other.at_ns < limit->at_ns)
        *limit = other;
}

/* The one that comes first, as things stand; of equal ones the more general. */
static struct limit next_limit(const struct rung_transfer *t)
{
    const struct rung_http_request *r = &t->request;
    struct limit next = {UINT64_MAX, NULL, NULL, 0};
    if (t->call->deadline_ns)
        next = (struct limit){t->call->deadline_ns, "http.deadline", NULL, 0};
    if (t->data_ns)
        earlier(&next, (struct limit){t->data_ns + r->between_bytes_ms * ms, "http.stalled",
                                      "the reply fell silent for", r->between_bytes_ms});
    else
        earlier(&next, (struct limit){t->begin_ns + r->first_byte_ms * ms, "http.first_byte",
                                      "no reply within", r->first_byte_ms});
    if (!r->on_event || (t->head_done && !t->is_events))
        return next;
    if (!t->event_ns)
        earlier(&next, (struct limit){t->begin_ns + r->first_event_ms * ms, "http.first_event",
                                      "no event within", r->first_event_ms});
    else if (r->between_events_ms)
        earlier(&next,
                (struct limit){t->event_ns + r->between_events_ms * ms, "http.between_events",
                               "no further event within", r->between_events_ms});
    return next;
}

/* Whether it is time to end: t->stopped then. */
static bool is_due(struct rung_transfer *t)
{
    const struct limit limit = next_limit(t);
    struct rung_error *err = t->call->error;
    if (rung_cancel_requested(t->call->cancel))
        t->stopped =
            rung_fail(err, RUNG_ECANCELLED, "http.cancelled", "%s: cancelled", t->url.place);
    else if (rung_now_ns() < limit.at_ns)
        return false;
    else if (limit.ms)
        t->stopped = rung_fail(err, RUNG_ETIMEOUT, limit.symbol, "%s: %s %u ms", t->url.place,
                               limit.what, limit.ms);
    else
        t->stopped = rung_fail(err, RUNG_ETIMEOUT, limit.symbol, "%s: the call's deadline passed",
                               t->url.place);
    return true;
}

/* ---- libcurl's codes ---- */

struct meaning {
    CURLcode code;
    int32_t status;
    const char *symbol;
};

static struct meaning meaning_of(CURLcode code)
{
    static const struct meaning meanings[] = {
        {CURLE_COULDNT_RESOLVE_HOST, RUNG_EUNAVAILABLE, "http.resolve"},
        {CURLE_COULDNT_RESOLVE_PROXY, RUNG_EUNAVAILABLE, "http.resolve"},
        {CURLE_COULDNT_CONNECT, RUNG_EUNAVAILABLE, "http.connect"},
        {CURLE_SSL_CONNECT_ERROR, RUNG_EUNAVAILABLE, "http.tls"},
        {CURLE_PEER_FAILED_VERIFICATION, RUNG_EUNAVAILABLE, "http.tls"},
        {CURLE_SSL_ENGINE_NOTFOUND, RUNG_EUNAVAILABLE, "http.tls"},
        {CURLE_SSL_CERTPROBLEM, RUNG_EUNAVAILABLE, "http.tls"},
        {CURLE_SSL_CIPHER, RUNG_EUNAVAILABLE, "http.tls"},
        {CURLE_SSL_CACERT_BADFILE, RUNG_EUNAVAILABLE, "http.tls"},
        {CURLE_SSL_ISSUER_ERROR, RUNG_EUNAVAILABLE, "http.tls"},
        {CURLE_SSL_INVALIDCERTSTATUS, RUNG_EUNAVAILABLE, "http.tls"},
        {CURLE_UNSUPPORTED_PROTOCOL, RUNG_EUNAVAILABLE, "http.library"},
        {CURLE_OPERATION_TIMEDOUT, RUNG_ETIMEOUT,
         "http.connect_timeout"}, /* its only limit is that */
        {CURLE_OUT_OF_MEMORY, RUNG_ENOMEM, "http.memory"},
    };
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].code == code)
            return meanings[i];
    return (struct meaning){code, RUNG_EIO, "http.broken"};
}

static int32_t translate(struct rung_transfer *t, CURLcode code)
{
    struct meaning m = meaning_of(code);
    const char *detail = t->detail[0] ? t->detail : t->curl->easy_strerror(code);
    if (code == CURLE_UNSUPPORTED_PROTOCOL && t->starts) /* the answer was no HTTP */
        m = meaning_of(CURLE_WEIRD_SERVER_REPLY);
    if (t->starts > 1)
        detail = "the connection, kept from an earlier request, closed before a reply began";
    return rung_fail(t->call->error, m.status, m.symbol, "%s: %s", t->url.place, detail);
}

/* ---- The way ---- */

/* What libcurl's callbacks put into the pipe (prepare.c); false when the transfer shall end. */
static bool read_records(struct rung_transfer *t, const struct rung_buf *records)
{
    enum rung_pipe_kind kind;
    char *bytes;
    size_t n, at = 0;
    bool fine = true;
    while (fine && rung_pipe_next(records, &at, &kind, &bytes, &n))
        fine = kind == RUNG_PIPE_LINE ? rung_reply_line(t, bytes, n) : rung_reply_data(t, bytes, n);
    return fine;
}

/* The transfer came to its end by itself, or the process comes to its own. */
static int32_t end_of(struct rung_transfer *t)
{
    if (t->flight.pipe.dismissed)
        return rung_fail(t->call->error, RUNG_ECANCELLED, "http.cancelled",
                         "%s: the process is about to end", t->url.place);
    if (t->flight.pipe.result != CURLE_OK)
        return translate(t, t->flight.pipe.result);
    return rung_reply_end(t) ? RUNG_OK : t->stopped;
}

/* Until the end, or until something ends it: a limit, a cancel, the caller. */
static int32_t follow(struct rung_transfer *t, struct rung_buf *records)
{
    for (;;) {
        enum rung_pipe_news news = rung_pipe_take(&t->flight.pipe, records, next_limit(t).at_ns);
        if (news == RUNG_PIPE_OVER)
            return end_of(t);
        if (news == RUNG_PIPE_ROOM)
            rung_loop_resume(&t->flight);
        if (!read_records(t, records))
            return t->stopped;
        if (is_due(t))
            return t->stopped;
    }
}

/* libcurl counts from when it got the transfer; one on a kept connection connects in no time. */
static void note_times(struct rung_transfer *t)
{
    curl_off_t tcp_us = 0, tls_us = 0, sent_us = 0;
    t->curl->easy_getinfo(t->flight.easy, CURLINFO_CONNECT_TIME_T, &tcp_us);
    t->curl->easy_getinfo(t->flight.easy, CURLINFO_APPCONNECT_TIME_T, &tls_us);
    t->curl->easy_getinfo(t->flight.easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
    curl_off_t us = tls_us > tcp_us ? tls_us : tcp_us ? tcp_us : sent_us;
    if (us)
        t->response.connect_ns = (uint64_t)us * 1000 + t->entered_ns - t->begin_ns;
    t->response.total_ns = rung_now_ns() - t->begin_ns;
}

static int32_t fly(struct rung_transfer *t)
{
    struct rung_buf records = {0};
    if (is_due(t))
        return t->stopped;
    t->entered_ns = rung_now_ns();
    int32_t status = rung_loop_enter(t->curl, &t->flight, t->call->error);
    if (status != RUNG_OK)
        return status;
    status = follow(t, &records);
    rung_loop_leave(&t->flight);
    if (records.ptr)
        explicit_bzero(records.ptr, records.cap);
    rung_buf_free(&records);
    return status;
}

int32_t rung_transfer_run(struct rung_transfer *t)
{
    int32_t status = fly(t);
    note_times(t);
    bool kept = rung_reply_body(t);
    if (status == RUNG_OK && !kept)
        return rung_fail(t->call->error, RUNG_ENOMEM, "http.memory", "%s: the arena is full",
                         t->url.place);
    return status;
}
