constexpr int BM = 128, BN = 128, BK = 8;

__global__ void kernel(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float As[2][BK][BM], Bs[2][BK][BN];
    float acc[8][8] = {}, a[8], b[8];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, by = blockIdx.y * BM, bx = blockIdx.x * BN;
    for (int k = 0; k < K; k += BK) {
        int s = (k / BK) & 1;
        for (int i = threadIdx.x; i < BM * BK; i += 256)
            As[s][i % BK][i / BK] = A[(by + i / BK) * K + k + i % BK];
        for (int i = threadIdx.x; i < BN * BK; i += 256)
            Bs[s][i / BN][i % BN] = B[(k + i / BN) * N + bx + i % BN];
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < BK; kk++) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                a[i] = As[s][kk][ty * 8 + i];
                b[i] = Bs[s][kk][tx * 8 + i];
            }
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++)
                    acc[i][j] += a[i] * b[j];
        }
    }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            C[(by + ty * 8 + i) * N + bx + tx * 8 + j] = acc[i][j];
}
