// operator: pooling
// idea: Copy the part of a plane that a tile of 8 x 32 results needs into shared memory, so that overlapping windows read memory once.
// category: memory
// after: plane_rows
//@ tune   WARPS = 8, 4
//@ launch pool_tile<{{mean}}, WARPS> grid=({{planes}} * ceil_div({{oh}}, 8) * ceil_div({{ow}}, 32)) block=(32, WARPS) shared=min((7 * {{step}} + {{window}}) * (31 * {{step}} + {{window}}) * 4, 48 * 1024) args=({{x}}, {{y}}, {{planes}}, {{height}}, {{width}}, {{oh}}, {{ow}}, {{window}}, {{step}}, {{pad}}, {{padded}}) when=(8 * {{step}} + {{window}} <= 64 and 32 * {{step}} + {{window}} <= 160)
//@ launch pool_rows<{{mean}}, WARPS> grid=(ceil_div({{planes}} * {{oh}}, WARPS)) block=(32, WARPS) args=({{x}}, {{y}}, {{planes}}, {{height}}, {{width}}, {{oh}}, {{ow}}, {{window}}, {{step}}, {{pad}}, {{padded}}) when=(not (8 * {{step}} + {{window}} <= 64 and 32 * {{step}} + {{window}} <= 160))

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

// The tile is a plane of its own, cut to the part that lies within the large one.
template <int MEAN, int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
pool_tile(const float *__restrict__ x, float *__restrict__ y, long long planes, int height,
           int width, int oh, int ow, int window, int step, int pad, int padded)
{
    extern __shared__ float tile[];
    const unsigned across = (ow + 31) / 32, down = (oh + 7) / 8;
    const int ox = blockIdx.x % across * 32, oy = blockIdx.x / across % down * 8;
    const long long at = blockIdx.x / across / down;
    const int top = oy * step - pad, left = ox * step - pad;
    const int r0 = max(top, 0), r1 = min(top + 7 * step + window, height);
    const int s0 = max(left, 0), s1 = min(left + 31 * step + window, width);
    const int cols = s1 - s0;
    for (int r = r0 + threadIdx.y; r < r1; r += WARPS)
        for (int s = s0 + threadIdx.x; s < s1; s += 32)
            tile[(r - r0) * cols + s - s0] = x[(at * height + r) * width + s];
    __syncthreads();
    for (int r = threadIdx.y; r < 8; r += WARPS) {
        if (oy + r >= oh || ox + threadIdx.x >= ow)
            continue;
        const int t = top + r * step, l = left + (int)threadIdx.x * step;
        const int inside_rows = min(t + window, height) - max(t, 0);
        const int inside_cols = min(l + window, width) - max(l, 0);
        float v = pool<MEAN>(tile, r1 - r0, cols, t - r0, l - s0, window, 0, 0);
        if (MEAN && padded) {
            const int all_rows = min(t + window, height + pad) - t;
            const int all_cols = min(l + window, width + pad) - l;
            v *= float(inside_rows * inside_cols) / float(all_rows * all_cols);
        }
        y[(at * oh + oy + r) * ow + ox + threadIdx.x] = v;
    }
}

template <int MEAN, int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
pool_rows(const float *__restrict__ x, float *__restrict__ y, long long planes, int height,
           int width, int oh, int ow, int window, int step, int pad, int padded)
{
    const long long row = (long long)blockIdx.x * WARPS + threadIdx.y;
    if (row >= planes * oh) return;
    const float *plane = x + row / oh * height * width;
    const int top = int(row % oh) * step - pad;
    for (int ox = threadIdx.x; ox < ow; ox += 32)
        y[row * ow + ox] =
            pool<MEAN>(plane, height, width, top, ox * step - pad, window, pad, padded);
}
