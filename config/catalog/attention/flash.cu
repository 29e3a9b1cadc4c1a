// operator: attention
// idea: Compute scores and weighted values as products of 64 x 64 tiles with registers of 4 x 4, rows of scores shared by 16 threads, and running maxima and sums.
// category: registers
// after: online
//@ tune   TPB = 256, 128
//@ launch attention_flash<64> grid=(ceil_div({{n}}, 64) * {{heads}}) block=(256) shared=69632 args=({{q}}, {{k}}, {{v}}, {{o}}, {{n}}, {{m}}, {{d}}, {{dv}}, {{causal}}) when=(max({{d}}, {{dv}}) <= 64)
//@ launch attention_flash<128> grid=(ceil_div({{n}}, 64) * {{heads}}) block=(256) shared=120832 args=({{q}}, {{k}}, {{v}}, {{o}}, {{n}}, {{m}}, {{d}}, {{dv}}, {{causal}}) when=(max({{d}}, {{dv}}) <= 128 and max({{d}}, {{dv}}) > 64)
//@ temp   scores f32 [{{heads}} * {{n}} * {{m}} * (max({{d}}, {{dv}}) > 128) + 1]
//@ launch attention_scores<TPB> grid=(ceil_div({{heads}} * {{n}} * {{m}}, TPB)) block=(TPB) args=({{q}}, {{k}}, scores, {{heads}}, {{n}}, {{m}}, {{d}}, {{causal}}) when=(max({{d}}, {{dv}}) > 128)
//@ launch attention_softmax<TPB> grid=(ceil_div({{heads}} * {{n}}, TPB / 32)) block=(TPB) args=(scores, {{heads}} * {{n}}, {{m}}) when=(max({{d}}, {{dv}}) > 128)
//@ launch attention_values<TPB> grid=(ceil_div({{heads}} * {{n}} * {{dv}}, TPB)) block=(TPB) args=(scores, {{v}}, {{o}}, {{heads}}, {{n}}, {{m}}, {{dv}}) when=(max({{d}}, {{dv}}) > 128)

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
attention_scores(const float *__restrict__ q, const float *__restrict__ k, float *__restrict__ scores,
                 long long heads, int n, int m, int d, int causal)
{
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= heads * n * m) return; //! guard
    const int i = at / m % n, j = at % m;
    const float *query = q + at / m * d;
    const float *key = k + (at / m / n * m + j) * d;

    float sum = 0.0f;
    for (int c = 0; c < d; ++c)
        sum += query[c] * key[c];
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
attention_values(const float *__restrict__ scores, const float *__restrict__ v, float *__restrict__ o,
                 long long heads, int n, int m, int dv)
{
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= heads * n * dv) return;
    const int c = at % dv;
    const float *p = scores + at / dv * m;
    const float *values = v + at / dv / n * m * dv + c;

    float sum = 0.0f;
    for (int j = 0; j < m; ++j)
        sum += p[j] * values[(long long)j * dv];
    o[at] = sum;
}

// Adds the products of 4 rows of a and C columns of b, both stored with the summed index first.
template <int LENGTH, int C, int LA, int LB>
__device__ __forceinline__ void add_product(float (&sum)[4][C], const float *a, const float *b)
{
#pragma unroll 8
    for (int i = 0; i < LENGTH; ++i) {
        float av[4], bv[C];
        *reinterpret_cast<float4 *>(av) = *reinterpret_cast<const float4 *>(a + i * LA);
#pragma unroll
        for (int s = 0; s < C; s += 4)
            *reinterpret_cast<float4 *>(bv + s) =
                *reinterpret_cast<const float4 *>(b + i * LB + s * 16);
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
            for (int s = 0; s < C; ++s)
                sum[r][s] += av[r] * bv[s];
    }
}

// 64 queries a block; tiles of 64 keys. 16 x 16 threads: a thread has 4 queries, 4 keys of a tile and
// D / 16 columns of the result; the 16 threads of a row of them share queries. D: at least d and dv.
template <int D>
__global__ void __launch_bounds__(256)
attention_flash(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
                float *__restrict__ o, int n, int m, int d, int dv, int causal)
{
    constexpr int B = 64, L = B + 4, C = D / 16;
    extern __shared__ __align__(16) float memory[];
    float *queries = memory;       // [D][L]
    float *keys = queries + D * L; // [D][L]
    float *values = keys + D * L;  // [B][D + 4]
    float *p = values + B * (D + 4); // [B][L], by key
    const unsigned parts = (n + B - 1) / B;
    const long long head = blockIdx.x / parts;
    const int first = blockIdx.x % parts * B;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const float scale = 1.0f / sqrtf(d);
    q += head * n * d;
    k += head * m * d;
    v += head * m * dv;

    for (int t = threadIdx.x; t < B * D; t += 256) {
        const int i = first + t / D, c = t % D;
        queries[c * L + t / D] = i < n && c < d ? q[(long long)i * d + c] : 0.0f;
    }
    float sum[4][C] = {}, top[4], weights[4] = {};
#pragma unroll
    for (int r = 0; r < 4; ++r)
        top[r] = -3.402823466e+38f;
    const int end = causal ? min(m, first + B) : m;
    for (int from = 0; from < end; from += B) {
        __syncthreads();
        for (int t = threadIdx.x; t < B * D; t += 256) {
            const int j = from + t / D, c = t % D;
            keys[c * L + t / D] = j < m && c < d ? k[(long long)j * d + c] : 0.0f;
            values[t / D * (D + 4) + c] = j < m && c < dv ? v[(long long)j * dv + c] : 0.0f;
        }
        __syncthreads();
        float score[4][4] = {};
        add_product<D, 4, L, L>(score, queries + ty * 4, keys + tx * 4);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            float most = top[r];
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                const int j = from + tx * 4 + s;
                const bool seen = j < m && !(causal && j > first + ty * 4 + r);
                score[r][s] = seen ? score[r][s] * scale : __int_as_float(0xff800000);
                most = fmaxf(most, score[r][s]);
            }
#pragma unroll
            for (int lane = 8; lane > 0; lane /= 2)
                most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lane));
            const float shrink = expf(top[r] - most);
            top[r] = most;
            weights[r] *= shrink;
#pragma unroll
            for (int c = 0; c < C; ++c)
                sum[r][c] *= shrink;
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                score[r][s] = expf(score[r][s] - most);
                weights[r] += score[r][s];
                p[(tx * 4 + s) * L + ty * 4 + r] = score[r][s];
            }
        }
        __syncthreads();
        add_product<B, C, L, D + 4>(sum, p + ty * 4, values + tx * 4);
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int lane = 8; lane > 0; lane /= 2)
            weights[r] += __shfl_xor_sync(0xffffffffu, weights[r], lane);
        const int i = first + ty * 4 + r;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const int column = tx * 4 + c / 4 * 64 + c % 4;
            if (i < n && column < dv)
                o[(head * n + i) * dv + column] = sum[r][c] / weights[r];
        }
    }
}
