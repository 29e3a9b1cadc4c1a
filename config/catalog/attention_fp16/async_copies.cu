// operator: attention_fp16
// idea: Copy the next keys and values asynchronously while the tensor cores work on the current ones.
// category: latency
// after: tensor_cores
//@ tune   TPB = 256, 128
//@ launch attention_async<64> grid=(ceil_div({{n}}, 64) * {{heads}}) block=(128) shared=36864 args=({{q}}, {{k}}, {{v}}, {{o}}, {{n}}, {{m}}, {{d}}, {{dv}}, {{causal}}) when=(max({{d}}, {{dv}}) <= 64 and {{d}} % 8 == 0 and {{dv}} % 8 == 0)
//@ launch attention_mma<64> grid=(ceil_div({{n}}, 64) * {{heads}}) block=(128) args=({{q}}, {{k}}, {{v}}, {{o}}, {{n}}, {{m}}, {{d}}, {{dv}}, {{causal}}) when=(max({{d}}, {{dv}}) <= 64 and not (1 and {{d}} % 8 == 0 and {{dv}} % 8 == 0))
//@ launch attention_async<128> grid=(ceil_div({{n}}, 64) * {{heads}}) block=(128) shared=69632 args=({{q}}, {{k}}, {{v}}, {{o}}, {{n}}, {{m}}, {{d}}, {{dv}}, {{causal}}) when=(max({{d}}, {{dv}}) <= 128 and max({{d}}, {{dv}}) > 64 and {{d}} % 8 == 0 and {{dv}} % 8 == 0)
//@ launch attention_mma<128> grid=(ceil_div({{n}}, 64) * {{heads}}) block=(128) args=({{q}}, {{k}}, {{v}}, {{o}}, {{n}}, {{m}}, {{d}}, {{dv}}, {{causal}}) when=(max({{d}}, {{dv}}) <= 128 and max({{d}}, {{dv}}) > 64 and not (1 and {{d}} % 8 == 0 and {{dv}} % 8 == 0))
//@ temp   scores f32 [{{heads}} * {{n}} * {{m}} * (max({{d}}, {{dv}}) > 128) + 1]
//@ launch attention_scores<TPB> grid=(ceil_div({{heads}} * {{n}} * {{m}}, TPB)) block=(TPB) args=({{q}}, {{k}}, scores, {{heads}}, {{n}}, {{m}}, {{d}}, {{causal}}) when=(max({{d}}, {{dv}}) > 128)
//@ launch attention_softmax<TPB> grid=(ceil_div({{heads}} * {{n}}, TPB / 32)) block=(TPB) args=(scores, {{heads}} * {{n}}, {{m}}) when=(max({{d}}, {{dv}}) > 128)
//@ launch attention_values<TPB> grid=(ceil_div({{heads}} * {{n}} * {{dv}}, TPB)) block=(TPB) args=(scores, {{v}}, {{o}}, {{heads}}, {{n}}, {{m}}, {{dv}}) when=(max({{d}}, {{dv}}) > 128)

#include <cuda_fp16.h>

__device__ __forceinline__ float warp_max(float v)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

// The score of query i with key j of a head, minus infinity where it must not look.
template <int TPB>
__global__ void __launch_bounds__(TPB)
attention_scores(const __half *__restrict__ q, const __half *__restrict__ k, float *__restrict__ scores,
                 long long heads, int n, int m, int d, int causal)
{
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= heads * n * m) return; //! guard
    const int i = at / m % n, j = at % m;
    const __half *query = q + at / m * d;
    const __half *key = k + (at / m / n * m + j) * d;

    float sum = 0.0f;
    for (int c = 0; c < d; ++c)
        sum += __half2float(query[c]) * __half2float(key[c]);
    scores[at] = causal && j > i ? __int_as_float(0xff800000) : sum / sqrtf(d);
}

