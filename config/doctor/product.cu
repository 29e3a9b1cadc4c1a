//@ launch product grid=(ceil_div(n, 16), ceil_div(m, 16)) block=(16, 16) args=(a, b, c, m, n, k)

extern "C" __global__ void product(const float *a, const float *b, float *c, int m, int n, int k)
{
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    if (row >= m || col >= n)
        return;
    for (int i = 0; i < k; i++)
        sum = fmaf(a[(long long)row * k + i], b[(long long)i * n + col], sum);
    c[(long long)row * n + col] = sum;
}
