// task: softmax_small
// why: one pass for maximum and sum, fast exponential in base 2, multiplied by a reciprocal: honest fp32
//@ tune TPB = 128, 256
//@ launch softmax_online<TPB> grid=(rows) block=(TPB) args=(x, y, cols)
template <int TPB> __global__ void softmax_online(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    const float log2e = 1.4426950408889634f;
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    __shared__ float sm[TPB / 32], ss[TPB / 32];
    float m = -INFINITY, s = 0.0f;
    for (int i = threadIdx.x; i < cols; i += TPB) {
        float v = in[i] * log2e, n = fmaxf(m, v);
        s = s * exp2f(m - n) + exp2f(v - n);
        m = n;
    }
    for (int d = 16; d; d /= 2) {
        float om = __shfl_xor_sync(~0u, m, d), os = __shfl_xor_sync(~0u, s, d), n = fmaxf(m, om);
        s = (m == -INFINITY ? 0.0f : s * exp2f(m - n)) + (om == -INFINITY ? 0.0f : os * exp2f(om - n));
        m = n;
    }
    if (threadIdx.x % 32 == 0) {
        sm[threadIdx.x / 32] = m;
        ss[threadIdx.x / 32] = s;
    }
    __syncthreads();
    m = sm[0];
    for (int w = 1; w < TPB / 32; w++)
        m = fmaxf(m, sm[w]);
    s = 0.0f;
    for (int w = 0; w < TPB / 32; w++)
        s += sm[w] == -INFINITY ? 0.0f : ss[w] * exp2f(sm[w] - m);
    float r = 1.0f / s;
    for (int i = threadIdx.x; i < cols; i += TPB)
        out[i] = exp2f(fmaf(in[i], log2e, -m)) * r;
}
