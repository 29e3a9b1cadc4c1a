/*
 * The stand-ins of the driver: what fake_driver.c (memory, kernels) and fake_graph.c share, and
 * what a test may look at. Private to tests/device/cuda.
 */
#ifndef TESTS_DEVICE_CUDA_FAKE_H
#define TESTS_DEVICE_CUDA_FAKE_H

#include <stddef.h>
#include <stdint.h>

#ifndef FAKE_OLD
#define FAKE_OLD 0
#endif
#define EXPORT __attribute__((visibility("default")))

typedef int result; /* CUresult */
typedef uint64_t address;

/* What was asked of the driver; exported. */
struct fake_seen {
    uint64_t set_bytes;    /* of the last fill with a byte */
    uint64_t discarded[2]; /* address and lines of the last discard or sweep */
    uint64_t launches;
    uint64_t limits, resets;
    uint64_t graphs, execs; /* that live */
};
extern struct fake_seen fake_seen;

enum fake_kind { FAKE_COPY_IN, FAKE_COPY, FAKE_SET8, FAKE_SET32, FAKE_LAUNCH };

struct fake_node {
    enum fake_kind kind;
    address to, from;
    const void *host;
    void *function;
    uint64_t n;     /* bytes; SET32: words */
    unsigned value; /* SET8, SET32; LAUNCH: threads */
    _Alignas(8) char params[64];
};

/* Keeps the node when a graph is being recorded: non-zero, and nothing is to be done then. */
int fake_record(const struct fake_node *node);
/* Non-zero while a graph is being recorded, which is lost by that. */
int fake_spoil(void);
/* Runs a kernel. (fake_driver.c) */
result fake_run(void *function, const void *params, uint64_t threads);

#endif
