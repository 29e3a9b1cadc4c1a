// operator: elementwise
// idea: Join four-float accesses with several of them in flight a thread, so that each thread keeps more bytes on the way with fewer instructions.
// category: memory
// after: vectorised
// unroll: 2, 4
//@ tune   TPB = 256, 128, 512
//@ launch chain_vec_lanes<TPB> grid=(ceil_div({{n}}, 4 * {{UNROLL}} * TPB)) block=(TPB) args=({{ARGS}}, {{n}})

{{HELPERS}}
__device__ __forceinline__ float apply({{VALUES}})
{
{{LETS}}    return {{EXPR}};
}

template <int TPB>
__global__ void __launch_bounds__(TPB)
chain_vec_lanes({{POINTERS}}, long long n)
{
    constexpr int LANES = {{UNROLL}};
    const long long quads = n / 4;
    const long long first = (long long)blockIdx.x * (LANES * TPB) + threadIdx.x;
    float4 r[LANES];
#pragma unroll
    for (int k = 0; k < LANES; ++k) {
        const long long i = first + k * TPB;
        if (i < quads) {
            {{load4:i}}
            r[k] = make_float4({{at4:x}}, {{at4:y}}, {{at4:z}}, {{at4:w}});
        }
    }
#pragma unroll
    for (int k = 0; k < LANES; ++k) {
        const long long i = first + k * TPB;
        if (i < quads)
            reinterpret_cast<float4 *>(out)[i] = r[k];
    }
    const long long rest = quads * 4 + (long long)blockIdx.x * TPB + threadIdx.x;
    if (rest < n) out[rest] = {{at:rest}}; //! tail
}
