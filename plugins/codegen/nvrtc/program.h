/*
 * One program of NVRTC's: its options, its headers, and the compile. In the helper's forked
 * children, and in the helper itself for texts of its own.
 */
#ifndef NVRTC_PROGRAM_H
#define NVRTC_PROGRAM_H

#include "api.h"
#include "headers.h"
#include "message.h"
#include "pch.h"
#include <rung/host.h>

/* What the helper has ready for its children. */
struct nv_tools {
    const struct rung_host *host;
    struct nv_api api;
    struct nv_settings settings;
    struct nv_store store;
    struct nv_pch pch;
    char compiler[32]; /* "nvrtc 13.0" */
};

enum { NV_MAX_OPTIONS = 48 };

struct nv_options {
    char arch[64], std[32];
    const char *list[NV_MAX_OPTIONS + 2]; /* two more than n for the caller */
    int n;
};

/* The options of a request; with_std: namespace std is mentioned. Borrows from its arguments. */
void nv_options_make(const struct nv_settings *settings, const struct nv_request *request,
                     bool with_std, struct nv_options *out);

/* Whether a text of the request mentions namespace std. */
bool nv_mentions_std(const struct nv_request *request);

/* "&ns::x", as NVRTC wants variables named. malloc'ed; NULL when memory is out. */
char *nv_symbol_address(const char *expression);

/* One compile; everything in it lives until the process ends. */
struct nv_job {
    const struct nv_tools *tools;
    const struct nv_request *request;
    nv_program program;
    int result;
    char *log; /* malloc'ed */
    uint64_t compile_ns;
};

/*
 * RUNG_OK with result and log set: the source's errors are a result. `may_share`: in a child, where
 * a precompiled header that fits is used.
 */
int32_t nv_job_compile(struct nv_job *job, bool may_share, struct rung_error *err);

#endif
