// task: tests/tasks/softmax_padded
// why: rows are ld apart, and nothing behind their ends is touched
//@ launch softmax_padded grid=(rows) block=(32) args=(x, y, cols, ld)
extern "C" __global__ void softmax_padded(const float *x, float *y, int cols, int ld)
{
    const float *in = x + (long long)blockIdx.x * ld;
    float *out = y + (long long)blockIdx.x * ld;
    float m = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32)
        m = fmaxf(m, in[i]);
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, k));
    for (int i = threadIdx.x; i < cols; i += 32)
        sum += expf(in[i] - m);
    for (int k = 16; k; k /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, k);
    for (int i = threadIdx.x; i < cols; i += 32)
        out[i] = expf(in[i] - m) / sum;
}
