#include "http/library.h"
#include "base/status.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static struct rung_curl curl;
static char problem[512];
static bool usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The function, or NULL with its name in `problem`. */
static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found && !problem[0])
        snprintf(problem, sizeof problem, "libcurl.so.4 lacks %s; version 7.66 or newer is needed",
                 name);
    return found;
}

static void open_library(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        snprintf(
            problem, sizeof problem,
            "HTTP needs libcurl, which can't be loaded (%s); on Debian and Ubuntu: apt-get install "
            "libcurl4",
            why ? why : "no reason given");
        return;
    }
#define LOAD(name) *(void **)&curl.name = symbol(library, "curl_" #name);
    RUNG_CURL_FUNCTIONS(LOAD)
#undef LOAD
    if (problem[0])
        return;
    CURLcode code = curl.global_init(CURL_GLOBAL_DEFAULT);
    usable = code == CURLE_OK;
    if (!usable)
        snprintf(problem, sizeof problem, "libcurl can't be initialised: %s",
                 curl.easy_strerror(code));
}

unsigned rung_curl_version(const struct rung_curl *of)
{
    return of->version_info(CURLVERSION_NOW)->version_num;
}

const struct rung_curl *rung_curl_get(struct rung_error *err)
{
    pthread_once(&once, open_library);
    if (usable)
        return &curl;
    rung_fail(err, RUNG_EUNAVAILABLE, "http.library", "%s", problem);
    return NULL;
}
