// operator: elementwise
// idea: Launch only as many blocks as the device can hold at once and let each thread stride over the elements, which saves block starts on long tensors.
// category: scheduling
// after: naive
// unroll: 1, 2, 4
//@ tune   TPB = 256, 128, 512
//@ tune   PER_SM = 8, 16, 4
//@ launch chain_stride<TPB> grid=(min(ceil_div({{n}}, TPB), sm_count * PER_SM)) block=(TPB) args=({{ARGS}}, {{n}})

{{HELPERS}}
__device__ __forceinline__ float apply({{VALUES}})
{
{{LETS}}    return {{EXPR}};
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
chain_stride({{POINTERS}}, long long n)
{
    const long long step = (long long)gridDim.x * TPB;
#pragma unroll {{UNROLL}}
    for (long long i = (long long)blockIdx.x * TPB + threadIdx.x; i < n; i += step)
        out[i] = {{at:i}};
}
