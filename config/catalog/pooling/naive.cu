// operator: pooling
// idea: Give each result to one thread, which walks over its window.
// category: baseline
// after: none
// graph: y = maxpool2d(x, kernel=window, stride=step, pad=pad)
// tensors: x f32 [planes.., height, width]; y f32 [planes.., oh, ow]
// let: mean = 0, padded = 0
// graph: y = avgpool2d(x, kernel=window, stride=step, pad=pad, count_include_pad=padded)
// tensors: x f32 [planes.., height, width]; y f32 [planes.., oh, ow]
// let: mean = 1
//@ tune   TPB = 256, 128, 512
//@ launch pool_naive<{{mean}}, TPB> grid=(ceil_div({{planes}} * {{oh}} * {{ow}}, TPB)) block=(TPB) args=({{x}}, {{y}}, {{planes}}, {{height}}, {{width}}, {{oh}}, {{ow}}, {{window}}, {{step}}, {{pad}}, {{padded}})

// The larger of two; NaN if one is.
__device__ __forceinline__ float larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

// One result out of a plane whose part that counts begins at row `top`, column `left`; with `padded` the
// places around the plane count as zeros in a mean.
template <int MEAN>
__device__ __forceinline__ float pool(const float *plane, int height, int width, int top, int left,
                                      int window, int pad, int padded)
{
    const int r0 = max(top, 0), r1 = min(top + window, height);
    const int s0 = max(left, 0), s1 = min(left + window, width);
    float all = MEAN ? 0.0f : __int_as_float(0xff800000);
    for (int r = r0; r < r1; ++r)
        for (int s = s0; s < s1; ++s) {
            const float v = plane[(long long)r * width + s];
            all = MEAN ? all + v : larger(v, all);
        }
    if (!MEAN)
        return all;
    const int rows = padded ? min(top + window, height + pad) - top : r1 - r0;
    const int cols = padded ? min(left + window, width + pad) - left : s1 - s0;
    return all / float(rows * cols);
}

template <int MEAN, int TPB>
__global__ void __launch_bounds__(TPB)
pool_naive(const float *__restrict__ x, float *__restrict__ y, long long planes, int height,
           int width, int oh, int ow, int window, int step, int pad, int padded)
{
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= planes * oh * ow) return; //! guard
    const int ox = at % ow, oy = at / ow % oh;
    y[at] = pool<MEAN>(x + at / ow / oh * height * width, height, width, oy * step - pad,
                       ox * step - pad, window, pad, padded);
}
