// operator: matmul
// idea: Fetch the next tiles into registers while the current ones are multiplied, and keep two of each in shared memory, which leaves one barrier a tile.
// category: latency
// after: vectorised
//@ tune   BM = 128, 64
//@ tune   BN = 128, 64
//@ tune   BK = 8, 16
//@ launch matmul_buffered<{{ta}}, {{tb}}, BM, BN, BK> grid=(ceil_div({{m}}, BM) * ceil_div({{n}}, BN) * {{batch}}) block=(BM * BN / 64) args=({{a}}, {{b}}, {{c}}, {{m}}, {{n}}, {{k}}{{MORE_ARGS}}) when=({{m}} % 4 == 0 and {{n}} % 4 == 0 and {{k}} % 4 == 0)
//@ launch matmul_registers<{{ta}}, {{tb}}, BM, BN, BK> grid=(ceil_div({{m}}, BM) * ceil_div({{n}}, BN) * {{batch}}) block=(BM * BN / 64) args=({{a}}, {{b}}, {{c}}, {{m}}, {{n}}, {{k}}{{MORE_ARGS}}) when=(not ({{m}} % 4 == 0 and {{n}} % 4 == 0 and {{k}} % 4 == 0))

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

// What a thread carries of a K x W tile that begins at (k0, w0) of a matrix: four floats at a time, zeros
// beyond its end. SWAPPED: the matrix is stored [w, k]. Both sizes of it are multiples of four.
template <int SWAPPED, int K, int W, int TPB>
struct Load {
    static constexpr int COUNT = K * W / 4 / TPB;
    float4 v[COUNT];

    __device__ __forceinline__ static int k_of(int i)
    {
        return SWAPPED ? i % (K / 4) * 4 : i / (W / 4);
    }
    __device__ __forceinline__ static int w_of(int i)
    {
        return SWAPPED ? i / (K / 4) : i % (W / 4) * 4;
    }
    __device__ __forceinline__ void fetch(const float *__restrict__ from, int k0, int w0, int k_end,
                                          int w_end)
    {
#pragma unroll
        for (int q = 0; q < COUNT; ++q) {
            const int k = k0 + k_of(threadIdx.x + q * TPB), w = w0 + w_of(threadIdx.x + q * TPB);
            const long long index = SWAPPED ? (long long)w * k_end + k : (long long)k * w_end + w;
            v[q] = k < k_end && w < w_end ? *reinterpret_cast<const float4 *>(from + index)
                                          : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
    __device__ __forceinline__ void put(float (*tile)[W + 4]) const
    {
#pragma unroll
        for (int q = 0; q < COUNT; ++q) {
            const int k = k_of(threadIdx.x + q * TPB), w = w_of(threadIdx.x + q * TPB);
            if (SWAPPED) {
                tile[k][w] = v[q].x;
                tile[k + 1][w] = v[q].y;
                tile[k + 2][w] = v[q].z;
                tile[k + 3][w] = v[q].w;
            } else {
                *reinterpret_cast<float4 *>(&tile[k][w]) = v[q];
            }
        }
    }
};

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

template <int TA, int TB, int BM, int BN, int BK>
__global__ void __launch_bounds__(BM * BN / 64)
matmul_buffered(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                int m, int n, int k{{MORE_POINTERS}})
{
    constexpr int TPB = BM * BN / 64;
    __shared__ __align__(16) float as[2][BK][BM + 4], bs[2][BK][BN + 4];
    const Tile tile = tile_of_block<BM, BN>(m, n);
    const int tx = threadIdx.x % (BN / 8), ty = threadIdx.x / (BN / 8);
    a += tile.batch * m * k;
    b += tile.batch * k * n;

    float sum[8][8] = {};
    Load<!TA, BK, BM, TPB> la;
    Load<TB, BK, BN, TPB> lb;
    la.fetch(a, 0, tile.row, k, m);
    lb.fetch(b, 0, tile.col, k, n);
    la.put(as[0]);
    lb.put(bs[0]);
    __syncthreads();
    int now = 0;
    for (int from = 0; from < k; from += BK, now ^= 1) {
        const bool more = from + BK < k;
        if (more) {
            la.fetch(a, from + BK, tile.row, k, m);
            lb.fetch(b, from + BK, tile.col, k, n);
        }
        add_product<BM, BN, BK>(sum, as[now], bs[now], ty, tx);
        if (more) {
            la.put(as[now ^ 1]);
            lb.put(bs[now ^ 1]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        const int row = tile.row + nth<BM>(ty, r);
#pragma unroll
        for (int s = 0; s < 8; s += 4) {
            const int col = tile.col + nth<BN>(tx, s);
            if (row < m && col < n)
                *reinterpret_cast<float4 *>(c + (tile.batch * m + row) * n + col) =
                    make_float4({{finish:sum[r][s]|col}}, {{finish:sum[r][s + 1]|col + 1}},
                                {{finish:sum[r][s + 2]|col + 2}}, {{finish:sum[r][s + 3]|col + 3}});
        }
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
