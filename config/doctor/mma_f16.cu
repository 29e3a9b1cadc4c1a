//@ launch chains grid=(n / 8192) block=(128) args=(x, y, n)

// The second factor is zero, but not to the compiler: sums stay what they were.
extern "C" __global__ void __launch_bounds__(128) chains(const float *x, float *y, long long n)
{
    long long first = (long long)blockIdx.x * 8192 + threadIdx.x;
    unsigned a = 0x3c003c00u, b = n < 0;
    float v[16][4];
#pragma unroll
    for (int k = 0; k < 64; k++)
        v[k / 4][k % 4] = x[first + 128 * k];
    for (int i = 0; i < 512; i++)
#pragma unroll
        for (int k = 0; k < 16; k++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
                         : "+f"(v[k][0]), "+f"(v[k][1]), "+f"(v[k][2]), "+f"(v[k][3])
                         : "r"(a), "r"(b));
#pragma unroll
    for (int k = 0; k < 64; k++)
        y[first + 128 * k] = v[k / 4][k % 4];
}
