//@ launch chains grid=(n / 2048) block=(256) args=(x, y, one, zero)

extern "C" __global__ void __launch_bounds__(256) chains(const float *x, float *y, float one, float zero)
{
    long long first = (long long)blockIdx.x * 2048 + threadIdx.x;
    float v[8];
#pragma unroll
    for (int k = 0; k < 8; k++)
        v[k] = x[first + 256 * k];
#pragma unroll 16
    for (int i = 0; i < 2048; i++)
#pragma unroll
        for (int k = 0; k < 8; k++)
            v[k] = fmaf(v[k], one, zero);
#pragma unroll
    for (int k = 0; k < 8; k++)
        y[first + 256 * k] = v[k];
}
