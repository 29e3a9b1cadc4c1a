// operator: reduction
// idea: Give each result to one thread, which walks over its values.
// category: baseline
// after: none
// graph: y = sum(x, axis=axis, keepdim=keepdim)
// tensors: x f32 [outer.., @axis, length, inner..]; y f32
// let: op = 0
// graph: y = sum(x, keepdim=keepdim)
// tensors: x f32 [length..]; y f32
// let: op = 0, outer = 1, inner = 1
// graph: y = mean(x, axis=axis, keepdim=keepdim)
// tensors: x f32 [outer.., @axis, length, inner..]; y f32
// let: op = 1
// graph: y = mean(x, keepdim=keepdim)
// tensors: x f32 [length..]; y f32
// let: op = 1, outer = 1, inner = 1
// graph: y = max(x, axis=axis, keepdim=keepdim)
// tensors: x f32 [outer.., @axis, length, inner..]; y f32
// let: op = 2
// graph: y = max(x, keepdim=keepdim)
// tensors: x f32 [length..]; y f32
// let: op = 2, outer = 1, inner = 1
// graph: y = min(x, axis=axis, keepdim=keepdim)
// tensors: x f32 [outer.., @axis, length, inner..]; y f32
// let: op = 3
// graph: y = min(x, keepdim=keepdim)
// tensors: x f32 [length..]; y f32
// let: op = 3, outer = 1, inner = 1
//@ tune   TPB = 256, 128, 64
//@ launch reduce_naive<{{op}}, TPB> grid=(ceil_div({{outer}} * {{inner}}, TPB)) block=(TPB) args=({{x}}, {{y}}, {{outer}} * {{inner}}, {{length}}, {{inner}})

// OP: 0 sum, 1 mean, 2 largest, 3 smallest; NaN goes through.
template <int OP>
__device__ __forceinline__ float start()
{
    return OP < 2 ? 0.0f : __int_as_float(OP == 2 ? 0xff800000 : 0x7f800000);
}

template <int OP>
__device__ __forceinline__ float combine(float a, float b)
{
    if (OP < 2)
        return a + b;
    return (OP == 2 ? a > b : a < b) || a != a ? a : b;
}

template <int OP>
__device__ __forceinline__ float finish(float v, long long length)
{
    return OP == 1 ? v / length : v;
}

// x is [outer, length, inner]; neighbouring threads have neighbouring results. Sums are taken in runs of
// CHUNK values, so that rounding does not grow with the length.
template <int OP, int TPB>
__global__ void __launch_bounds__(TPB)
reduce_naive(const float *__restrict__ x, float *__restrict__ y, long long results, long long length,
             long long inner)
{
    constexpr int CHUNK = 512;
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= results) return; //! guard
    const float *in = x + at / inner * length * inner + at % inner;

    float all = start<OP>();
    for (long long from = 0; from < length; from += CHUNK) {
        const long long to = min(from + CHUNK, length);
        float part = start<OP>();
        for (long long i = from; i < to; ++i)
            part = combine<OP>(part, in[i * inner]);
        all = combine<OP>(all, part);
    }
    y[at] = finish<OP>(all, length);
}
