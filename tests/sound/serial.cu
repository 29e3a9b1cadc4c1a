// task: softmax_small
// why: one thread a row, three passes, summed in order
//@ launch softmax_serial grid=(rows) block=(1) args=(x, y, cols)
extern "C" __global__ void softmax_serial(const float *x, float *y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    float m = -INFINITY, sum = 0.0f;
    for (int i = 0; i < cols; i++)
        m = fmaxf(m, in[i]);
    for (int i = 0; i < cols; i++)
        sum += expf(in[i] - m);
    for (int i = 0; i < cols; i++)
        out[i] = expf(in[i] - m) / sum;
}
