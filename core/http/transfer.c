/* Drives a transfer: limits and the cancel flag between pieces, libcurl's answer to our errors. */
#include "http/transfer.h"
#include "base/io.h"
#include "base/status.h"
#include "plugin/instance.h"

#include <string.h>

enum { SLICE_MS = 50 /* how long a cancel may go unseen */ };
static const uint64_t ms = 1000 * 1000;

/* ---- Limits ---- */

static int32_t late(struct rung_transfer *t, const char *symbol, const char *what,
                    uint32_t limit_ms)
{
    t->stopped = rung_fail(t->call->error, RUNG_ETIMEOUT, symbol, "%s: %s %u ms", t->url.place,
                           what, limit_ms);
    return t->stopped;
}

/* Whether it is time to end (t->stopped); else *wait_ms is how long nothing need be looked at. */
static int32_t check_limits(struct rung_transfer *t, int *wait_ms)
{
    const struct rung_http_request *r = &t->request;
    uint64_t now = rung_now_ns(), deadline = t->call->deadline_ns;
    uint64_t silent =
        t->data_ns ? t->data_ns + r->between_bytes_ms * ms : t->begin_ns + r->first_byte_ms * ms;
    if (rung_cancel_requested(t->call->cancel))
        return t->stopped = rung_fail(t->call->error, RUNG_ECANCELLED, "http.cancelled",
                                      "%s: cancelled", t->url.place);
    if (deadline && now >= deadline)
        return t->stopped = rung_fail(t->call->error, RUNG_ETIMEOUT, "http.deadline",
                                      "%s: the call's deadline passed", t->url.place);
    if (now >= silent && t->data_ns)
        return late(t, "http.stalled", "the reply fell silent for", r->between_bytes_ms);
    if (now >= silent)
        return late(t, "http.first_byte", "no reply within", r->first_byte_ms);
    uint64_t next = deadline && deadline < silent ? deadline : silent;
    uint64_t left = (next - now) / ms + 1;
    *wait_ms = left < SLICE_MS ? (int)left : SLICE_MS;
    return RUNG_OK;
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
    return rung_fail(t->call->error, m.status, m.symbol, "%s: %s", t->url.place, detail);
}

/* ---- The loop ---- */

/* The result of the one transfer of a multi handle that has none running. */
static CURLcode result_of(struct rung_transfer *t, CURLM *multi)
{
    int left;
    for (CURLMsg *m; (m = t->curl->multi_info_read(multi, &left));)
        if (m->msg == CURLMSG_DONE)
            return m->data.result;
    return CURLE_RECV_ERROR;
}

static int32_t drive(struct rung_transfer *t, CURLM *multi)
{
    int running = 1, wait_ms = 0;
    for (;;) {
        if (check_limits(t, &wait_ms) != RUNG_OK)
            return t->stopped;
        CURLMcode code = t->curl->multi_perform(multi, &running);
        if (t->stopped != RUNG_OK)
            return t->stopped;
        if (code == CURLM_OK && !running)
            break;
        if (code == CURLM_OK)
            code = t->curl->multi_poll(multi, NULL, 0, wait_ms, NULL);
        if (code != CURLM_OK)
            return rung_fail(t->call->error, RUNG_EINTERNAL, "http.broken", "%s: %s", t->url.place,
                             t->curl->multi_strerror(code));
    }
    CURLcode result = result_of(t, multi);
    return result == CURLE_OK ? rung_reply_end(t) : translate(t, result);
}

static void note_times(struct rung_transfer *t)
{
    curl_off_t tcp_us = 0, tls_us = 0;
    t->curl->easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &tcp_us);
    t->curl->easy_getinfo(t->easy, CURLINFO_APPCONNECT_TIME_T, &tls_us);
    t->response.connect_ns = (uint64_t)(tls_us > tcp_us ? tls_us : tcp_us) * 1000;
    t->response.total_ns = rung_now_ns() - t->begin_ns;
}

int32_t rung_transfer_run(struct rung_transfer *t)
{
    CURLM *multi = t->curl->multi_init();
    if (!multi || t->curl->multi_add_handle(multi, t->easy) != CURLM_OK) {
        t->curl->multi_cleanup(multi);
        return rung_fail(t->call->error, RUNG_ENOMEM, "http.memory", "out of memory");
    }
    int32_t status = drive(t, multi);
    note_times(t);
    t->curl->multi_remove_handle(multi, t->easy);
    t->curl->multi_cleanup(multi);
    bool kept = rung_reply_body(t);
    if (status == RUNG_OK && !kept)
        return rung_fail(t->call->error, RUNG_ENOMEM, "http.memory", "%s: the arena is full",
                         t->url.place);
    return status;
}
