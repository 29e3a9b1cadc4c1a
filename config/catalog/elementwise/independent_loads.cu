// operator: elementwise
// idea: Let each thread load several elements that are a block apart before it computes any of them, so that more loads are in flight.
// category: latency
// after: naive
// unroll: 4, 2, 8
//@ tune   TPB = 256, 128, 512
//@ launch chain_lanes<TPB> grid=(ceil_div({{n}}, {{UNROLL}} * TPB)) block=(TPB) args=({{ARGS}}, {{n}})

{{HELPERS}}
__device__ __forceinline__ float apply({{VALUES}})
{
{{LETS}}    return {{EXPR}};
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
chain_lanes({{POINTERS}}, long long n)
{
    constexpr int LANES = {{UNROLL}};
    const long long first = (long long)blockIdx.x * (LANES * TPB) + threadIdx.x;
    if (first + (LANES - 1) * TPB < n) {
        float r[LANES];
#pragma unroll
        for (int k = 0; k < LANES; ++k)
            r[k] = {{at:first + k * TPB}};
#pragma unroll
        for (int k = 0; k < LANES; ++k)
            out[first + k * TPB] = r[k];
        return;
    }
    for (long long i = first; i < n; i += TPB) out[i] = {{at:i}}; //! tail
}
