// The headers of tensor-core kernels, all at once.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
#include <cooperative_groups.h>

__global__ void kernel(const half *a, const half *b, float *c, int n)
{
    using namespace nvcuda::wmma;
    auto block = cooperative_groups::this_thread_block();
    fragment<matrix_a, 16, 16, 16, half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    fill_fragment(fc, 0.0f);
    for (int k = 0; k < n; k += 16) {
        load_matrix_sync(fa, a + blockIdx.y * 16 * n + k, n);
        load_matrix_sync(fb, b + blockIdx.x * 16 * n + k, n);
        mma_sync(fc, fa, fb, fc);
        block.sync();
    }
    store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, fc, n, mem_row_major);
}
