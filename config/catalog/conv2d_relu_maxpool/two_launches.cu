// operator: conv2d_relu_maxpool
// idea: Apply ReLU before the result of the convolution leaves the registers, which saves one way to memory and back.
// category: fusion
// after: three_launches
//@ tune   TPB = 256, 128, 512
//@ temp   conv f32 [{{batch}} * {{filters}} * (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1) * (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1)]
//@ launch conv2d_naive<{{bias}}, TPB> grid=(ceil_div({{batch}} * {{filters}} * (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1) * (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1), TPB)) block=(TPB) args=({{x}}, {{f}}, {{b}}, conv, {{batch}}, {{channels}}, {{height}}, {{width}}, {{filters}}, {{kh}}, {{kw}}, (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1), (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1), {{stride}}, {{pad}})
//@ launch maxpool<TPB> grid=(ceil_div({{batch}} * {{filters}} * {{ph}} * {{pw}}, TPB)) block=(TPB) args=(conv, {{y}}, {{batch}} * {{filters}}, (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1), (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1), {{ph}}, {{pw}}, {{window}}, {{step}}, {{margin}})

__device__ __forceinline__ float relu(float v) { return v < 0.0f ? 0.0f : v; }

// BIAS: whether there is one; b is not read without.
template <int BIAS, int TPB>
__global__ void __launch_bounds__(TPB)
conv2d_naive(const float *__restrict__ x, const float *__restrict__ f, const float *__restrict__ b,
             float *__restrict__ y, int batch, int channels, int height, int width, int filters,
             int kh, int kw, int oh, int ow, int stride, int pad)
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
    y[at] = relu(sum);
}

// The larger of two; NaN if one is.
__device__ __forceinline__ float larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
maxpool(const float *__restrict__ conv, float *__restrict__ y, long long planes, int oh, int ow, int ph,
        int pw, int window, int step, int margin)
{
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= planes * ph * pw) return; //! guard
    const int top = int(at / pw % ph) * step - margin, left = int(at % pw) * step - margin;
    const float *plane = conv + at / pw / ph * oh * ow;

    float most = __int_as_float(0xff800000);
    for (int r = max(top, 0); r < min(top + window, oh); ++r)
        for (int s = max(left, 0); s < min(left + window, ow); ++s)
            most = larger(plane[(long long)r * ow + s], most);
    y[at] = most;
}
