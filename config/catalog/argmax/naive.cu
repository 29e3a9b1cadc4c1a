// operator: argmax
// idea: Give each result to one thread, which walks over its values and remembers the place of the best.
// category: baseline
// after: none
// graph: y = argmax(x, axis=axis, keepdim=keepdim)
// tensors: x f32 [outer.., @axis, length, inner..]; y i64
// let: least = 0
// graph: y = argmax(x, keepdim=keepdim)
// tensors: x f32 [length..]; y i64
// let: least = 0, outer = 1, inner = 1
// graph: y = argmin(x, axis=axis, keepdim=keepdim)
// tensors: x f32 [outer.., @axis, length, inner..]; y i64
// let: least = 1
// graph: y = argmin(x, keepdim=keepdim)
// tensors: x f32 [length..]; y i64
// let: least = 1, outer = 1, inner = 1
//@ tune   TPB = 256, 128, 64
//@ launch argmax_naive<{{least}}, TPB> grid=(ceil_div({{outer}} * {{inner}}, TPB)) block=(TPB) args=({{x}}, {{y}}, {{outer}} * {{inner}}, {{length}}, {{inner}})

// The best value so far and where it stands. Of equals the first counts; NaN is better than any number.
struct Best {
    float v;
    long long place;
};

template <int LEAST>
__device__ __forceinline__ Best better(Best a, Best b)
{
    const bool nan_a = a.v != a.v, nan_b = b.v != b.v;
    const bool equal = a.v == b.v || (nan_a && nan_b);
    const bool first = equal ? a.place < b.place : nan_a || (!nan_b && (LEAST ? a.v < b.v : a.v > b.v));
    return first ? a : b;
}

// x is [outer, length, inner]; neighbouring threads have neighbouring results.
template <int LEAST, int TPB>
__global__ void __launch_bounds__(TPB)
argmax_naive(const float *__restrict__ x, long long *__restrict__ y, long long results,
             long long length, long long inner)
{
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= results) return; //! guard
    const float *in = x + at / inner * length * inner + at % inner;
    Best best = {in[0], 0};
    for (long long i = 1; i < length; ++i)
        best = better<LEAST>(best, {in[i * inner], i});
    y[at] = best.place;
}
