/*
 * What goes between the compiler plugin and its helper: settings at start, one request and one
 * answer a compile. Both sides check what they read.
 */
#ifndef NVRTC_MESSAGE_H
#define NVRTC_MESSAGE_H

#include "buffer.h"
#include <rung/compiler.h>

/* Texts live as long as what they were read from. */
struct nv_settings {
    const char *library; /* "" to search */
    const char *std;     /* "c++17" */
    uint64_t ptx_limit;  /* bytes */
    uint64_t log_limit;  /* bytes */
    uint32_t n_options;  /* more options for the compiler, already allowed */
    uint32_t n_headers;  /* directories of headers to serve from memory */
    const char **options;
    const char **headers;
};

struct nv_file {
    const char *path;
    struct rung_text text;
};

struct nv_request {
    const char *arch; /* "compute_90" or "sm_90" */
    uint32_t want_cubin;
    uint32_t want_ptx;
    uint32_t entry; /* index of the file to compile */
    uint32_t n_files;
    uint32_t n_expressions;
    uint32_t n_symbols;
    struct nv_file *files;
    const char **expressions;
    const char **symbols; /* variables: "ns::c_w" */
};

void nv_write_settings(struct nv_buffer *b, const struct nv_settings *settings);
/* Allocates its arrays for the life of the process. false when the bytes are not ours. */
bool nv_read_settings(struct rung_text bytes, struct nv_settings *settings);

void nv_write_request(struct nv_buffer *b, const struct rung_compile_request *request);
/* Its texts are borrowed from the bytes, its arrays are its own: see nv_request_free. */
bool nv_read_request(struct rung_text bytes, struct nv_request *request);
void nv_request_free(struct nv_request *request);

/* An answer is written from the plain ABI structs and read back into them, in the call's arena. */
void nv_write_result(struct nv_buffer *b, const struct rung_compile_result *result);
/* RUNG_OK, RUNG_ENOMEM, or RUNG_EINTERNAL when the bytes are not ours. */
int32_t nv_read_result(const struct rung_host *host, struct rung_call *call, struct rung_text bytes,
                       struct rung_compile_result *out);

#endif
