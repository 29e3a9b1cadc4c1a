/* What fake_cudnn.c saw and is told; exported as `fake_cudnn_seen`. */
#ifndef TESTS_BENCH_FAKE_CUDNN_H
#define TESTS_BENCH_FAKE_CUDNN_H

struct fake_cudnn_seen {
    int handles, live;    /* open handles; descriptors not destroyed */
    int executed, engine; /* plans that ran; the engine of the last */
    int operations;       /* of the last plan's graph */
    int fusion_fails;     /* told: a convolution with more behind it has no engine */
    int start_fails;
};

#endif