// Softmax over each row of the scores, in place: a warp a row.
template <int TPB>
__global__ void __launch_bounds__(TPB)
attention_softmax(float *__restrict__ scores, long long rows, int m)
{
    const long long row = (long long)blockIdx.x * (TPB / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    float *p = scores + row * m;
    const int lane = threadIdx.x % 32;

    float top = -3.402823466e+38f;
    for (int j = lane; j < m; j += 32)
        top = fmaxf(top, p[j]);
    top = warp_max(top);
    float sum = 0.0f;
    for (int j = lane; j < m; j += 32)
        sum += expf(p[j] - top);
    const float scale = 1.0f / warp_sum(sum);
    for (int j = lane; j < m; j += 32)
        p[j] = expf(p[j] - top) * scale;
}

// Column c of the mean of the values, weighted with the scores of query i.
template <int TPB>
__global__ void __launch_bounds__(TPB)
attention_values(const float *__restrict__ scores, const __half *__restrict__ v, __half *__restrict__ o,
                 long long heads, int n, int m, int dv)
{
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= heads * n * dv) return;
    const int c = at % dv;
    const float *p = scores + at / dv * m;
    const __half *values = v + at / dv / n * m * dv + c;

    float sum = 0.0f;
    for (int j = 0; j < m; ++j)
        sum += p[j] * __half2float(values[(long long)j * dv]);
    o[at] = __float2half(sum);
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


// Copies rows [from, from + 64) of a matrix of `rows` rows of d halves into shared memory, zeros beyond.
template <int D, int TPB>
__device__ __forceinline__ void load_rows(__half (*tile)[D + 8], const __half *__restrict__ matrix,
                                          int from, int rows, int d)
{
    if (d % 8 == 0) { // then rows begin at multiples of 16 bytes
#pragma unroll 4
        for (int t = threadIdx.x; t < 64 * D / 8; t += TPB) {
            const int r = t / (D / 8), c = t % (D / 8) * 8;
            const bool inside = from + r < rows && c < d;
            *reinterpret_cast<uint4 *>(&tile[r][c]) =
                inside ? *reinterpret_cast<const uint4 *>(matrix + (long long)(from + r) * d + c)
                       : make_uint4(0, 0, 0, 0);
        }
        return;
    }
    for (int t = threadIdx.x; t < 64 * D; t += TPB) {
        const int r = t / D, c = t % D;
        const bool inside = from + r < rows && c < d;
        tile[r][c] = inside ? matrix[(long long)(from + r) * d + c] : __float2half(0.0f);
    }
}

// Starts the same past the registers; call only where d is a multiple of eight.
template <int D, int TPB>
__device__ __forceinline__ void start_rows(__half (*tile)[D + 8], const __half *__restrict__ matrix,
                                           int from, int rows, int d)
{
#pragma unroll
    for (int t = threadIdx.x; t < 64 * D / 8; t += TPB) {
        const int r = t / (D / 8), c = t % (D / 8) * 8;
        const bool inside = from + r < rows && c < d;
        const __half *source = inside ? matrix + (long long)(from + r) * d + c : matrix;
        const unsigned to = (unsigned)__cvta_generic_to_shared(&tile[r][c]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(source),
                     "r"(inside ? 16 : 0)
                     : "memory");
    }
}

__device__ __forceinline__ void commit_rows()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most N of this thread's groups are still on the way.
template <int N>
__device__ __forceinline__ void wait_rows()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

// 64 queries a block, 16 a warp; tiles of 64 keys. Scores, weights and results stay in the registers of
// the tensor cores' fragments: a thread has two queries (rows lane / 4 and 8 more), the four threads of
// a row share them. D: at least d and dv.
template <int D>
__global__ void __launch_bounds__(128)
attention_async(const __half *__restrict__ q, const __half *__restrict__ k, const __half *__restrict__ v,
              __half *__restrict__ o, int n, int m, int d, int dv, int causal)
{
    constexpr int TPB = 128;
    extern __shared__ __align__(16) __half memory[];
    using Rows = __half(*)[D + 8];
    const Rows tiles[4] = {Rows(memory), Rows(memory + 64 * (D + 8)), Rows(memory + 128 * (D + 8)),
                           Rows(memory + 192 * (D + 8))}; // keys and values, twice
    const unsigned parts = (n + 63) / 64;
    const long long head = blockIdx.x / parts;
    const int first = blockIdx.x % parts * 64;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int line = lane % 8, half = lane / 8 % 2 * 8, far = lane / 16 * 8;
    const float scale = 1.0f / sqrtf(d);
    q += head * n * d;
    k += head * m * d;
    v += head * m * dv;

    unsigned queries[D / 16][4];
    load_rows<D, TPB>(tiles[0], q, first, n, d);
    __syncthreads();
#pragma unroll
    for (int c = 0; c < D / 16; ++c)
        load_matrices<0>(queries[c], &tiles[0][warp * 16 + half + line][c * 16 + far]);
    __syncthreads();

    float sum[D / 8][4] = {}, top[2] = {-3.402823466e+38f, -3.402823466e+38f}, weights[2] = {};
    const int end = causal ? min(m, first + 64) : m;
    start_rows<D, TPB>(tiles[0], k, 0, m, d);
    start_rows<D, TPB>(tiles[1], v, 0, m, dv);
    commit_rows();
    int now = 0;
    for (int from = 0; from < end; from += 64, now ^= 2) {
        if (from + 64 < end) {
            start_rows<D, TPB>(tiles[now ^ 2], k, from + 64, m, d);
            start_rows<D, TPB>(tiles[(now ^ 2) + 1], v, from + 64, m, dv);
        }
        commit_rows(); // the last one is empty, which keeps the count of groups the same
        wait_rows<1>();
        __syncthreads();
        const Rows keys = tiles[now], values = tiles[now + 1];
        float score[8][4] = {};
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                unsigned b[4];
                load_matrices<0>(b, &keys[j * 16 + far + line][c * 16 + half]);
                multiply(score[2 * j], queries[c], b[0], b[1]);
                multiply(score[2 * j + 1], queries[c], b[2], b[3]);
            }
        float most[2] = {top[0], top[1]};
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int key = from + j * 8 + lane % 4 * 2 + e % 2;
                const int query = first + warp * 16 + lane / 4 + e / 2 * 8;
                const bool seen = key < m && !(causal && key > query);
                score[j][e] = seen ? score[j][e] * scale : __int_as_float(0xff800000);
                most[e / 2] = fmaxf(most[e / 2], score[j][e]);
            }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            most[e] = fmaxf(most[e], __shfl_xor_sync(0xffffffffu, most[e], 1));
            most[e] = fmaxf(most[e], __shfl_xor_sync(0xffffffffu, most[e], 2));
            const float shrink = expf(top[e] - most[e]);
            top[e] = most[e];
            weights[e] *= shrink;
#pragma unroll
            for (int c = 0; c < D / 8; ++c) {
                sum[c][2 * e] *= shrink;
                sum[c][2 * e + 1] *= shrink;
            }
        }
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                score[j][e] = expf(score[j][e] - top[e / 2]);
                weights[e / 2] += score[j][e];
            }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const unsigned p[4] = {pack(score[2 * j][0], score[2 * j][1]),
                                   pack(score[2 * j][2], score[2 * j][3]),
                                   pack(score[2 * j + 1][0], score[2 * j + 1][1]),
                                   pack(score[2 * j + 1][2], score[2 * j + 1][3])};
