// operator: conv2d
// idea: Let each thread compute several filters at one place of the output, with their weights in shared memory, so that one element of the input serves them all.
// category: memory
// after: naive
//@ tune   TPB = 128, 64, 256
//@ tune   KT = 16, 8, 4
//@ launch conv2d_filters<{{bias}}, TPB, KT> grid=(ceil_div({{oh}} * {{ow}}, TPB) * ceil_div({{filters}}, KT) * {{batch}}) block=(TPB) shared=min(KT * {{kh}} * {{kw}}, 8192) * 4 args=({{x}}, {{f}}, {{b}}, {{y}}, {{batch}}, {{channels}}, {{height}}, {{width}}, {{filters}}, {{kh}}, {{kw}}, {{oh}}, {{ow}}, {{stride}}, {{pad}}{{MORE_ARGS}}) when=(KT * {{kh}} * {{kw}} <= 8192)
//@ launch conv2d_naive<{{bias}}, 256> grid=(ceil_div({{batch}} * {{filters}} * {{oh}} * {{ow}}, 256)) block=(256) args=({{x}}, {{f}}, {{b}}, {{y}}, {{batch}}, {{channels}}, {{height}}, {{width}}, {{filters}}, {{kh}}, {{kw}}, {{oh}}, {{ow}}, {{stride}}, {{pad}}{{MORE_ARGS}}) when=(not (KT * {{kh}} * {{kw}} <= 8192))

{{HELPERS}}
__device__ __forceinline__ float apply({{VALUES}})
{
{{LETS}}    return {{EXPR}};
}

// BIAS: whether there is one; b is not read without.
template <int BIAS, int TPB>
__global__ void __launch_bounds__(TPB)
conv2d_naive(const float *__restrict__ x, const float *__restrict__ f, const float *__restrict__ b,
             float *__restrict__ y, int batch, int channels, int height, int width, int filters,
             int kh, int kw, int oh, int ow, int stride, int pad{{MORE_POINTERS}})
{
    long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= (long long)batch * filters * oh * ow) return; //! guard
    const int ox = at % ow, oy = at / ow % oh, k = at / ow / oh % filters;
    const int iy = oy * stride - pad, ix = ox * stride - pad;
    const float *image = x + at / ow / oh / filters * channels * height * width;
    const float *filter = f + (long long)k * channels * kh * kw;

    float sum = 0.0f;
    for (int c = 0; c < channels; ++c)
        for (int r = 0; r < kh; ++r)
            for (int s = 0; s < kw; ++s)
                if (iy + r >= 0 && iy + r < height && ix + s >= 0 && ix + s < width)
                    sum += image[((long long)c * height + iy + r) * width + ix + s] *
                           filter[((long long)c * kh + r) * kw + s];
    if (BIAS)
        sum += b[k];
    y[at] = {{finish:sum|ox}};
}

template <int BIAS, int TPB, int KT>
__global__ void __launch_bounds__(TPB)
conv2d_filters(const float *__restrict__ x, const float *__restrict__ f, const float *__restrict__ b,
               float *__restrict__ y, int batch, int channels, int height, int width, int filters,
               int kh, int kw, int oh, int ow, int stride, int pad{{MORE_POINTERS}})
{
    extern __shared__ __align__(16) float weights[]; // [kh * kw][KT], of one channel
    const unsigned groups = (filters + KT - 1) / KT, parts = (oh * ow + TPB - 1) / TPB;
    const int place = blockIdx.x % parts * TPB + threadIdx.x;
    const int first = blockIdx.x / parts % groups * KT;
    const long long image = blockIdx.x / parts / groups;
    const int ox = place % ow, oy = place / ow;
    const int iy = oy * stride - pad, ix = ox * stride - pad;

    float sum[KT] = {};
    for (int c = 0; c < channels; ++c) {
        __syncthreads();
        for (int i = threadIdx.x; i < KT * kh * kw; i += TPB) {
            const int j = i / (kh * kw), rs = i % (kh * kw);
            weights[rs * KT + j] =
                first + j < filters ? f[((long long)(first + j) * channels + c) * kh * kw + rs] : 0.0f;
        }
        __syncthreads();
        const float *plane = x + (image * channels + c) * height * width;
        for (int r = 0; r < kh; ++r)
            for (int s = 0; s < kw; ++s) {
                const bool inside = place < oh * ow && iy + r >= 0 && iy + r < height &&
                                    ix + s >= 0 && ix + s < width;
                const float v = inside ? plane[(long long)(iy + r) * width + ix + s] : 0.0f;
#pragma unroll
                for (int j = 0; j < KT; ++j)
                    sum[j] += v * weights[(r * kw + s) * KT + j];
            }
    }
#pragma unroll
    for (int j = 0; j < KT; ++j)
        if (place < oh * ow && first + j < filters) {
            const float v = sum[j] + (BIAS ? b[first + j] : 0.0f);
            y[(image * filters + first + j) * oh * ow + place] = {{finish:v|ox}};
        }
}
