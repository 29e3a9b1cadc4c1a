// operator: conv2d_relu_maxpool
// idea: Compute the convolution as a matrix product of the filters with gathered patches, register tiles and ReLU included, and the maximum in a second launch.
// category: algorithm
// after: two_launches
//@ tune   TPB = 256, 128
//@ tune   TM = 8, 12, 4
//@ tune   BK = 8, 16
//@ temp   conv f32 [{{batch}} * {{filters}} * (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1) * (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1)]
//@ launch conv2d_gemm<{{bias}}, TM, BK> grid=(ceil_div({{filters}}, 8 * TM) * ceil_div({{batch}} * (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1) * (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1), 128)) block=(128) args=({{x}}, {{f}}, {{b}}, conv, {{batch}}, {{channels}}, {{height}}, {{width}}, {{filters}}, {{kh}}, {{kw}}, (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1), (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1), {{stride}}, {{pad}})
//@ launch maxpool<TPB> grid=(ceil_div({{batch}} * {{filters}} * {{ph}} * {{pw}}, TPB)) block=(TPB) args=(conv, {{y}}, {{batch}} * {{filters}}, (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1), (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1), {{ph}}, {{pw}}, {{window}}, {{step}}, {{margin}})

__device__ __forceinline__ float relu(float v) { return v < 0.0f ? 0.0f : v; }

// Column j of the 8 that a thread computes: two groups of four, half a tile apart, so that the threads
// of a warp read neighbouring float4 values.
template <int SIZE>
__device__ __forceinline__ int nth(int thread, int j)
{
    return thread * 4 + j / 4 * (SIZE / 2) + j % 4;
}

// Adds the product of two tiles to a thread's TM x 8 sums.
template <int TM, int BM, int BN, int BK>
__device__ __forceinline__ void add_product(float (&sum)[TM][8], const float (*as)[BM + 4],
                                            const float (*bs)[BN + 4], int ty, int tx)
{
#pragma unroll
    for (int i = 0; i < BK; ++i) {
        float av[TM], bv[8];
#pragma unroll
        for (int j = 0; j < TM; j += 4)
            *reinterpret_cast<float4 *>(av + j) =
                *reinterpret_cast<const float4 *>(&as[i][ty * TM + j]);
#pragma unroll
        for (int j = 0; j < 8; j += 4)
            *reinterpret_cast<float4 *>(bv + j) =
                *reinterpret_cast<const float4 *>(&bs[i][nth<BN>(tx, j)]);
#pragma unroll
        for (int r = 0; r < TM; ++r)
#pragma unroll
            for (int s = 0; s < 8; ++s)
                sum[r][s] += av[r] * bv[s];
    }
}

// The product of the filters, [filters, length], with the input's patches, [length, places], which are
// gathered as they are needed. A block computes 8 * TM filters at 128 places; each of its 128 threads
// gathers for one place and computes TM x 8 sums.
template <int BIAS, int TM, int BK>
__global__ void __launch_bounds__(128)
conv2d_gemm(const float *__restrict__ x, const float *__restrict__ f, const float *__restrict__ b,
            float *__restrict__ y, int batch, int channels, int height, int width, int filters,
            int kh, int kw, int oh, int ow, int stride, int pad)
{
    constexpr int BM = 8 * TM, BN = 128, TPB = 128;
    __shared__ __align__(16) float as[BK][BM + 4], bs[BK][BN + 4];
    const int length = channels * kh * kw;
    const unsigned groups = (filters + BM - 1) / BM;
    const long long places = (long long)batch * oh * ow;
    const long long start = blockIdx.x / groups * (long long)BN;
    const int first = blockIdx.x % groups * BM;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;

    // The place whose patch this thread gathers.
    const long long place = start + threadIdx.x;
    const int iy = int(place / ow % oh) * stride - pad, ix = int(place % ow) * stride - pad;
    const float *image = x + place / ow / oh * channels * height * width;

    float sum[TM][8] = {};
    for (int from = 0; from < length; from += BK) {
#pragma unroll
        for (int i = threadIdx.x; i < BM * BK; i += TPB) {
            const int k = i % BK, row = first + i / BK;
            as[k][i / BK] =
                row < filters && from + k < length ? f[(long long)row * length + from + k] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            const int k = from + i; // of the patch: channel, row, column
            const int c = k / (kh * kw), r = k / kw % kh, s = k % kw;
            const bool inside = place < places && k < length && iy + r >= 0 && iy + r < height &&
                                ix + s >= 0 && ix + s < width;
            bs[i][threadIdx.x] =
                inside ? image[((long long)c * height + iy + r) * width + ix + s] : 0.0f;
        }
        __syncthreads();
        add_product<TM, BM, BN, BK>(sum, as, bs, ty, tx);
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const long long at = start + nth<BN>(tx, j);
        const long long to = at / (oh * ow) * filters * oh * ow + at % (oh * ow);
#pragma unroll
        for (int r = 0; r < TM; ++r) {
            const int k = first + ty * TM + r;
            if (at < places && k < filters) {
                const float v = sum[r][j] + (BIAS ? b[k] : 0.0f);
                y[to + (long long)k * oh * ow] = relu(v);
            }
        }
    }
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
