/*
 * rung/http.h - rung.host.http/0: HTTP requests for plugins that talk to a server. A plugin builds
 * a request and reads a reply; it never links an HTTP library, and never sees a secret.
 *
 * What the host sees to, and no plugin can change:
 *   - only http and https; TLS 1.2 or newer, certificates and names verified;
 *   - redirects are never followed: a 3xx is a reply as any other, so no header reaches another
 *     host;
 *   - plain http goes to 127.0.0.0/8, ::1 and localhost only, directly and past any proxy, unless
 *     RUNG_HTTP_ALLOW_PLAIN is set, which a plugin shall do only on an option of the user's;
 *   - the proxies of the environment (https_proxy, http_proxy, all_proxy, no_proxy) and
 *     SSL_CERT_FILE and SSL_CERT_DIR are honoured, unless the user's pipeline names others;
 *   - a URL with a user name or password is refused, and so are headers that could end their line;
 *   - no cookies, no compression unless the plugin asks for it by header; HTTP/1.1, or HTTP/2 where
 *     the user's pipeline says so.
 */
#ifndef RUNG_HTTP_H
#define RUNG_HTTP_H

#include <rung/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUNG_HOST_HTTP "rung.host.http/0"

/*
 * One header. In arrays of it, elements lie [0].struct_size bytes apart, so that either side may be
 * the older one.
 *
 * A value that must stay secret is named by `secret`, and the host sends prefix + value:
 *   "env:NAME"   the environment variable NAME
 *   "file:PATH"  the file PATH: absolute, regular, mode 0600 or 0400
 * Blanks and newlines at its end are cut off; the rest is 4 or more printable ASCII characters.
 * Where the server sends it back verbatim, the plugin, the log and the error read "***" in its
 * place.
 */
struct rung_http_header {
    uint32_t struct_size;
    uint32_t reserved;
    struct rung_text name;  /* a token of RFC 9110; in replies in lower case */
    struct rung_text value; /* printable or tab; in requests not used when secret is set */
    const char *secret;     /* NULL in replies */
    const char *prefix;     /* before the secret, such as "Bearer "; NULL = none; NULL in replies */
};

enum rung_http_flag {
    RUNG_HTTP_ALLOW_PLAIN = 1u << 0, /* http to any host; anyone on the way can read the secrets */
    /* The body of a reply whose events go to on_event is not kept: response.body is empty then.
     * Other replies (an error, JSON) keep theirs. Saves the memory of long streams. */
    RUNG_HTTP_EVENTS_ONLY = 1u << 1,
};

struct rung_http_response {
    uint32_t struct_size;
    uint32_t status; /* 200, 302, 404, 500, ...; 0: no reply began */
    const struct rung_http_header
        *headers; /* in the order of their arrival; repeated ones stay apart */
    uint32_t n_headers;
    uint32_t reserved;
    /* All of it, streamed or not; bytes as sent, not checked to be UTF-8. Where the plugin asked
     * for a compression by header and the server used it, the bytes before that. */
    struct rung_text body;
    uint64_t connect_ns;    /* from the call's begin until connected, TLS included; 0: never was */
    uint64_t first_byte_ns; /* until the body's first byte; 0: none came */
    uint64_t total_ns;      /* until the end */
};

struct rung_http_request {
    uint32_t struct_size;
    uint32_t flags; /* rung_http_flag */
    const char
        *method;     /* GET HEAD POST PUT PATCH DELETE OPTIONS; NULL: POST with a body, else GET */
    const char *url; /* absolute */
    /* The host adds Host, Content-Length, Connection, and User-Agent and Accept where they lack. */
    const struct rung_http_header *headers;
    uint32_t n_headers;          /* at most 128, 8 of them secret */
    uint32_t connect_ms;         /* name, connection and TLS together; 0: 10 s */
    uint32_t first_byte_ms;      /* call's begin until the body's first byte; 0: 10 min */
    uint32_t between_bytes_ms;   /* silence between two pieces of the body; 0: 5 min */
    uint64_t max_response_bytes; /* of the body; 0: 64 MiB. The head is held to 256 KiB. */
    struct rung_text body;       /* any bytes; ptr NULL or len 0: none */
    /*
     * [the calling thread, during perform] Optional. Once, before the first on_data: status and
     * headers are there, the body is empty. A non-zero answer ends the call (RUNG_ECANCELLED).
     */
    int32_t (*on_head)(void *ctx, const struct rung_http_response *head);
    /*
     * [the calling thread, during perform] Optional. Pieces of the body as they come, split
     * anywhere, never empty, only for replies of status 2xx: an error page is never fed to a stream
     * parser. A non-zero answer ends the call (RUNG_ECANCELLED). Its own time counts towards no
     * silence.
     */
    int32_t (*on_data)(void *ctx, struct rung_text piece);
    void *ctx; /* of all three */
    /*
     * [the calling thread, during perform] Optional. Server-sent events (WHATWG HTML, section 9.2)
     * of a 2xx reply whose Content-Type is text/event-stream: name ("message" when the event has
     * none) and data (its lines joined by newlines), whole, whatever the pieces of the body were.
     * Comments are dropped; an event cut off by the end of the body is dropped too. With any other
     * type, or compressed without being asked, only the body is kept. Bytes that are no UTF-8 read
     * U+FFFD. A non-zero answer ends the call (RUNG_ECANCELLED).
     */
    int32_t (*on_event)(void *ctx, struct rung_text name, struct rung_text data);
    uint32_t first_event_ms;    /* call's begin until the first event; 0: first_byte_ms */
    uint32_t between_events_ms; /* between two events, comments not counted; 0: no limit */
    uint32_t max_event_bytes;   /* data of one event; 0: 8 MiB; more ends as http.too_large */
    uint32_t reserved;
};

struct rung_host_http {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [any, blocking] One request and its reply; obeys call->deadline_ns and call->cancel, the
     * latter within 200 ms. Nothing is sent twice: retries are the caller's. A status such as 404
     * or 500 is data, not an error. out->struct_size is the caller's; headers and body are in
     * call->arena. On an error too, *out holds what had come by then.
     *
     *   RUNG_EINVAL       http.request      method, header or limits break this contract
     *   RUNG_EMISUSE      http.request      a struct_size that fits no version
     *   RUNG_ECONFIG      http.url          not an absolute http or https URL without user or
     *                                       password
     *                     http.plain        plain http to another host than this one
     *                     http.secret       variable or file missing, unsafe or unusable; its name
     *   RUNG_EUNAVAILABLE http.library      libcurl is not installed, or too old
     *                     http.resolve      the host's or the proxy's name is not known
     *                     http.connect      nothing answers there
     *                     http.tls          no TLS, or a certificate that doesn't verify
     *   RUNG_ETIMEOUT     http.connect_timeout, http.first_byte, http.stalled, http.deadline,
     *                     http.first_event, http.between_events
     *   RUNG_ECANCELLED   http.cancelled    by call->cancel
     *                     http.stopped      by on_head, on_data or on_event
     *   RUNG_EIO          http.too_large    body, head or event above its limit
     *                     http.broken       the connection ended early or broke HTTP
     *   RUNG_ENOMEM       http.memory       the arena is full
     */
    int32_t (*perform)(const struct rung_host *, struct rung_call *,
                       const struct rung_http_request *, struct rung_http_response *out);
    /*
     * [pure] Value of the reply's first header of that name (any case), or {NULL, 0}. Takes what
     * perform or on_head gave.
     */
    struct rung_text (*find)(const struct rung_http_response *, const char *name);
};

#ifdef __cplusplus
}
#endif
#endif
