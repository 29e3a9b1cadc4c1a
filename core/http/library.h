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
    X(version_info)                                                                                \
    X(free)                                                                                        \
    X(easy_init)                                                                                   \
    X(easy_setopt)                                                                                 \
    X(easy_getinfo)                                                                                \
    X(easy_strerror)                                                                               \
    X(easy_pause)                                                                                  \
    X(easy_cleanup)                                                                                \
    X(multi_init)                                                                                  \
    X(multi_setopt)                                                                                \
    X(multi_add_handle)                                                                            \
    X(multi_remove_handle)                                                                         \
    X(multi_socket_action)                                                                         \
    X(multi_info_read)                                                                             \
    X(multi_cleanup)                                                                               \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(url)                                                                                         \
    X(url_set)                                                                                     \
    X(url_get)                                                                                     \
    X(url_cleanup)

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
/*
 * The first whose HTTP/2 lets transfers share a connection: before, pauses and broken-off streams
 * upset its flow control (8.0 to 8.4 mended that bit by bit), so that each has a connection of its
 * own, used once.
 */
enum { RUNG_CURL_GOOD_H2 = 0x080500 };
/* Of the library that was opened, such as 0x075801 for 7.88.1. Any thread. */
unsigned rung_curl_version(const struct rung_curl *curl);

#endif
