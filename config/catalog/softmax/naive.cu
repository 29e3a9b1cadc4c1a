// operator: softmax
// idea: Give each row to one thread, which reads it three times: for the maximum, for the sum of exponentials, and to write the quotients.
// category: baseline
// after: none
// graph: y = softmax(x, axis=axis)
// tensors: x f32 [rows.., @axis, cols]; y f32
// unroll: 1, 2, 4
//@ tune   TPB = 128, 64, 256
//@ launch softmax_naive<TPB> grid=(ceil_div({{rows}}, TPB)) block=(TPB) args=({{x}}, {{y}}, {{rows}}, {{cols}})

template <int TPB>
__global__ void __launch_bounds__(TPB)
softmax_naive(const float *__restrict__ x, float *__restrict__ y, long long rows, int cols)
{
    const long long row = (long long)blockIdx.x * TPB + threadIdx.x;
    if (row >= rows) return; //! guard
    const float *in = x + row * cols;
    float *out = y + row * cols;

    float top = -3.402823466e+38f;
#pragma unroll {{UNROLL}}
    for (int i = 0; i < cols; ++i)
        top = fmaxf(top, in[i]);
    float sum = 0.0f;
#pragma unroll {{UNROLL}}
    for (int i = 0; i < cols; ++i)
        sum += expf(in[i] - top);
#pragma unroll {{UNROLL}}
    for (int i = 0; i < cols; ++i)
        out[i] = expf(in[i] - top) / sum;
}
