// operator: attention
// idea: Keep one query a thread in registers and walk over tiles of keys and values in shared memory with a running maximum and sum, so that scores never reach memory.
// category: algorithm
// after: naive
//@ tune   TPB = 128, 64, 256
//@ launch attention_online<32, TPB> grid=(ceil_div({{n}}, TPB) * {{heads}}) block=(TPB) args=({{q}}, {{k}}, {{v}}, {{o}}, {{n}}, {{m}}, {{d}}, {{dv}}, {{causal}}) when=(max({{d}}, {{dv}}) <= 32)
//@ launch attention_online<64, TPB> grid=(ceil_div({{n}}, TPB) * {{heads}}) block=(TPB) args=({{q}}, {{k}}, {{v}}, {{o}}, {{n}}, {{m}}, {{d}}, {{dv}}, {{causal}}) when=(max({{d}}, {{dv}}) <= 64 and max({{d}}, {{dv}}) > 32)
//@ temp   scores f32 [{{heads}} * {{n}} * {{m}} * (max({{d}}, {{dv}}) > 64) + 1]
//@ launch attention_scores<TPB> grid=(ceil_div({{heads}} * {{n}} * {{m}}, TPB)) block=(TPB) args=({{q}}, {{k}}, scores, {{heads}}, {{n}}, {{m}}, {{d}}, {{causal}}) when=(max({{d}}, {{dv}}) > 64)
//@ launch attention_softmax<TPB> grid=(ceil_div({{heads}} * {{n}}, TPB / 32)) block=(TPB) args=(scores, {{heads}} * {{n}}, {{m}}) when=(max({{d}}, {{dv}}) > 64)
//@ launch attention_values<TPB> grid=(ceil_div({{heads}} * {{n}} * {{dv}}, TPB)) block=(TPB) args=(scores, {{v}}, {{o}}, {{heads}}, {{n}}, {{m}}, {{dv}}) when=(max({{d}}, {{dv}}) > 64)

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

// A query a thread, with query and result in registers; tiles of keys and values in shared memory. Sums
// are relative to the largest score so far and are rescaled when it grows. D: at least d and dv.
template <int D, int TPB>
__global__ void __launch_bounds__(TPB)
attention_online(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
                 float *__restrict__ o, int n, int m, int d, int dv, int causal)
{
    constexpr int KEYS = 32;
    __shared__ __align__(16) float keys[KEYS][D], values[KEYS][D];
    const unsigned parts = (n + TPB - 1) / TPB;
    const long long head = blockIdx.x / parts;
    const int first = blockIdx.x % parts * TPB, i = first + threadIdx.x;
    const float scale = 1.0f / sqrtf(d);
    k += head * m * d;
    v += head * m * dv;

    float query[D], sum[D] = {};
#pragma unroll
    for (int c = 0; c < D; ++c)
        query[c] = i < n && c < d ? q[(head * n + i) * d + c] : 0.0f;
    float top = -3.402823466e+38f, weights = 0.0f;
    const int end = causal ? min(m, first + TPB) : m;
    for (int from = 0; from < end; from += KEYS) {
        __syncthreads();
        for (int t = threadIdx.x; t < KEYS * D; t += TPB) {
            const int j = from + t / D, c = t % D;
            keys[t / D][c] = j < m && c < d ? k[(long long)j * d + c] : 0.0f;
            values[t / D][c] = j < m && c < dv ? v[(long long)j * dv + c] : 0.0f;
        }
        __syncthreads();
#pragma unroll 1
        for (int j = 0; j < min(KEYS, end - from); ++j) {
            float dot = 0.0f;
#pragma unroll
            for (int c = 0; c < D; ++c)
                dot += query[c] * keys[j][c];
            const bool seen = !(causal && from + j > i);
            const float score = seen ? dot * scale : __int_as_float(0xff800000);
            if (score > top) {
                const float shrink = expf(top - score);
                top = score;
                weights *= shrink;
#pragma unroll
                for (int c = 0; c < D; ++c)
                    sum[c] *= shrink;
            }
            const float p = expf(score - top);
            weights += p;
#pragma unroll
            for (int c = 0; c < D; ++c)
                sum[c] += p * values[j][c];
        }
    }
    if (i >= n)
        return;
#pragma unroll
    for (int c = 0; c < D; ++c)
        if (c < dv)
            o[(head * n + i) * dv + c] = sum[c] / weights;
}
