/*
 * libcurl, opened on first use: starting rung stays quick, and a machine without libcurl runs
 * everything that needs no network. Types and constants come from <curl/curl.h>.
 */
#ifndef HTTP_LIBRARY_H
#define HTTP_LIBRARY_H

#include <curl/curl.h>
#include <rung/plugin.h>

#define RUNG_CURL_FUNCTIONS(X)                                                                     \
    X(global_init)                                                                                 \
    X(free) X(easy_init) X(easy_setopt) X(easy_getinfo) X(easy_strerror) X(easy_cleanup)           \
        X(multi_init) X(multi_add_handle) X(multi_remove_handle) X(multi_perform) X(multi_poll)    \
            X(multi_info_read) X(multi_strerror) X(multi_cleanup) X(slist_append)                  \
                X(slist_free_all) X(url) X(url_set) X(url_get) X(url_cleanup)

/* curl_NAME as member NAME. */
struct rung_curl {
#define MEMBER(name) __typeof__(curl_##name) *name;
    RUNG_CURL_FUNCTIONS(MEMBER)
#undef MEMBER
};

/*
 * The library's functions, initialised once for the process; never closed. NULL with err filled
 * (RUNG_EUNAVAILABLE, http.library) when it is missing, too old or fails to initialise. Any thread.
 */
const struct rung_curl *rung_curl_get(struct rung_error *err);

#endif
