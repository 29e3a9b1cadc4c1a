// task: softmax_small
// why: lanes leave loops at different times and meet again before a shuffle
//@ launch softmax_lanes grid=(rows) block=(32) args=(x, y, cols)
extern "C" __global__ void softmax_lanes(const float *x, float *y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    float m = -INFINITY, s = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32) {
        if (in[i] <= m)
            continue;
        m = in[i];
    }
    for (int d = 16; d; d /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    for (int i = threadIdx.x; i < cols; i += 32)
        s += expf(in[i] - m);
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    for (int i = threadIdx.x; i < cols; i += 32)
        out[i] = expf(in[i] - m) / s;
}
