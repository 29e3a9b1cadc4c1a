#include "http/settings.h"
#include "base/die.h"
#include "http/http.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rung_http_settings settings; /* texts on the heap */

static char *copy(const char *text)
{
    return text ? rung_xstrdup(text) : NULL;
}

void rung_http_configure(const struct rung_http_settings *to)
{
    pthread_mutex_lock(&lock);
    free((char *)settings.proxy);
    free((char *)settings.ca);
    settings = (struct rung_http_settings){to->version, copy(to->proxy), copy(to->ca)};
    pthread_mutex_unlock(&lock);
}

#define SET(option, value) curl->easy_setopt(easy, CURLOPT_##option, (value))

static int set_version(const struct rung_curl *curl, CURL *easy)
{
    int bad;
    if (settings.version != 2)
        return SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad = SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    if (rung_curl_version(curl) >= RUNG_CURL_GOOD_H2)
        return bad | SET(PIPEWAIT, 1L);
    return bad | SET(FRESH_CONNECT, 1L) | SET(FORBID_REUSE, 1L);
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static int set_authorities(const struct rung_curl *curl, CURL *easy)
{
    const char *file = getenv("SSL_CERT_FILE"), *folder = getenv("SSL_CERT_DIR");
    int bad = 0;
    if (settings.ca) { /* these alone: libcurl's own would stand beside */
        bool is = is_folder(settings.ca);
        return SET(CAINFO, is ? NULL : settings.ca) | SET(CAPATH, is ? settings.ca : NULL);
    }
    if (file && *file)
        bad |= SET(CAINFO, file);
    if (folder && *folder)
        bad |= SET(CAPATH, folder);
    return bad;
}

int rung_settings_apply(const struct rung_curl *curl, CURL *easy)
{
    pthread_mutex_lock(&lock);
    int bad = set_version(curl, easy) | set_authorities(curl, easy);
    if (settings.proxy)
        bad |= SET(PROXY, settings.proxy); /* "": none */
    pthread_mutex_unlock(&lock);
    return bad;
}

bool rung_settings_pauses(const struct rung_curl *curl)
{
    pthread_mutex_lock(&lock);
    bool pauses = settings.version != 2 || rung_curl_version(curl) >= RUNG_CURL_GOOD_H2;
    pthread_mutex_unlock(&lock);
    return pauses;
}
