/* Finding a CUDA library at run time: nothing of it is needed to build. */
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H

#include <rung/plugin.h>

struct bench_library {
    const char *title;             /* "cuBLAS", for messages */
    const char *const *files;      /* "libcublasLt.so.13", newest first, NULL-terminated */
    const char *const *wheel_dirs; /* its folders in Python wheels, NULL-terminated */
    const char *remedy;            /* what to install */
};

struct bench_symbol {
    const char *name;
    void *slot; /* of the function pointer */
};

/*
 * Looks, in this order, at `given` (a file or a folder; "" for none), RUNG_CUDA_HOME, the loader's
 * path, the folder that rung's installation brings and /usr/local/cuda, and fills every symbol
 * (name NULL ends). path (4096 bytes) receives the file's name. RUNG_EUNAVAILABLE says where it
 * looked and what to do. The library stays loaded.
 */
int32_t bench_library_open(const struct bench_library *library, const char *given,
                           const struct bench_symbol *symbols, char *path, struct rung_error *err);

/* Fills err; returns code. */
int32_t bench_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

#endif
