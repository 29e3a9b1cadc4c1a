/*
 * One request on its way: what prepare.c makes, transfer.c drives and reply.c fills. Lives on the
 * stack of perform; one thread.
 */
#ifndef HTTP_TRANSFER_H
#define HTTP_TRANSFER_H

#include "base/text.h"
#include "http/library.h"
#include "http/scrub.h"
#include "http/url.h"

#include <rung/http.h>

struct rung_reply_field; /* reply.c */

struct rung_transfer {
    const struct rung_curl *curl;
    struct rung_call *call;
    struct rung_http_request request;   /* a copy, defaults filled in */
    struct rung_http_response response; /* what has come so far; body only at the end */
    CURL *easy;
    struct rung_url url;
    struct curl_slist *headers;
    char *secrets[RUNG_SCRUB_MAX];
    struct rung_scrub scrub; /* of the same secrets */
    char detail[CURL_ERROR_SIZE];
    int32_t stopped; /* why we ended it (call->error is filled), or RUNG_OK */

    /* The head of the reply */
    struct rung_reply_field *fields, **last;
    uint32_t n_fields;
    uint64_t head_bytes;
    bool head_done;

    struct rung_buf body;       /* without secrets */
    uint64_t received;          /* bytes of the body as sent */
    uint64_t begin_ns, data_ns; /* the call's begin, the last piece of the body */
};

/* ---- prepare.c ----------------------------------------------------------------------------------
 */

/*
 * Checks the request, reads its secrets, makes t->easy. t holds curl, call, request, begin_ns.
 * Contacts nobody. rung_transfer_release after success and failure alike.
 */
int32_t rung_transfer_prepare(struct rung_transfer *t);
/* Frees all and wipes secrets; the response stays. */
void rung_transfer_release(struct rung_transfer *t);

/* ---- transfer.c ---------------------------------------------------------------------------------
 */

/* Sends and receives until the end, a limit or a cancel. Fills t->response, on errors as far as it
 * came. */
int32_t rung_transfer_run(struct rung_transfer *t);

/* ---- reply.c: libcurl's callbacks; a short count ends the transfer ---- */

/* A line of the head. */
size_t rung_reply_header(char *line, size_t size, size_t n, void *transfer);
/* A piece of the body. */
size_t rung_reply_data(char *bytes, size_t size, size_t n, void *transfer);
/* After the last piece: hands out what the scrub held back. */
int32_t rung_reply_end(struct rung_transfer *t);
/* Puts the body into the arena; false when that is full. */
bool rung_reply_body(struct rung_transfer *t);
/* rung_host_http.find. */
struct rung_text rung_reply_find(const struct rung_http_response *response, const char *name);

#endif
