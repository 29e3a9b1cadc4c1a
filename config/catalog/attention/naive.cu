// operator: attention
// idea: Compute all scores, their softmax and the weighted values in three launches, with the scores in a temporary.
// category: baseline
// after: none
// graph: o = attention(q, k, v, causal=causal)
// tensors: q f32 [heads.., n, d]; k f32 [heads.., m, d]; v f32 [heads.., m, dv]; o f32 [heads.., n, dv]
//@ tune   TPB = 256, 128, 512
//@ temp   scores f32 [{{heads}} * {{n}} * {{m}}]
//@ launch attention_scores<TPB> grid=(ceil_div({{heads}} * {{n}} * {{m}}, TPB)) block=(TPB) args=({{q}}, {{k}}, scores, {{heads}}, {{n}}, {{m}}, {{d}}, {{causal}})
//@ launch attention_softmax<TPB> grid=(ceil_div({{heads}} * {{n}}, TPB / 32)) block=(TPB) args=(scores, {{heads}} * {{n}}, {{m}})
//@ launch attention_values<TPB> grid=(ceil_div({{heads}} * {{n}} * {{dv}}, TPB)) block=(TPB) args=(scores, {{v}}, {{o}}, {{heads}}, {{n}}, {{m}}, {{dv}})

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
