// operator: pooling
// idea: Give each row of results to one warp and find its plane once, which leaves one division a row instead of several a result.
// category: arithmetic
// after: naive
//@ tune   WARPS = 8, 4, 16
//@ launch pool_rows<{{mean}}, WARPS> grid=(ceil_div({{planes}} * {{oh}}, WARPS)) block=(32, WARPS) args=({{x}}, {{y}}, {{planes}}, {{height}}, {{width}}, {{oh}}, {{ow}}, {{window}}, {{step}}, {{pad}}, {{padded}})

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

template <int MEAN, int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
pool_rows(const float *__restrict__ x, float *__restrict__ y, long long planes, int height,
           int width, int oh, int ow, int window, int step, int pad, int padded)
{
    const long long row = (long long)blockIdx.x * WARPS + threadIdx.y;
    if (row >= planes * oh) return; //! guard
    const float *plane = x + row / oh * height * width;
    const int top = int(row % oh) * step - pad;
    for (int ox = threadIdx.x; ox < ow; ox += 32)
        y[row * ow + ox] =
            pool<MEAN>(plane, height, width, top, ox * step - pad, window, pad, padded);
}
