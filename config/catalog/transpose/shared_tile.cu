// operator: transpose
// idea: Pass tiles of 32 x 32 through shared memory, so that reads and writes both go to neighbouring elements.
// category: memory
// after: naive
//@ tune   ROWS = 8, 4, 16
//@ launch transpose_tile<ROWS> grid=(ceil_div({{m}}, 32) * ceil_div({{n}}, 32) * {{batch}}) block=(32, ROWS) args=({{x}}, {{y}}, {{m}}, {{n}})

template <int ROWS>
__global__ void __launch_bounds__(32 * ROWS)
transpose_tile(const float *__restrict__ x, float *__restrict__ y, int m, int n)
{
    __shared__ float tile[32][32];
    const unsigned across = (n + 31) / 32, down = (m + 31) / 32;
    const int col = blockIdx.x % across * 32, row = blockIdx.x / across % down * 32;
    const long long matrix = (long long)(blockIdx.x / across / down) * m * n;

    for (int r = threadIdx.y; r < 32; r += ROWS)
        if (row + r < m && col + threadIdx.x < n)
            tile[r][threadIdx.x] = x[matrix + (long long)(row + r) * n + col + threadIdx.x];
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += ROWS)
        if (col + r < n && row + threadIdx.x < m)
            y[matrix + (long long)(col + r) * m + row + threadIdx.x] = tile[threadIdx.x][r];
}
