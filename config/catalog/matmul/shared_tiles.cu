// operator: matmul
// idea: Let each block copy square tiles of both matrices into shared memory, and each thread compute four elements below each other, so that an element is read from memory once a tile.
// category: memory
// after: naive
//@ tune   T = 32, 16
//@ launch matmul_tiled<{{ta}}, {{tb}}, T> grid=(ceil_div({{m}}, T) * ceil_div({{n}}, T) * {{batch}}) block=(T, T / 4) args=({{a}}, {{b}}, {{c}}, {{m}}, {{n}}, {{k}}{{MORE_ARGS}})

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

// TA, TB: whether a is stored [k, m], b [n, k].
template <int TA, int TB, int T>
__global__ void __launch_bounds__(T * T / 4)
matmul_tiled(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m,
             int n, int k{{MORE_POINTERS}})
{
    __shared__ float as[T][T + 1], bs[T][T + 1]; // as[row][i], bs[i][column]
    const Tile tile = tile_of_block<T, T>(m, n);
    const int x = threadIdx.x;
    a += tile.batch * m * k;
    b += tile.batch * k * n;

    float sum[4] = {};
    for (int from = 0; from < k; from += T) {
        // Neighbouring threads read neighbouring elements, whichever way a matrix is stored.
#pragma unroll
        for (int y = threadIdx.y; y < T; y += T / 4) {
            const int ai = from + (TA ? y : x), ar = tile.row + (TA ? x : y);
            const int bi = from + (TB ? x : y), bc = tile.col + (TB ? y : x);
            const float av =
                ai < k && ar < m ? a[TA ? (long long)ai * m + ar : (long long)ar * k + ai] : 0.0f;
            const float bv =
                bi < k && bc < n ? b[TB ? (long long)bc * k + bi : (long long)bi * n + bc] : 0.0f;
            as[TA ? x : y][TA ? y : x] = av;
            bs[TB ? x : y][TB ? y : x] = bv;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < T; ++i) {
            const float bv = bs[i][x];
#pragma unroll
            for (int r = 0; r < 4; ++r)
                sum[r] += as[threadIdx.y * 4 + r][i] * bv;
        }
        __syncthreads();
    }
    const int col = tile.col + x;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const int row = tile.row + threadIdx.y * 4 + r;
        if (row < m && col < n)
            c[(tile.batch * m + row) * n + col] = {{finish:sum[r]|col}};
    }
}
