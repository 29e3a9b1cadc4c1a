#include "http/url.h"
#include "base/status.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_URL = 16384 };

static bool loopback4(struct in_addr address)
{
    return ntohl(address.s_addr) >> 24 == 127;
}

bool rung_address_is_loopback(const struct sockaddr *address, size_t size)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address->sa_family == AF_INET && size >= sizeof v4) {
        memcpy(&v4, address, sizeof v4);
        return loopback4(v4.sin_addr);
    }
    if (address->sa_family == AF_INET6 && size >= sizeof v6) {
        memcpy(&v6, address, sizeof v6);
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    }
    return false;
}

/* host as libcurl writes it: numbers normalised to dotted decimal, IPv6 in brackets. */
static bool host_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    char bare[INET6_ADDRSTRLEN];
    size_t n = strlen(host);
    if (strcasecmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return loopback4(v4);
    if (n < 3 || host[0] != '[' || n - 2 >= sizeof bare)
        return false;
    memcpy(bare, host + 1, n - 2);
    bare[n - 2] = 0;
    return inet_pton(AF_INET6, bare, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Copies a part into `to`; "" when the URL lacks it. */
static void part(const struct rung_curl *curl, CURLU *handle, CURLUPart which, char *to,
                 size_t size)
{
    char *text = NULL;
    to[0] = 0;
    if (curl->url_get(handle, which, &text, 0) == CURLUE_OK && text)
        snprintf(to, size, "%s", text);
    curl->free(text);
}

static int32_t bad_url(struct rung_error *err, const char *what)
{
    return rung_fail(err, RUNG_ECONFIG, "http.url", "%s; a URL such as https://host/path is needed",
                     what);
}

/* Parses into the handle. The text is not shown: it may hold a password or a key. */
static int32_t parse(const struct rung_curl *curl, const char *text, CURLU *handle,
                     struct rung_error *err)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c <= 32 || *c == 127)
            return bad_url(err, "the URL holds a blank or a control character");
    const char *colon = strstr(text, "://");
    if (!colon)
        return bad_url(err, "the URL lacks its scheme");
    if (colon[3] == '/') /* which libcurl forgives */
        return bad_url(err, "the URL lacks its host");
    CURLUcode code = curl->url_set(handle, CURLUPART_URL, text, CURLU_DISALLOW_USER);
    if (code == CURLUE_USER_NOT_ALLOWED)
        return bad_url(err,
                       "the URL holds a user name or password, which belong into a secret header");
    if (code == CURLUE_UNSUPPORTED_SCHEME)
        return bad_url(err, "the URL's scheme is neither https nor http");
    if (code == CURLUE_OUT_OF_MEMORY)
        return rung_fail(err, RUNG_ENOMEM, "http.memory", "out of memory");
    return code == CURLUE_OK ? RUNG_OK : bad_url(err, "the URL is malformed");
}

int32_t rung_url_read(const struct rung_curl *curl, const char *text, bool allow_plain,
                      struct rung_url *out, struct rung_error *err)
{
    char scheme[32], host[300], port[16], path[160];
    *out = (struct rung_url){.handle = curl->url()};
    if (!out->handle)
        return rung_fail(err, RUNG_ENOMEM, "http.memory", "out of memory");
    if (strlen(text) > MAX_URL)
        return bad_url(err, "the URL is longer than 16 KiB");
    int32_t status = parse(curl, text, out->handle, err);
    if (status != RUNG_OK)
        return status;
    part(curl, out->handle, CURLUPART_SCHEME, scheme, sizeof scheme);
    part(curl, out->handle, CURLUPART_HOST, host, sizeof host);
    part(curl, out->handle, CURLUPART_PORT, port, sizeof port);
    part(curl, out->handle, CURLUPART_PATH, path, sizeof path);
    bool plain = strcmp(scheme, "http") == 0;
    if (!plain && strcmp(scheme, "https") != 0)
        return bad_url(err, "the URL's scheme is neither https nor http");
    out->loopback = host_is_loopback(host);
    snprintf(out->place, sizeof out->place, "%s://%s%s%s%s", scheme, host, port[0] ? ":" : "", port,
             path);
    if (plain && !allow_plain && !out->loopback)
        return rung_fail(
            err, RUNG_ECONFIG, "http.plain",
            "%s would be sent without encryption: use https, or allow plain http to this host "
            "in the plugin's options",
            out->place);
    return RUNG_OK;
}

void rung_url_free(const struct rung_curl *curl, struct rung_url *url)
{
    curl->url_cleanup(url->handle);
    url->handle = NULL;
}
