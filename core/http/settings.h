/*
 * What the user's pipeline says about HTTP (`http`), for the whole process: version, proxy and
 * certificate authorities. Where it is silent, the environment counts (rung/http.h).
 */
#ifndef HTTP_SETTINGS_H
#define HTTP_SETTINGS_H

#include "http/library.h"

#include <stdbool.h>

/*
 * Sets the options of one transfer that are the user's; non-zero when libcurl lacks one of them.
 * Any thread.
 */
int rung_settings_apply(const struct rung_curl *curl, CURL *easy);
/*
 * Whether the way from a slow reader back to the server may be used: not with HTTP/2 of a libcurl
 * before 8.5, which may sleep on after a pause.
 */
bool rung_settings_pauses(const struct rung_curl *curl);

#endif
