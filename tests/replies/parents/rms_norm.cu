//@ launch rms_norm grid=(tokens) block=(256) shared=hidden*4 args=(x, weight, out, hidden, eps)

extern __shared__ float squares[];

__global__ void rms_norm(const float *x, const float *weight, float *out, int hidden, float eps)
{
    x += (size_t)blockIdx.x * hidden;
    out += (size_t)blockIdx.x * hidden;
    for (int i = threadIdx.x; i < hidden; i += 256)
        squares[i] = x[i] * x[i];
    __syncthreads();
    float s = 0.0f;
    for (int i = 0; i < hidden; i++)
        s += squares[i];
    float r = rsqrtf(s / hidden + eps);
    for (int i = threadIdx.x; i < hidden; i += 256)
        out[i] = x[i] * r * weight[i];
}
