/*
 * HTTP for plugins: the table behind rung.host.http/0 (contract: rung/http.h). Any thread. All
 * transfers of the process run in one thread, which the first request starts and the process's end
 * joins. The process must ignore SIGPIPE, as rung does.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <rung/http.h>

/* Service {RUNG_HOST_HTTP, &rung_http_table, NULL}. */
extern const struct rung_host_http rung_http_table;

/* What the user's pipeline says (`http`). {0}: HTTP/1.1, and the environment's proxy and CAs. */
struct rung_http_settings {
    uint32_t version; /* 2: HTTP/2 over TLS where the server speaks it; else 1.1 */
    const char
        *proxy;     /* a URL, for every host but those of no_proxy; "": none; NULL: environment */
    const char *ca; /* a file or folder of certificates that alone count; NULL: environment */
};

/* For all requests that begin from now on. Texts are copied. Any thread. */
void rung_http_configure(const struct rung_http_settings *settings);

#endif
