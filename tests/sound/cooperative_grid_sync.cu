// task: softmax_small
// why: one cooperative launch; all blocks meet between the sums of the rows and the division
//@ temp stats f32 [rows * 2]
//@ launch softmax_grid cooperative grid=(min(rows, sm_count)) block=(128) args=(x, stats, y, rows, cols)
#include <cooperative_groups.h>
extern "C" __global__ void softmax_grid(const float *x, float *stats, float *y, int rows, int cols)
{
    __shared__ float buffer[128];
    int t = threadIdx.x;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *in = x + (long long)row * cols;
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
            s += expf(in[i] - m);
        buffer[t] = s;
        __syncthreads();
        for (int d = 64; d; d /= 2) {
            if (t < d)
                buffer[t] += buffer[t + d];
            __syncthreads();
        }
        if (t == 0) {
            stats[2 * row] = m;
            stats[2 * row + 1] = buffer[0];
        }
        __syncthreads();
    }
    cooperative_groups::this_grid().sync();
    for (long long i = blockIdx.x * 128LL + t; i < (long long)rows * cols; i += gridDim.x * 128LL) {
        const float *row = stats + 2 * (i / cols);
        y[i] = expf(x[i] - row[0]) / row[1];
    }
}
