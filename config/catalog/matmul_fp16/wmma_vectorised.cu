// operator: matmul_fp16
// idea: Copy the tiles for the tensor cores eight halves at a time where the sizes allow it.
// category: memory
// after: wmma
//@ tune   BM = 128, 64
//@ tune   BN = 128, 64
//@ tune   BK = 32, 16
//@ launch matmul_wmma8<{{ta}}, {{tb}}, BM, BN, BK> grid=(ceil_div({{m}}, BM) * ceil_div({{n}}, BN) * {{batch}}) block=(BM * BN / 32) args=({{a}}, {{b}}, {{c}}, {{m}}, {{n}}, {{k}}{{MORE_ARGS}}) when=({{m}} % 8 == 0 and {{n}} % 8 == 0 and {{k}} % 8 == 0)
//@ launch matmul_wmma<{{ta}}, {{tb}}, BM, BN, BK> grid=(ceil_div({{m}}, BM) * ceil_div({{n}}, BN) * {{batch}}) block=(BM * BN / 32) args=({{a}}, {{b}}, {{c}}, {{m}}, {{n}}, {{k}}{{MORE_ARGS}}) when=(not ({{m}} % 8 == 0 and {{n}} % 8 == 0 and {{k}} % 8 == 0))

#include <cuda_fp16.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

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

// Copies a ROWS x COLS tile that begins at (r0, c0) of a matrix into shared memory, zeros beyond its end.
template <int ROWS, int COLS, int TPB>
__device__ __forceinline__ void load_tile(__half (*tile)[COLS + 8], const __half *__restrict__ from,
                                          int r0, int c0, int r_end, int c_end)
{
    const __half zero = __float2half(0.0f);
#pragma unroll 4
    for (int i = threadIdx.x; i < ROWS * COLS; i += TPB) {
        const int r = i / COLS, c = i % COLS;
        const bool inside = r0 + r < r_end && c0 + c < c_end;
        tile[r][c] = inside ? from[(long long)(r0 + r) * c_end + c0 + c] : zero;
    }
}

// The same, eight halves at a time: both sizes of the matrix are multiples of eight.
template <int ROWS, int COLS, int TPB>
__device__ __forceinline__ void load_tile8(__half (*tile)[COLS + 8],
                                           const __half *__restrict__ from, int r0, int c0,
                                           int r_end, int c_end)
{
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * COLS / 8; i += TPB) {
        const int r = i / (COLS / 8), c = i % (COLS / 8) * 8;
        const bool inside = r0 + r < r_end && c0 + c < c_end;
        *reinterpret_cast<uint4 *>(&tile[r][c]) =
            inside ? *reinterpret_cast<const uint4 *>(from + (long long)(r0 + r) * c_end + c0 + c)
                   : make_uint4(0, 0, 0, 0);
    }
}

// A tile of a in shared memory as it is stored: rows of i, or with TA columns of it; likewise b.
template <int TA, int TB, int BM, int BN, int BK>
struct Tiles {
    static constexpr int AR = TA ? BK : BM, AC = TA ? BM : BK;
    static constexpr int BR = TB ? BN : BK, BC = TB ? BK : BN;
    __half a[AR][AC + 8];
    __half b[BR][BC + 8];
};

template <int SWAPPED>
struct Layout {
    using type = wmma::row_major;
};
template <>
struct Layout<1> {
    using type = wmma::col_major;
};

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// Adds the product of two tiles to the sums of a warp, whose part begins at (row, col).
template <int TA, int TB, int BM, int BN, int BK, int FM, int FN>
__device__ __forceinline__ void add_product(Sums (&sum)[FM][FN],
                                            const Tiles<TA, TB, BM, BN, BK> &tiles, int row, int col)
{
    using Shape = Tiles<TA, TB, BM, BN, BK>;
#pragma unroll
    for (int i = 0; i < BK; i += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, typename Layout<TA>::type> fa[FM];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, typename Layout<TB>::type> fb[FN];
#pragma unroll
        for (int r = 0; r < FM; ++r) {
            const int at = row + 16 * r;
            wmma::load_matrix_sync(fa[r], TA ? &tiles.a[i][at] : &tiles.a[at][i], Shape::AC + 8);
        }
#pragma unroll
        for (int s = 0; s < FN; ++s) {
            const int at = col + 16 * s;
            wmma::load_matrix_sync(fb[s], TB ? &tiles.b[at][i] : &tiles.b[i][at], Shape::BC + 8);
        }
#pragma unroll
        for (int r = 0; r < FM; ++r)
#pragma unroll
            for (int s = 0; s < FN; ++s)
                wmma::mma_sync(sum[r][s], fa[r], fb[s], sum[r][s]);
    }
}

