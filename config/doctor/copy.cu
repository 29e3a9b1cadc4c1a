//@ launch copy grid=(ceil_div(n, 1024)) block=(256) args=(x, y)

extern "C" __global__ void __launch_bounds__(256) copy(const float4 *__restrict__ x, float4 *__restrict__ y)
{
    long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    __stcs(y + i, __ldcs(x + i));
}
