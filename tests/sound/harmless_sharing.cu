// task: softmax_small
// why: what looks like races and garbage and is none: the same flag from all warps, a count by atomics,
// why: words that nobody wrote but that no result depends on, a warp that works alone
//@ launch softmax_busy grid=(rows) block=(128) args=(x, y, cols)
extern "C" __global__ void softmax_busy(const float *x, float *y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    __shared__ float part[32];
    __shared__ int has_work, count;
    int t = threadIdx.x;
    if (t == 0)
        has_work = count = 0;
    __syncthreads();
    if (t < cols) {
        has_work = 1;
        atomicAdd(&count, 1);
    }
    float m = -INFINITY, s = 0.0f;
    for (int i = t; i < cols; i += 128)
        m = fmaxf(m, in[i]);
    for (int d = 16; d; d /= 2)
        m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
    if (t % 32 == 0)
        part[t / 32] = m;
    __syncthreads();
    float mine = part[t % 32];
    m = t % 32 < 4 ? mine : -INFINITY;
    for (int d = 16; d; d /= 2)
        m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
    __syncthreads();
    for (int i = t; i < cols; i += 128)
        s += expf(in[i] - m);
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(0xffffffffu, s, d);
    if (t % 32 == 0)
        part[t / 32] = s;
    __syncthreads();
    s = part[0] + part[1] + part[2] + part[3];
    if (has_work && count > 0)
        for (int i = t; i < cols; i += 128)
            out[i] = expf(in[i] - m) / s;
}
