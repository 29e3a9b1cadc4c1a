// operator: elementwise
// idea: Read and write four floats with one instruction, and let the first threads finish the up to three elements that are left over.
// category: memory
// after: naive
//@ tune   TPB = 256, 128, 512
//@ launch chain_vec4<TPB> grid=(ceil_div({{n}}, 4 * TPB)) block=(TPB) args=({{ARGS}}, {{n}})

{{HELPERS}}
__device__ __forceinline__ float apply({{VALUES}})
{
{{LETS}}    return {{EXPR}};
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
chain_vec4({{POINTERS}}, long long n)
{
    const long long i = (long long)blockIdx.x * TPB + threadIdx.x;
    const long long quads = n / 4;
    if (i < quads) {
        {{load4:i}}
        reinterpret_cast<float4 *>(out)[i] =
            make_float4({{at4:x}}, {{at4:y}}, {{at4:z}}, {{at4:w}});
    }
    const long long rest = quads * 4 + i;
    if (rest < n) out[rest] = {{at:rest}}; //! tail
}
