/* From a plugin's request to a libcurl handle: checks, defaults, secrets, options. */
#include "base/die.h"
#include "base/status.h"
#include "http/secret.h"
#include "http/settings.h"
#include "http/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum {
    MAX_HEADERS = 128,
    MAX_NAME = 256,
    MAX_VALUE = 65536,
    CONNECT_MS = 10 * 1000,
    FIRST_BYTE_MS = 10 * 60 * 1000,
    BETWEEN_BYTES_MS = 5 * 60 * 1000,
    EVENT_BYTES = 8 << 20,
    KEEPALIVE_IDLE_S = 30,
    KEEPALIVE_EVERY_S = 10,
    UNUSED_S = 60, /* how long a connection is kept for a next request */
};
static const uint64_t max_response_bytes = 64u << 20;

static int32_t bad_request(struct rung_transfer *t, const char *what, const char *name)
{
    return rung_fail(t->call->error, RUNG_EINVAL, "http.request", "HTTP request: %s%s%.64s", what,
                     *name ? " " : "", name);
}

/* ---- Method and defaults ---- */

static int32_t check_method(struct rung_transfer *t)
{
    static const char *const methods[] = {"GET",   "HEAD",   "POST",   "PUT",
                                          "PATCH", "DELETE", "OPTIONS"};
    struct rung_http_request *r = &t->request;
    if (!r->method)
        r->method = r->body.len ? "POST" : "GET";
    size_t i = 0;
    while (i < sizeof methods / sizeof *methods && strcmp(methods[i], r->method) != 0)
        i++;
    if (i == sizeof methods / sizeof *methods)
        return bad_request(t, "a method that is not known", "");
    if (r->body.len && strcmp(r->method, "HEAD") == 0)
        return bad_request(t, "HEAD takes no body", "");
    if (r->body.len && !r->body.ptr)
        return bad_request(t, "a body that is NULL", "");
    return RUNG_OK;
}

static void fill_defaults(struct rung_http_request *r)
{
    if (!r->connect_ms)
        r->connect_ms = CONNECT_MS;
    if (r->connect_ms > INT32_MAX)
        r->connect_ms = INT32_MAX; /* a long of libcurl's */
    if (!r->first_byte_ms)
        r->first_byte_ms = FIRST_BYTE_MS;
    if (!r->between_bytes_ms)
        r->between_bytes_ms = BETWEEN_BYTES_MS;
    if (!r->max_response_bytes)
        r->max_response_bytes = max_response_bytes;
    if (!r->first_event_ms)
        r->first_event_ms = r->first_byte_ms;
    if (!r->max_event_bytes)
        r->max_event_bytes = EVENT_BYTES;
}

/* ---- Headers ---- */

static const struct rung_http_header *header_at(const struct rung_http_request *r, uint32_t i)
{
    return (const void *)((const char *)r->headers + (size_t)i * r->headers[0].struct_size);
}

/* tchar of RFC 9110, 5.6.2 */
static bool is_token(const char *text, size_t n)
{
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (size_t i = 0; i < n; i++)
        if (!text[i] || !strchr(allowed, text[i]))
            return false;
    return n > 0 && n <= MAX_NAME;
}

static bool is_value(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)text[i] < 32 && text[i] != '\t') || text[i] == 127)
            return false;
    return n <= MAX_VALUE;
}

/* Headers that frame the message or speak to the next hop: only the host knows them. */
static bool is_hosts(const char *name, size_t n)
{
    static const char *const hosts[] = {
        "host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "trailer",
        "te",   "keep-alive"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (strlen(hosts[i]) == n && strncasecmp(hosts[i], name, n) == 0)
            return true;
    return n >= 6 && strncasecmp(name, "proxy-", 6) == 0;
}

static int32_t check_header(struct rung_transfer *t, const struct rung_http_header *h)
{
    if (h->struct_size != t->request.headers[0].struct_size)
        return rung_fail(t->call->error, RUNG_EMISUSE, "http.request",
                         "headers of different struct_size");
    if (!h->name.ptr || !is_token(h->name.ptr, h->name.len))
        return bad_request(t, "a header's name is no token", "");
    if (is_hosts(h->name.ptr, h->name.len))
        return bad_request(t, "only the host sets", h->name.ptr);
    if (h->prefix && !is_value(h->prefix, strlen(h->prefix)))
        return bad_request(t, "a line break or another control character before the secret of",
                           h->name.ptr);
    if (!h->secret && h->value.len && (!h->value.ptr || !is_value(h->value.ptr, h->value.len)))
        return bad_request(t, "a line break, another control character or too long a value in",
                           h->name.ptr);
    return RUNG_OK;
}

static int32_t check_headers(struct rung_transfer *t)
{
    const struct rung_http_request *r = &t->request;
    uint32_t secrets = 0;
    if (r->n_headers > MAX_HEADERS)
        return bad_request(t, "more than 128 headers", "");
    if (r->n_headers && !r->headers)
        return bad_request(t, "headers that are NULL", "");
    if (r->n_headers &&
        (!RUNG_HAS(r->headers, prefix) || r->headers[0].struct_size % sizeof(void *)))
        return rung_fail(t->call->error, RUNG_EMISUSE, "http.request",
                         "a header's struct_size fits no version");
    for (uint32_t i = 0; i < r->n_headers; i++) {
        int32_t status = check_header(t, header_at(r, i));
        if (status != RUNG_OK)
            return status;
        secrets += header_at(r, i)->secret != NULL;
    }
    return secrets <= RUNG_SCRUB_MAX ? RUNG_OK : bad_request(t, "more than 8 secret headers", "");
}

static bool has_header(const struct rung_http_request *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_headers; i++) {
        struct rung_text have = header_at(r, i)->name;
        if (have.len == strlen(name) && strncasecmp(have.ptr, name, have.len) == 0)
            return true;
    }
    return false;
}

