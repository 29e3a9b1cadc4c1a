// operator: matmul
// idea: Let each thread compute 8 x 8 elements in registers, so that one value from shared memory serves eight multiplications.
// category: registers
// after: shared_tiles
//@ tune   BM = 128, 64
//@ tune   BN = 128, 64
//@ tune   BK = 8, 16
//@ launch matmul_registers<{{ta}}, {{tb}}, BM, BN, BK> grid=(ceil_div({{m}}, BM) * ceil_div({{n}}, BN) * {{batch}}) block=(BM * BN / 64) args=({{a}}, {{b}}, {{c}}, {{m}}, {{n}}, {{k}}{{MORE_ARGS}})

{{HELPERS}}
__device__ __forceinline__ float apply({{VALUES}})
{
{{LETS}}    return {{EXPR}};
}

// The part of the product that a block computes: matrix, first row, first column.
struct Tile {
    long long batch;
    int row, col;
};

template <int BM, int BN>
__device__ __forceinline__ Tile tile_of_block(int m, int n)
{
    const unsigned down = (m + BM - 1) / BM, across = (n + BN - 1) / BN;
    const unsigned in_matrix = blockIdx.x % (down * across);
    return {blockIdx.x / (down * across), int(in_matrix / across * BM), int(in_matrix % across * BN)};
}

// Copies a K x W tile that begins at (k0, w0) of a matrix into shared memory, zeros beyond its end.
// SWAPPED: the matrix is stored [w, k].
template <int SWAPPED, int K, int W, int TPB>
__device__ __forceinline__ void load_tile(float (*tile)[W + 4], const float *__restrict__ from,
                                          int k0, int w0, int k_end, int w_end)
{
#pragma unroll
    for (int i = threadIdx.x; i < K * W; i += TPB) {
        const int k = SWAPPED ? i % K : i / W, w = SWAPPED ? i / K : i % W;
        const bool inside = k0 + k < k_end && w0 + w < w_end;
        const long long at = SWAPPED ? (long long)(w0 + w) * k_end + k0 + k
                                     : (long long)(k0 + k) * w_end + w0 + w;
        tile[k][w] = inside ? from[at] : 0.0f;
    }
}

// Row or column j of the 8 x 8 that a thread computes: two groups of four, half a tile apart, so that
// the threads of a warp read neighbouring float4 values.
template <int SIZE>
__device__ __forceinline__ int nth(int thread, int j)
{
    return thread * 4 + j / 4 * (SIZE / 2) + j % 4;
}

// Adds the product of two tiles to a thread's 8 x 8 sums.
template <int BM, int BN, int BK>
__device__ __forceinline__ void add_product(float (&sum)[8][8], const float (*as)[BM + 4],
                                            const float (*bs)[BN + 4], int ty, int tx)
{
#pragma unroll
    for (int i = 0; i < BK; ++i) {
        float av[8], bv[8];
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            *reinterpret_cast<float4 *>(av + j) =
                *reinterpret_cast<const float4 *>(&as[i][nth<BM>(ty, j)]);
            *reinterpret_cast<float4 *>(bv + j) =
                *reinterpret_cast<const float4 *>(&bs[i][nth<BN>(tx, j)]);
        }
#pragma unroll
        for (int r = 0; r < 8; ++r)
#pragma unroll
            for (int s = 0; s < 8; ++s)
                sum[r][s] += av[r] * bv[s];
    }
}

// TA, TB: whether a is stored [k, m], b [n, k].
template <int TA, int TB, int BM, int BN, int BK>
__global__ void __launch_bounds__(BM * BN / 64)
matmul_registers(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                 int m, int n, int k{{MORE_POINTERS}})
{
    constexpr int TPB = BM * BN / 64;
    __shared__ __align__(16) float as[BK][BM + 4], bs[BK][BN + 4];
    const Tile tile = tile_of_block<BM, BN>(m, n);
    const int tx = threadIdx.x % (BN / 8), ty = threadIdx.x / (BN / 8);
    a += tile.batch * m * k;
    b += tile.batch * k * n;

    float sum[8][8] = {};
    for (int from = 0; from < k; from += BK) {
        load_tile<!TA, BK, BM, TPB>(as, a, from, tile.row, k, m);
        load_tile<TB, BK, BN, TPB>(bs, b, from, tile.col, k, n);
        __syncthreads();
        add_product<BM, BN, BK>(sum, as, bs, ty, tx);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        const int row = tile.row + nth<BM>(ty, r);
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            const int col = tile.col + nth<BN>(tx, s);
            if (row < m && col < n)
                c[(tile.batch * m + row) * n + col] = {{finish:sum[r][s]|col}};
        }
    }
}