#pragma unroll
            for (int c = 0; c < D / 16; ++c) {
                unsigned b[4];
                load_matrices<1>(b, &values[j * 16 + half + line][c * 16 + far]);
                multiply(sum[2 * c], p, b[0], b[1]);
                multiply(sum[2 * c + 1], p, b[2], b[3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        weights[e] += __shfl_xor_sync(0xffffffffu, weights[e], 1);
        weights[e] += __shfl_xor_sync(0xffffffffu, weights[e], 2);
        const int i = first + warp * 16 + lane / 4 + 8 * e;
        const float share = 1.0f / weights[e];
#pragma unroll
        for (int c = 0; c < D / 8; ++c)
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                const int column = c * 8 + lane % 4 * 2 + s;
                if (i < n && column < dv)
                    o[(head * n + i) * dv + column] = __float2half(sum[c][2 * e + s] * share);
            }
    }
}

// 64 queries a block, 16 a warp; tiles of 64 keys. Scores, weights and results stay in the registers of
// the tensor cores' fragments: a thread has two queries (rows lane / 4 and 8 more), the four threads of
// a row share them. D: at least d and dv.
template <int D>
__global__ void __launch_bounds__(128)
attention_mma(const __half *__restrict__ q, const __half *__restrict__ k, const __half *__restrict__ v,
              __half *__restrict__ o, int n, int m, int d, int dv, int causal)
{
    constexpr int TPB = 128;
    __shared__ __align__(16) __half keys[64][D + 8], values[64][D + 8];
    const unsigned parts = (n + 63) / 64;
    const long long head = blockIdx.x / parts;
    const int first = blockIdx.x % parts * 64;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int line = lane % 8, half = lane / 8 % 2 * 8, far = lane / 16 * 8;
    const float scale = 1.0f / sqrtf(d);
    q += head * n * d;
    k += head * m * d;
    v += head * m * dv;

    unsigned queries[D / 16][4];
    load_rows<D, TPB>(keys, q, first, n, d);
    __syncthreads();
#pragma unroll
    for (int c = 0; c < D / 16; ++c)
        load_matrices<0>(queries[c], &keys[warp * 16 + half + line][c * 16 + far]);
    __syncthreads();

    float sum[D / 8][4] = {}, top[2] = {-3.402823466e+38f, -3.402823466e+38f}, weights[2] = {};
    const int end = causal ? min(m, first + 64) : m;
    for (int from = 0; from < end; from += 64) {
        load_rows<D, TPB>(keys, k, from, m, d);
        load_rows<D, TPB>(values, v, from, m, dv);
        __syncthreads();
        float score[8][4] = {};
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                unsigned b[4];
                load_matrices<0>(b, &keys[j * 16 + far + line][c * 16 + half]);
                multiply(score[2 * j], queries[c], b[0], b[1]);
                multiply(score[2 * j + 1], queries[c], b[2], b[3]);
            }
        float most[2] = {top[0], top[1]};
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int key = from + j * 8 + lane % 4 * 2 + e % 2;
                const int query = first + warp * 16 + lane / 4 + e / 2 * 8;
                const bool seen = key < m && !(causal && key > query);
                score[j][e] = seen ? score[j][e] * scale : __int_as_float(0xff800000);
                most[e / 2] = fmaxf(most[e / 2], score[j][e]);
            }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            most[e] = fmaxf(most[e], __shfl_xor_sync(0xffffffffu, most[e], 1));
            most[e] = fmaxf(most[e], __shfl_xor_sync(0xffffffffu, most[e], 2));
            const float shrink = expf(top[e] - most[e]);
            top[e] = most[e];
            weights[e] *= shrink;
