// operator: layernorm
// idea: Give each row to one thread, which reads it three times: for the mean, for the sum of squared deviations, and to write.
// category: baseline
// after: none
// graph: y = layernorm(x, w, b, axis=axis, eps=eps)
// tensors: x f32 [rows.., @axis, cols..]; w f32 [cols..]; b f32 [cols..]; y f32
//@ tune   TPB = 64, 32, 128
//@ launch layernorm_naive<TPB> grid=(ceil_div({{rows}}, TPB)) block=(TPB) args=({{x}}, {{w}}, {{b}}, {{y}}, {{rows}}, {{cols}}, {{eps}})

// Sums are taken in runs of CHUNK values, so that rounding does not grow with the length of the row,
// and relative to the first value, so that a common offset costs no digits.
template <int TPB>
__global__ void __launch_bounds__(TPB)
layernorm_naive(const float *__restrict__ x, const float *__restrict__ w,
                const float *__restrict__ b, float *__restrict__ y, long long rows, int cols,
                float eps)
{
    constexpr int CHUNK = 1024;
    const long long row = (long long)blockIdx.x * TPB + threadIdx.x;
    if (row >= rows) return; //! guard
    const float *in = x + row * cols;
    float *out = y + row * cols;

    const float first = in[0];
    float sum = 0.0f;
    for (int from = 0; from < cols; from += CHUNK) {
        const int to = cols - from < CHUNK ? cols : from + CHUNK;
        float part = 0.0f;
        for (int i = from; i < to; ++i)
            part += in[i] - first;
        sum += part;
    }
    const float mean = first + sum / cols;
    float squares = 0.0f;
    for (int from = 0; from < cols; from += CHUNK) {
        const int to = cols - from < CHUNK ? cols : from + CHUNK;
        float part = 0.0f;
        for (int i = from; i < to; ++i)
            part += (in[i] - mean) * (in[i] - mean);
        squares += part;
    }
    const float scale = 1.0f / sqrtf(squares / cols + eps);
    for (int i = 0; i < cols; ++i)
        out[i] = (in[i] - mean) * scale * w[i] + b[i];
}