static int32_t append(struct rung_transfer *t, const char *line)
{
    struct curl_slist *list = t->curl->slist_append(t->headers, line);
    if (!list)
        return rung_fail(t->call->error, RUNG_ENOMEM, "http.memory", "out of memory");
    t->headers = list;
    return RUNG_OK;
}

/* The line as libcurl wants it: "name;" is a header without a value, "name:" would be none. */
static int32_t add_header(struct rung_transfer *t, const struct rung_http_header *h,
                          const char *secret)
{
    const char *prefix = secret && h->prefix ? h->prefix : "";
    const char *value = secret ? secret : h->value.len ? h->value.ptr : "";
    size_t n = secret ? strlen(secret) : h->value.len;
    size_t size = h->name.len + strlen(": ") + strlen(prefix) + n + 1;
    char *line =
        rung_xmalloc(size); /* of the right size at once: growing would leave copies behind */
    snprintf(line, size, "%.*s%s%s%.*s", (int)h->name.len, h->name.ptr, *prefix || n ? ": " : ";",
             prefix, (int)n, value);
    int32_t status = append(t, line);
    explicit_bzero(line, size);
    free(line);
    return status;
}

static int32_t add_headers(struct rung_transfer *t)
{
    const struct rung_http_request *r = &t->request;
    int32_t status = append(t, "Expect:"); /* no second of waiting before a large body */
    if (status == RUNG_OK && !has_header(r, "content-type"))
        status = append(t, "Content-Type:"); /* libcurl's guess is a form */
    for (uint32_t i = 0; i < r->n_headers && status == RUNG_OK; i++) {
        const struct rung_http_header *h = header_at(r, i);
        char *secret = h->secret ? rung_secret_read(h->secret, t->call->error) : NULL;
        if (h->secret && !secret)
            return t->call->error->code;
        if (secret) {
            t->secrets[t->scrub.n] = secret;
            t->scrub.secrets[t->scrub.n++] = secret;
        }
        status = add_header(t, h, secret);
    }
    return status;
}

/* ---- The handle ---- */

/* Sockets that no child inherits; and where a URL names this host, no name service leads elsewhere.
 */
