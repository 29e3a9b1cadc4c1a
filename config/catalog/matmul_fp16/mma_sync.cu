// operator: matmul_fp16
// idea: Load fragments with ldmatrix and multiply with mma, 64 rows a warp, so that one load from shared memory feeds four tensor-core instructions; results leave from the registers.
// category: tensor
// after: wmma_async
//@ tune   BM = 128, 64
//@ tune   BN = 128, 64
//@ tune   BK = 32, 16
//@ tune   WN = 64, 32
//@ launch matmul_mma<{{ta}}, {{tb}}, BM, BN, BK, WN> grid=(ceil_div({{m}}, BM) * ceil_div({{n}}, BN) * {{batch}}) block=(BM * BN / (2 * WN)) args=({{a}}, {{b}}, {{c}}, {{m}}, {{n}}, {{k}}{{MORE_ARGS}}) when=({{m}} % 8 == 0 and {{n}} % 8 == 0 and {{k}} % 8 == 0)
//@ launch matmul_wmma<{{ta}}, {{tb}}, 64, 64, 32> grid=(ceil_div({{m}}, 64) * ceil_div({{n}}, 64) * {{batch}}) block=(128) args=({{a}}, {{b}}, {{c}}, {{m}}, {{n}}, {{k}}{{MORE_ARGS}}) when=(not ({{m}} % 8 == 0 and {{n}} % 8 == 0 and {{k}} % 8 == 0))

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

// Starts copying a ROWS x COLS tile from global to shared memory past the registers, zeros beyond the
// matrix's end; both sizes of the matrix are multiples of eight.
template <int ROWS, int COLS, int TPB>
__device__ __forceinline__ void start_tile(__half (*tile)[COLS + 8],
                                           const __half *__restrict__ from, int r0, int c0,
                                           int r_end, int c_end)
{
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * COLS / 8; i += TPB) {
        const int r = i / (COLS / 8), c = i % (COLS / 8) * 8;
        const bool inside = r0 + r < r_end && c0 + c < c_end;
        const __half *source = inside ? from + (long long)(r0 + r) * c_end + c0 + c : from;
        const unsigned to = (unsigned)__cvta_generic_to_shared(&tile[r][c]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(source),
                     "r"(inside ? 16 : 0)
                     : "memory");
    }
}

__device__ __forceinline__ void commit_tiles()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most N of this thread's groups are still on the way.
template <int N>
__device__ __forceinline__ void wait_tiles()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
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

// Four 8 x 8 matrices of shared memory, transposed or not, spread over the lanes of a warp.
template <int TRANSPOSED>
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const __half *row)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
}

// sum += a * b for a 16 x 8 part of the sums: a is 16 x 16, b 16 x 8.
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Adds the product of two tiles to the FM x FN sums of 16 x 8 of a warp, whose part begins at (row, col).
template <int TA, int TB, int BM, int BN, int BK, int FM, int FN>
__device__ __forceinline__ void add_product8(float (&sum)[FM][FN][4],
                                             const Tiles<TA, TB, BM, BN, BK> &tiles, int row, int col)
{
    const int lane = threadIdx.x % 32, line = lane % 8, half = lane / 8 % 2 * 8, far = lane / 16 * 8;
#pragma unroll
    for (int i = 0; i < BK; i += 16) {
        unsigned fa[FM][4], fb[FN / 2][4];
#pragma unroll
        for (int r = 0; r < FM; ++r) {
            const int at = row + 16 * r + half;
            load_matrices<TA>(fa[r], TA ? &tiles.a[i + far + line][at] : &tiles.a[at + line][i + far]);
        }
#pragma unroll
        for (int s = 0; s < FN / 2; ++s) {
            const int at = col + 16 * s + far;
            load_matrices<!TB>(fb[s],
                               TB ? &tiles.b[at + line][i + half] : &tiles.b[i + half + line][at]);
        }
#pragma unroll
        for (int r = 0; r < FM; ++r)
#pragma unroll
            for (int s = 0; s < FN; ++s)
                multiply(sum[r][s], fa[r], fb[s / 2][s % 2 * 2], fb[s / 2][s % 2 * 2 + 1]);
    }
}

template <int TA, int TB, int BM, int BN, int BK, int TPB>
__device__ __forceinline__ void start_tiles(Tiles<TA, TB, BM, BN, BK> &tiles, const __half *a,
                                            const __half *b, Tile tile, int from, int m, int n, int k)
{
    using Shape = Tiles<TA, TB, BM, BN, BK>;
    start_tile<Shape::AR, Shape::AC, TPB>(tiles.a, a, TA ? from : tile.row, TA ? tile.row : from,
                                          TA ? k : m, TA ? m : k);
    start_tile<Shape::BR, Shape::BC, TPB>(tiles.b, b, TB ? tile.col : from, TB ? from : tile.col,
                                          TB ? n : k, TB ? k : n);
    commit_tiles();
}

// Warps of 64 x WN sums each. TA, TB: whether a is stored [k, m], b [n, k].
template <int TA, int TB, int BM, int BN, int BK, int WN>
__global__ void __launch_bounds__(BM * BN / (2 * WN))
matmul_mma(const __half *__restrict__ a, const __half *__restrict__ b, __half *__restrict__ c, int m,
           int n, int k{{MORE_POINTERS}})
{
    constexpr int TPB = BM * BN / (2 * WN), FM = 4, FN = WN / 8;
    __shared__ __align__(32) Tiles<TA, TB, BM, BN, BK> tiles[2];
    const Tile tile = tile_of_block<BM, BN>(m, n);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int wr = warp / (BN / WN) * 64, wc = warp % (BN / WN) * WN;
    a += tile.batch * m * k;
    b += tile.batch * k * n;

    float sum[FM][FN][4] = {};
    start_tiles<TA, TB, BM, BN, BK, TPB>(tiles[0], a, b, tile, 0, m, n, k);
    int now = 0;
    for (int from = 0; from < k; from += BK, now ^= 1) {
        if (from + BK < k)
            start_tiles<TA, TB, BM, BN, BK, TPB>(tiles[now ^ 1], a, b, tile, from + BK, m, n, k);
        else
            commit_tiles(); // an empty group keeps the count of groups the same
        wait_tiles<1>();
        __syncthreads();
        add_product8<TA, TB, BM, BN, BK>(sum, tiles[now], wr, wc);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 2 * FM; ++r) {
        const int row = tile.row + wr + 8 * r + lane / 4;
#pragma unroll
        for (int s = 0; s < FN; ++s) {
            const int col = tile.col + wc + 8 * s + lane % 4 * 2;
            const float v0 = sum[r / 2][s][r % 2 * 2], v1 = sum[r / 2][s][r % 2 * 2 + 1];
            if (row < m && col < n)
                *reinterpret_cast<__half2 *>(c + (tile.batch * m + row) * n + col) =
                    __floats2half2_rn({{finish:v0|col}}, {{finish:v1|col + 1}});
        }
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
