/*
 * HTTP for plugins: the table behind rung.host.http/0 (contract: rung/http.h). Any thread. The
 * process must ignore SIGPIPE, as rung does.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <rung/http.h>

/* Service {RUNG_HOST_HTTP, &rung_http_table, NULL}. */
extern const struct rung_host_http rung_http_table;

#endif
