// operator: conv2d
// idea: Give each element of the output to one thread, which walks over all channels and the whole filter.
// category: baseline
// after: none
// graph: y = chain(conv2d(x, f, b, stride=stride, pad=pad))
// tensors: x f32 [batch, channels, height, width]; f f32 [filters, channels, kh, kw]; b f32 [filters]; y f32 [batch, filters, oh, ow]
// let: bias = 1
// graph: y = chain(conv2d(x, f, stride=stride, pad=pad))
// tensors: x f32 [batch, channels, height, width]; f f32 [filters, channels, kh, kw]; y f32 [batch, filters, oh, ow]
// let: bias = 0, b = x
//@ tune   TPB = 256, 128, 512
//@ launch conv2d_naive<{{bias}}, TPB> grid=(ceil_div({{batch}} * {{filters}} * {{oh}} * {{ow}}, TPB)) block=(TPB) args=({{x}}, {{f}}, {{b}}, {{y}}, {{batch}}, {{channels}}, {{height}}, {{width}}, {{filters}}, {{kh}}, {{kw}}, {{oh}}, {{ow}}, {{stride}}, {{pad}}{{MORE_ARGS}})

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
