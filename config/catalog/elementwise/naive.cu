// operator: elementwise
// idea: Compute the whole chain in one kernel with one thread an element, so that intermediate results never touch memory.
// category: baseline
// after: none
// graph: elementwise
//@ tune   TPB = 256, 128, 512
//@ launch chain_naive<TPB> grid=(ceil_div({{n}}, TPB)) block=(TPB) args=({{ARGS}}, {{n}})

{{HELPERS}}
__device__ __forceinline__ float apply({{VALUES}})
{
{{LETS}}    return {{EXPR}};
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
chain_naive({{POINTERS}}, long long n)
{
    const long long i = (long long)blockIdx.x * TPB + threadIdx.x;
    if (i >= n) return; //! guard
    out[i] = {{at:i}};
}