static curl_socket_t open_socket(void *transfer, curlsocktype purpose,
                                 struct curl_sockaddr *address)
{
    const struct rung_transfer *t = transfer;
    (void)purpose;
    if (t->url.loopback && !rung_address_is_loopback(&address->addr, address->addrlen))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

#if LIBCURL_VERSION_NUM >= 0x075000
/*
 * Before each sending. libcurl sends a request again, a POST too, when a kept connection turns out
 * to be closed; the server may have read it for all that, so only the caller may decide that.
 */
static int before_sending(void *transfer, char *to_address, char *from_address, int to_port,
                          int from_port)
{
    struct rung_transfer *t = transfer;
    (void)to_address, (void)from_address, (void)to_port, (void)from_port;
    return t->starts++ == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}
#endif

#define SET(option, value) t->curl->easy_setopt(t->flight.easy, CURLOPT_##option, (value))

static int set_message(struct rung_transfer *t)
{
    const struct rung_http_request *r = &t->request;
    bool sends = r->body.len || strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0 ||
                 strcmp(r->method, "PATCH") == 0;
    int bad = 0;
    if (sends) { /* borrowed: the call lasts longer than the transfer */
        bad |= SET(POSTFIELDS, r->body.len ? r->body.ptr : "");
        bad |= SET(POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    } else if (strcmp(r->method, "HEAD") == 0) {
        bad |= SET(NOBODY, 1L);
    }
    bad |= SET(CUSTOMREQUEST, r->method);
    bad |= SET(HTTPHEADER, t->headers);
    bad |= SET(HEADEROPT, (long)CURLHEADER_SEPARATE); /* none of them to a proxy */
    t->decodes = has_header(r, "accept-encoding");
    if (t->decodes)
        bad |= SET(ACCEPT_ENCODING, ""); /* undoes any; the header is the plugin's */
    if (!has_header(r, "user-agent"))
        bad |= SET(USERAGENT, "rung/" RUNG_VERSION);
    return bad;
}

static int set_trust(struct rung_transfer *t)
{
    int bad = SET(SSL_VERIFYPEER, 1L);
    bad |= SET(SSL_VERIFYHOST, 2L);
    bad |= SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    bad |= SET(FOLLOWLOCATION, 0L);
    bad |= rung_settings_apply(t->curl, t->flight.easy);
    if (t->url.loopback)
        bad |= SET(PROXY, ""); /* else a proxy would carry secrets off this host */
    return bad;
}

/* Whether connections are kept for a next request, where a second sending can be forbidden. */
static int set_reuse(struct rung_transfer *t)
{
#if LIBCURL_VERSION_NUM >= 0x075000
    if (SET(PREREQFUNCTION, before_sending) == CURLE_OK)
        return SET(PREREQDATA, t) | SET(MAXAGE_CONN, (long)UNUSED_S);
#endif
    return SET(FRESH_CONNECT, 1L) | SET(FORBID_REUSE, 1L);
}

static int set_connection(struct rung_transfer *t)
{
    int bad = SET(CURLU, t->url.handle);
    bad |= SET(NOSIGNAL, 1L);
    bad |= set_reuse(t);
    bad |= SET(CONNECTTIMEOUT_MS, (long)t->request.connect_ms);
    bad |= SET(TCP_KEEPALIVE, 1L);
    bad |= SET(TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    bad |= SET(TCP_KEEPINTVL, (long)KEEPALIVE_EVERY_S);
    bad |= SET(OPENSOCKETFUNCTION, open_socket);
    bad |= SET(OPENSOCKETDATA, t);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* Leave a name lookup that hangs behind. An older library refuses the option and waits for it.
     */
    SET(QUICK_EXIT, 1L);
#endif
    return bad;
}

/* The reply on the thread of the transfers: into the pipe, at once, or not yet. */
static size_t take_line(char *line, size_t size, size_t n, void *transfer)
{
    struct rung_transfer *t = transfer;
    t->line_bytes += n * size;
    rung_loop_put(&t->flight, RUNG_PIPE_LINE, line, n * size, false);
    return t->line_bytes > 2 * RUNG_HTTP_HEAD_BYTES ? 0 : n * size;
}

static size_t take_data(char *bytes, size_t size, size_t n, void *transfer)
{
    struct rung_transfer *t = transfer;
    bool taken = rung_loop_put(&t->flight, RUNG_PIPE_DATA, bytes, n * size, t->pauses);
    return taken ? n * size : CURL_WRITEFUNC_PAUSE;
}

static int set_callbacks(struct rung_transfer *t)
{
    int bad = SET(ERRORBUFFER, t->detail);
    bad |= SET(SUPPRESS_CONNECT_HEADERS, 1L);
    bad |= SET(HEADERFUNCTION, take_line);
    bad |= SET(HEADERDATA, t);
    bad |= SET(WRITEFUNCTION, take_data);
    bad |= SET(WRITEDATA, t);
    return bad;
}

static int32_t make_handle(struct rung_transfer *t)
{
    t->flight.easy = t->curl->easy_init();
    if (!t->flight.easy)
        return rung_fail(t->call->error, RUNG_ENOMEM, "http.memory", "out of memory");
    if (set_connection(t) | set_trust(t) | set_message(t) | set_callbacks(t))
        return rung_fail(
            t->call->error, RUNG_EUNAVAILABLE, "http.library",
            "libcurl lacks an option that is needed; it is too old or built without TLS");
    return RUNG_OK;
}

int32_t rung_transfer_prepare(struct rung_transfer *t)
{
    const uint32_t known = RUNG_HTTP_ALLOW_PLAIN | RUNG_HTTP_EVENTS_ONLY;
    t->last = &t->fields;
    t->flight.cancel = t->call->cancel;
    t->pauses = rung_settings_pauses(t->curl);
    rung_pipe_init(&t->flight.pipe);
    fill_defaults(&t->request);
    int32_t status = check_method(t);
    if (status == RUNG_OK)
        status = check_headers(t);
    if (status == RUNG_OK && (!t->request.url || t->request.flags & ~known))
        status = bad_request(t, "no URL, or a flag that is not known", "");
    if (status == RUNG_OK)
        status = rung_url_read(t->curl, t->request.url, t->request.flags & RUNG_HTTP_ALLOW_PLAIN,
                               &t->url, t->call->error);
    if (status == RUNG_OK)
        status = add_headers(t);
    return status == RUNG_OK ? make_handle(t) : status;
}

void rung_transfer_release(struct rung_transfer *t)
{
    if (t->flight.easy)
        t->curl->easy_cleanup(t->flight.easy);
    if (t->url.handle)
        rung_url_free(t->curl, &t->url);
    for (struct curl_slist *node = t->headers; node; node = node->next)
        explicit_bzero(node->data, strlen(node->data));
    t->curl->slist_free_all(t->headers);
    rung_scrub_free(&t->scrub);
    for (size_t i = 0; i < t->scrub.n; i++)
        rung_secret_free(t->secrets[i]);
    rung_buf_free(&t->body);
    rung_events_free(&t->events);
    rung_pipe_free(&t->flight.pipe);
}
