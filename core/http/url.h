/*
 * URLs, read by libcurl's own parser, so that what is checked is what is contacted.
 */
#ifndef HTTP_URL_H
#define HTTP_URL_H

#include "http/library.h"

#include <stdbool.h>
#include <sys/socket.h>

struct rung_url {
    CURLU *handle;
    bool loopback;   /* the host is 127.0.0.0/8, ::1 or localhost */
    char place[512]; /* for messages: scheme, host, port and path; no query, which may hold keys */
};

/*
 * Reads and judges a URL by the rules of rung/http.h; nothing is contacted. RUNG_ECONFIG with
 * http.url or http.plain. rung_url_free after success and failure alike.
 */
int32_t rung_url_read(const struct rung_curl *curl, const char *text, bool allow_plain,
                      struct rung_url *out, struct rung_error *err);
void rung_url_free(const struct rung_curl *curl, struct rung_url *url);
/* Whether the address is one of this host's loopback addresses. */
bool rung_address_is_loopback(const struct sockaddr *address, size_t size);

#endif
