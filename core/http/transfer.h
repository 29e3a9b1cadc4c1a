/*
 * One request on its way: what prepare.c makes, transfer.c follows and reply.c fills. Lives on the
 * stack of perform. All of it is the calling thread's, but for what the thread of the transfers
 * needs: the flight, the borrowed body, `line_bytes`, `detail` and `starts`; `url` and `pauses` to
 * read.
 */
#ifndef HTTP_TRANSFER_H
#define HTTP_TRANSFER_H

#include "base/text.h"
#include "http/events.h"
#include "http/loop.h"
#include "http/scrub.h"
#include "http/url.h"

#include <rung/http.h>

enum { RUNG_HTTP_HEAD_BYTES = 256 * 1024 }; /* of a reply's head, interim ones counted in */

struct rung_reply_field; /* reply.c */

struct rung_transfer {
    const struct rung_curl *curl;
    struct rung_call *call;
    struct rung_http_request request;   /* a copy, defaults filled in */
    struct rung_http_response response; /* what has come so far; body only at the end */
    struct rung_flight flight;
    struct rung_url url;
    struct curl_slist *headers;
    char *secrets[RUNG_SCRUB_MAX];
    struct rung_scrub scrub; /* of the same secrets */
    char detail[CURL_ERROR_SIZE];
    size_t line_bytes; /* of the head and trailers */
    unsigned starts;   /* how often the request was about to be sent */
    bool pauses;       /* a slow reader holds the connection up instead of filling memory */
    bool decodes;      /* the plugin asked for a compression, which libcurl undoes */
    int32_t stopped;   /* why we ended it (call->error is filled), or RUNG_OK */

    /* The head of the reply */
    struct rung_reply_field *fields, **last;
    uint32_t n_fields;
    uint64_t head_bytes;
    bool head_done;

    struct rung_buf body; /* without secrets */
    uint64_t received;    /* bytes of the body */
    bool is_events;       /* the body goes through `events` to on_event */
    struct rung_events events;
    uint64_t begin_ns, entered_ns; /* of the call, of the transfer */
    uint64_t data_ns, event_ns;    /* the last piece of the body and event; 0: none */
};

/* ---- prepare.c ----------------------------------------------------------------------------------
 */

/*
 * Checks the request, reads its secrets, makes the easy handle. t holds curl, call, request,
 * begin_ns. Contacts nobody. rung_transfer_release after success and failure alike.
 */
int32_t rung_transfer_prepare(struct rung_transfer *t);
/* Frees all and wipes secrets; the response stays. */
void rung_transfer_release(struct rung_transfer *t);

/* ---- transfer.c ---------------------------------------------------------------------------------
 */

/* Sends and receives until the end, a limit or a cancel. Fills t->response, on errors as far as it
 * came. */
int32_t rung_transfer_run(struct rung_transfer *t);

/* ---- reply.c: false when the transfer shall end: t->stopped says why ---- */

/* A line of the head, or a trailer. */
bool rung_reply_line(struct rung_transfer *t, const char *line, size_t n);
/* A piece of the body. */
bool rung_reply_data(struct rung_transfer *t, const char *bytes, size_t n);
/* After the last piece: hands out what the scrub held back. */
bool rung_reply_end(struct rung_transfer *t);
/* Puts the body into the arena; false when that is full. */
bool rung_reply_body(struct rung_transfer *t);
/* rung_host_http.find. */
struct rung_text rung_reply_find(const struct rung_http_response *response, const char *name);

#endif
