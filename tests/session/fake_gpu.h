/* A session_gpu whose kernels are the host's own code, over the fake device. */
#ifndef TESTS_SESSION_FAKE_GPU_H
#define TESTS_SESSION_FAKE_GPU_H

#include "session/gpu/gpu.h"

struct session_gpu {
    int draws, sames, compares, bytes; /* calls */
};

extern struct session_gpu fake_gpu;

#endif
