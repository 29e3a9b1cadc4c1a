// task: softmax_small
// why: maximum and sum in one kernel, the division in another, with a temporary between them
//@ temp stats f32 [rows * 2]
//@ zero stats
//@ launch reduce_rows grid=(rows) block=(128) shared=128*4 args=(x, stats, cols)
//@ launch divide grid=(ceil_div(rows * cols, 256)) block=(256) args=(x, stats, y, cols, rows * cols)
extern __shared__ float buffer[];
extern "C" __global__ void reduce_rows(const float *x, float *stats, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    float m = -INFINITY, s = 0.0f;
    for (int i = t; i < cols; i += 128)
        m = fmaxf(m, in[i]);
    buffer[t] = m;
    __syncthreads();
    for (int d = 64; d; d /= 2) {
        if (t < d)
            buffer[t] = fmaxf(buffer[t], buffer[t + d]);
        __syncthreads();
    }
    m = buffer[0];
    __syncthreads();
    for (int i = t; i < cols; i += 128)
        s += __expf(in[i] - m);
    buffer[t] = s;
    __syncthreads();
    for (int d = 64; d; d /= 2) {
        if (t < d)
            buffer[t] += buffer[t + d];
        __syncthreads();
    }
    if (t == 0) {
        stats[2 * blockIdx.x] = m;
        stats[2 * blockIdx.x + 1] = buffer[0];
    }
}
extern "C" __global__ void divide(const float *x, const float *stats, float *y, int cols, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = __fdividef(__expf(x[i] - stats[i / cols * 2]), stats[i / cols * 2 + 1]);
}
