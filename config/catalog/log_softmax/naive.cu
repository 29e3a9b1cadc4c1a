// operator: log_softmax
// idea: Give each row to one thread, which reads it for the maximum and for the sum of exponentials, and a third time to write.
// category: baseline
// after: none
// graph: y = log_softmax(x, axis=axis)
// tensors: x f32 [rows.., @axis, cols]; y f32
//@ tune   TPB = 128, 64, 256
//@ launch log_softmax_naive<TPB> grid=(ceil_div({{rows}}, TPB)) block=(TPB) args=({{x}}, {{y}}, {{rows}}, {{cols}})

// What the exponents are relative to: the largest value, but finite, so that inf - inf never comes up.
__device__ __forceinline__ float finite(float top) { return fminf(top, 3.402823466e+38f); }

template <int TPB>
__global__ void __launch_bounds__(TPB)
log_softmax_naive(const float *__restrict__ x, float *__restrict__ y, long long rows, int cols)
{
    const long long row = (long long)blockIdx.x * TPB + threadIdx.x;
    if (row >= rows) return; //! guard
    const float *in = x + row * cols;
    float *out = y + row * cols;

    float top = -3.402823466e+38f;
    for (int i = 0; i < cols; ++i)
        top = fmaxf(top, in[i]);
    top = finite(top);
    float sum = 0.0f;
    for (int i = 0; i < cols; ++i)
        sum += expf(in[i] - top);
    const float shift = logf(sum);
    for (int i = 0; i < cols; ++i)
        out[i] = (in[i] - top) - shift;
}
