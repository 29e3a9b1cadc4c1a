#include "http/http.h"
#include "base/io.h"
#include "base/status.h"
#include "http/transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Hides secrets that a message may have caught, such as one that a user put into the URL too. */
static void scrub_error(const struct rung_scrub *scrub, struct rung_error *err)
{
    struct rung_buf clean = {0};
    rung_scrub_text(scrub, err->message, strlen(err->message), &clean);
    snprintf(err->message, sizeof err->message, "%s", rung_buf_text(&clean));
    rung_buf_free(&clean);
}

static void log_call(const struct rung_host *host, const struct rung_transfer *t, int32_t status)
{
    char line[1024];
    snprintf(line, sizeof line, "%s %s: status %" PRIu32 ", %zu bytes in %" PRIu64 " ms%s%s",
             t->request.method, t->url.place, t->response.status, t->body.len,
             t->response.total_ns / 1000000, status == RUNG_OK ? "" : ", ",
             status == RUNG_OK ? "" : t->call->error->symbol);
    host->log(host, RUNG_LOG_DEBUG, line);
}

static int32_t run(const struct rung_host *host, struct rung_transfer *t)
{
    t->curl = rung_curl_get(t->call->error);
    if (!t->curl)
        return t->call->error->code;
    int32_t status = rung_transfer_prepare(t);
    if (status == RUNG_OK) {
        status = rung_transfer_run(t);
        log_call(host, t, status);
    }
    if (status != RUNG_OK)
        scrub_error(&t->scrub, t->call->error);
    rung_transfer_release(t);
    return status;
}

/* Each side's struct_size bounds what is read and written, whichever is the older. */
static int32_t perform(const struct rung_host *host, struct rung_call *call,
                       const struct rung_http_request *request, struct rung_http_response *out)
{
    struct rung_transfer t = {.call = call, .begin_ns = rung_now_ns()};
    uint32_t out_size = out->struct_size;
    if (!RUNG_HAS(request, url) || !RUNG_HAS(out, status))
        return rung_fail(call->error, RUNG_EMISUSE, "http.request",
                         "a struct_size that fits no version");
    memcpy(&t.request, request, smaller(request->struct_size, sizeof t.request));
    t.response.struct_size = sizeof t.response;
    int32_t status = run(host, &t);
    t.response.struct_size = out_size;
    memcpy(out, &t.response, smaller(out_size, sizeof t.response));
    return status;
}

const struct rung_host_http rung_http_table = {
    .struct_size = sizeof rung_http_table,
    .perform = perform,
    .find = rung_reply_find,
};
