/* NVRTC, loaded at run time: prototypes of our own, so that building needs no toolkit. */
#ifndef NVRTC_API_H
#define NVRTC_API_H

#include <rung/plugin.h>
#include <stddef.h>

enum { /* nvrtcResult */
       NV_SUCCESS = 0,
       NV_OUT_OF_MEMORY = 1,
       NV_INVALID_OPTION = 5,
       NV_COMPILATION = 6,
};

typedef struct nv_program *nv_program; /* nvrtcProgram */

struct nv_api {
    int major, minor;
    char path[4096]; /* of the library */
    const char *(*error_string)(int result);
    int (*version)(int *major, int *minor);
    int (*n_archs)(int *n);
    int (*archs)(int *archs);
    int (*create)(nv_program *, const char *source, const char *name, int n_headers,
                  const char *const *headers, const char *const *names);
    int (*destroy)(nv_program *);
    int (*compile)(nv_program, int n_options, const char *const *options);
    int (*ptx_size)(nv_program, size_t *);
    int (*ptx)(nv_program, char *);
    int (*cubin_size)(nv_program, size_t *);
    int (*cubin)(nv_program, char *);
    int (*log_size)(nv_program, size_t *);
    int (*log)(nv_program, char *);
    int (*add_name)(nv_program, const char *expression);
    int (*lowered_name)(nv_program, const char *expression, const char **name);
    /* Of CUDA 12.8 and newer; NULL before. */
    int (*pch_status)(nv_program);
    int (*pch_heap)(size_t *bytes);
};

/*
 * Finds and loads libnvrtc and its builtins. library: a file or directory of the user's, "" to
 * search. RUNG_EUNAVAILABLE says where it looked and what to do. Call once a process.
 */
int32_t nv_api_load(struct nv_api *api, const char *library, struct rung_error *err);

/* Fills err; returns code. */
int32_t nv_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