// Warps of 32 x 32 sums each (FM x FN fragments). TA, TB: whether a is stored [k, m], b [n, k].
template <int TA, int TB, int BM, int BN, int BK>
__global__ void __launch_bounds__(BM * BN / 32)
matmul_wmma8(const __half *__restrict__ a, const __half *__restrict__ b, __half *__restrict__ c,
            int m, int n, int k{{MORE_POINTERS}})
{
    constexpr int TPB = BM * BN / 32, FM = 2, FN = 2;
    using Shape = Tiles<TA, TB, BM, BN, BK>;
    __shared__ __align__(32) Shape tiles;
    const Tile tile = tile_of_block<BM, BN>(m, n);
    const int warp = threadIdx.x / 32;
    const int wr = warp / (BN / 32) * 32, wc = warp % (BN / 32) * 32;
    a += tile.batch * m * k;
    b += tile.batch * k * n;

    Sums sum[FM][FN];
#pragma unroll
    for (int r = 0; r < FM; ++r)
#pragma unroll
        for (int s = 0; s < FN; ++s)
            wmma::fill_fragment(sum[r][s], 0.0f);
    for (int from = 0; from < k; from += BK) {
        load_tile8<Shape::AR, Shape::AC, TPB>(tiles.a, a, TA ? from : tile.row, TA ? tile.row : from,
                                              TA ? k : m, TA ? m : k);
        load_tile8<Shape::BR, Shape::BC, TPB>(tiles.b, b, TB ? tile.col : from, TB ? from : tile.col,
                                              TB ? n : k, TB ? k : n);
        __syncthreads();
        add_product<TA, TB, BM, BN, BK>(sum, tiles, wr, wc);
        __syncthreads();
    }

    // Sums leave by way of shared memory, because a fragment does not say which elements it holds.
    __shared__ float out[TPB / 32][16][16 + 4];
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < FM; ++r)
#pragma unroll
        for (int s = 0; s < FN; ++s) {
            wmma::store_matrix_sync(&out[warp][0][0], sum[r][s], 16 + 4, wmma::mem_row_major);
            __syncwarp();
#pragma unroll
            for (int i = lane; i < 256; i += 32) {
                const int row = tile.row + wr + 16 * r + i / 16;
                const int col = tile.col + wc + 16 * s + i % 16;
                const float v = out[warp][i / 16][i % 16];
                if (row < m && col < n)
                    c[(tile.batch * m + row) * n + col] = __float2half({{finish:v|col}});
            }
            __syncwarp();
        }
}

// Warps of 32 x 32 sums each (FM x FN fragments). TA, TB: whether a is stored [k, m], b [n, k].
template <int TA, int TB, int BM, int BN, int BK>
__global__ void __launch_bounds__(BM * BN / 32)
matmul_wmma(const __half *__restrict__ a, const __half *__restrict__ b, __half *__restrict__ c,
            int m, int n, int k{{MORE_POINTERS}})
{
    constexpr int TPB = BM * BN / 32, FM = 2, FN = 2;
    using Shape = Tiles<TA, TB, BM, BN, BK>;
    __shared__ __align__(32) Shape tiles;
    const Tile tile = tile_of_block<BM, BN>(m, n);
    const int warp = threadIdx.x / 32;
    const int wr = warp / (BN / 32) * 32, wc = warp % (BN / 32) * 32;
    a += tile.batch * m * k;
    b += tile.batch * k * n;

    Sums sum[FM][FN];
#pragma unroll
    for (int r = 0; r < FM; ++r)
#pragma unroll
        for (int s = 0; s < FN; ++s)
            wmma::fill_fragment(sum[r][s], 0.0f);
    for (int from = 0; from < k; from += BK) {
        load_tile<Shape::AR, Shape::AC, TPB>(tiles.a, a, TA ? from : tile.row, TA ? tile.row : from,
                                              TA ? k : m, TA ? m : k);
        load_tile<Shape::BR, Shape::BC, TPB>(tiles.b, b, TB ? tile.col : from, TB ? from : tile.col,
                                              TB ? n : k, TB ? k : n);
        __syncthreads();
        add_product<TA, TB, BM, BN, BK>(sum, tiles, wr, wc);
        __syncthreads();
    }

    // Sums leave by way of shared memory, because a fragment does not say which elements it holds.
    __shared__ float out[TPB / 32][16][16 + 4];
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < FM; ++r)
#pragma unroll
        for (int s = 0; s < FN; ++s) {
            wmma::store_matrix_sync(&out[warp][0][0], sum[r][s], 16 + 4, wmma::mem_row_major);
            __syncwarp();
#pragma unroll
            for (int i = lane; i < 256; i += 32) {
                const int row = tile.row + wr + 16 * r + i / 16;
                const int col = tile.col + wc + 16 * s + i % 16;
                const float v = out[warp][i / 16][i % 16];
                if (row < m && col < n)
                    c[(tile.batch * m + row) * n + col] = __float2half({{finish:v|col}});
            }
            __syncwarp();
        }
}