#pragma unroll
            for (int c = 0; c < D / 8; ++c) {
                sum[c][2 * e] *= shrink;
                sum[c][2 * e + 1] *= shrink;
            }
        }
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                score[j][e] = expf(score[j][e] - top[e / 2]);
                weights[e / 2] += score[j][e];
            }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const unsigned p[4] = {pack(score[2 * j][0], score[2 * j][1]),
                                   pack(score[2 * j][2], score[2 * j][3]),
                                   pack(score[2 * j + 1][0], score[2 * j + 1][1]),
                                   pack(score[2 * j + 1][2], score[2 * j + 1][3])};
#pragma unroll
            for (int c = 0; c < D / 16; ++c) {
                unsigned b[4];
                load_matrices<1>(b, &values[j * 16 + half + line][c * 16 + far]);
                multiply(sum[2 * c], p, b[0], b[1]);
                multiply(sum[2 * c + 1], p, b[2], b[3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        weights[e] += __shfl_xor_sync(0xffffffffu, weights[e], 1);
        weights[e] += __shfl_xor_sync(0xffffffffu, weights[e], 2);
        const int i = first + warp * 16 + lane / 4 + 8 * e;
        const float share = 1.0f / weights[e];
#pragma unroll
        for (int c = 0; c < D / 8; ++c)
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                const int column = c * 8 + lane % 4 * 2 + s;
                if (i < n && column < dv)
                    o[(head * n + i) * dv + column] = __float2half(sum[c][2 * e + s] * share);
            }
    }
}
