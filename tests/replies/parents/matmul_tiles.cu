//@ launch mm_main grid=(n / 32, m / 32) block=(32, 8) args=(a, b, c, m, n, k) when=(m % 32 == 0 and n % 32 == 0 and k % 32 == 0)
//@ launch mm_edge grid=(ceil_div(n, 16), ceil_div(m, 16)) block=(16, 16) args=(a, b, c, m, n, k) when=(not (m % 32 == 0 and n % 32 == 0 and k % 32 == 0))

__global__ void mm_main(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float sa[32][33], sb[32][33];
    int tx = threadIdx.x, ty = threadIdx.y;
    float acc[4] = {0, 0, 0, 0}
    for (int p = 0; p < k; p += 32) {
        for (int i = 0; i < 32; i += 8) {
            sa[ty + i][tx] = a[(size_t)(blockIdx.y * 32 + ty + i) * k + p + tx];
            sb[ty + i][tx] = b[(size_t)(p + ty + i) * n + blockIdx.x * 32 + tx];
        }
        __syncthreads();
        for (int q = 0; q < 32; q++)
            for (int i = 0; i < 4; i++)
                acc[i] += sa[ty + 8 * i][q] * sb[q][tx];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        c[(size_t)(blockIdx.y * 32 + ty + 8 * i) * n + blockIdx.x * 32 + tx] = acc[i];
}

__global__ void mm_edge(const float *a, const float *b, float *c, int m, int n, int k)
{
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i < m && j < n) {
        float s = 0;
        for (int p = 0; p < k; p++)
            s += a[(size_t)i * k + p] * b[(size_t)p * n + j];
        c[(size_t)i * n + j] = s;
    }
}
