/*
 * What the model says to the language model that wrote the kernel: numbers first, then what they
 * mean and what would help, most costly launch first. Bounded; pure.
 */
#ifndef MODEL_ADVICE_H
#define MODEL_ADVICE_H

#include "estimate.h"

/* The whole plan. */
struct prediction {
    const struct gpu *gpu;
    const struct rung_run *run; /* kernels and facts, n_launches of them */
    const struct estimate *launches;
    uint32_t n_launches;
    double time_ns;
    int limiter;
    double floor_ns;  /* 0: not known */
    double min_bytes; /* 0: not known */
    double dram_bytes, l2_bytes;
};

/* Writes at most size - 1 bytes and a NUL; returns the length. */
size_t advice_write(const struct prediction *p, char *out, size_t size);

#endif
