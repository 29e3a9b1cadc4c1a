// operator: conv2d_relu_maxpool
// idea: Make the size of the filter a constant of the kernel and gather the next tiles while the current ones are multiplied.
// category: latency
// after: gemm_then_pool
// graph: y = maxpool2d(relu(conv2d(x, f, b, stride=stride, pad=pad)), kernel=window, stride=step, pad=margin)
// tensors: x f32 [batch, channels, height, width]; f f32 [filters, channels, #kh, #kw]; b f32 [filters]; y f32 [batch, filters, ph, pw]
// let: bias = 1
// graph: y = maxpool2d(relu(conv2d(x, f, stride=stride, pad=pad)), kernel=window, stride=step, pad=margin)
// tensors: x f32 [batch, channels, height, width]; f f32 [filters, channels, #kh, #kw]; y f32 [batch, filters, ph, pw]
// let: bias = 0, b = x
//@ tune   TPB = 256, 128
//@ tune   TM = 12, 8, 4
//@ tune   BK = 8, 4
//@ temp   conv f32 [{{batch}} * {{filters}} * (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1) * (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1)]
//@ launch conv2d_buffered<{{bias}}, {{kh}}, {{kw}}, TM, BK> grid=(ceil_div({{filters}}, 8 * TM) * ceil_div({{batch}} * (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1) * (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1), 128)) block=(128) args=({{x}}, {{f}}, {{b}}, conv, {{batch}}, {{channels}}, {{height}}, {{width}}, {{filters}}, {{kh}}, {{kw}}, (({{height}} + 2 * {{pad}} - {{kh}}) / {{stride}} + 1), (({{width}} + 2 * {{pad}} - {{kw}}) / {{stride}} + 1), {{stride}}, {{pad}})
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
template <int BIAS, int KH, int KW, int TM, int BK>
__global__ void __launch_bounds__(128)
conv2d_buffered(const float *__restrict__ x, const float *__restrict__ f, const float *__restrict__ b,
                float *__restrict__ y, int batch, int channels, int height, int width, int filters,
                int kh, int kw, int oh, int ow, int stride, int pad)
{
    constexpr int BM = 8 * TM, BN = 128, TPB = 128;
    __shared__ __align__(16) float as[2][BK][BM + 4], bs[2][BK][BN + 4];
    const int length = channels * KH * KW;
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
    constexpr int COUNT = BM * BK / TPB;
    float va[COUNT], vb[BK];
    const auto fetch = [&](int from) {
#pragma unroll
        for (int q = 0; q < COUNT; ++q) {
            const int i = threadIdx.x + q * TPB, k = from + i % BK, row = first + i / BK;
            va[q] = row < filters && k < length ? f[(long long)row * length + k] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            const int k = from + i; // of the patch: channel, row, column
            const int c = k / (KH * KW), r = k / KW % KH, s = k % KW;
            const bool inside = place < places && k < length && iy + r >= 0 && iy + r < height &&
                                ix + s >= 0 && ix + s < width;
            vb[i] = inside ? image[((long long)c * height + iy + r) * width + ix + s] : 0.0f;
        }
    };
    const auto put = [&](int buffer) {
#pragma unroll
        for (int q = 0; q < COUNT; ++q) {
            const int i = threadIdx.x + q * TPB;
            as[buffer][i % BK][i / BK] = va[q];
        }
#pragma unroll
        for (int i = 0; i < BK; ++i)
            bs[buffer][i][threadIdx.x] = vb[i];
    };
    fetch(0);
    put(0);
    __syncthreads();
    int now = 0;
    for (int from = 0; from < length; from += BK, now ^= 1) {
        const bool more = from + BK < length;
        if (more)
            fetch(from + BK);
        add_product<TM, BM, BN, BK>(sum, as[now], bs[now], ty, tx);
        if (more)
            put(now ^ 1);
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
