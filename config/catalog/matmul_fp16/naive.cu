// operator: matmul_fp16
// idea: Give each element of the product to one thread, which reads halves and sums in float.
// category: baseline
// after: none
// unroll: 1, 4, 2
// graph: c = chain(matmul(a, b))
// tensors: a f16 [batch.., m, k]; b f16 [batch.., k, n]; c f16 [batch.., m, n]
// let: ta = 0, tb = 0
// graph: c = chain(matmul(a, b, transpose_b=1))
// tensors: a f16 [batch.., m, k]; b f16 [batch.., n, k]; c f16 [batch.., m, n]
// let: ta = 0, tb = 1
// graph: c = chain(matmul(a, b, transpose_a=1))
// tensors: a f16 [batch.., k, m]; b f16 [batch.., k, n]; c f16 [batch.., m, n]
// let: ta = 1, tb = 0
// graph: c = chain(matmul(a, b, transpose_a=1, transpose_b=1))
// tensors: a f16 [batch.., k, m]; b f16 [batch.., n, k]; c f16 [batch.., m, n]
// let: ta = 1, tb = 1
// graph: c = chain(matmul(a, b))
// tensors: a f16 [m.., k]; b f16 [k, n]; c f16 [m.., n]
// let: batch = 1, ta = 0, tb = 0
// graph: c = chain(matmul(a, b, transpose_b=1))
// tensors: a f16 [m.., k]; b f16 [n, k]; c f16 [m.., n]
// let: batch = 1, ta = 0, tb = 1
//@ tune   BX = 32, 16, 64
//@ launch matmul_naive<{{ta}}, {{tb}}, BX, 8> grid=(ceil_div({{m}}, 8) * ceil_div({{n}}, BX) * {{batch}}) block=(BX, 8) args=({{a}}, {{b}}, {{c}}, {{m}}, {{n}}, {{k}}{{MORE_ARGS}})

#include <cuda_fp16.h>

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
template <int TA, int TB, int BX, int BY>
__global__ void __launch_bounds__(BX * BY)
matmul_naive(const __half *__restrict__ a, const __half *__restrict__ b, __half *__restrict__ c,
             int m, int n, int k{{MORE_POINTERS}})
{
    const Tile tile = tile_of_block<BY, BX>(m, n);
    const int row = tile.row + threadIdx.y, col = tile.col + threadIdx.x;
    if (row >= m || col >= n) return; //! guard
    a += tile.batch * m * k;
    b += tile.batch * k * n;

    float sum = 0.0f;
#pragma unroll {{UNROLL}}
    for (int i = 0; i < k; ++i)
        sum += __half2float(a[TA ? (long long)i * m + row : (long long)row * k + i]) *
               __half2float(b[TB ? (long long)col * k + i : (long long)i * n + col]);
    c[(tile.batch * m + row) * n + col] = __float2half({{finish:sum|col}});
}
