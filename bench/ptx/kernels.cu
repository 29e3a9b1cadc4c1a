// Kernels of the interpreter's benchmark; kernels.ptx is what NVRTC 13.0 makes of them for compute_90:
// see run.sh.

extern "C" __global__ void vadd4(const float4 *a, const float4 *b, float4 *c, int n4)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n4) {
        float4 x = a[i], y = b[i];
        c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}

extern "C" __global__ void gelu4(const float4 *x, float4 *y, int n4)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4)
        return;
    float4 v = x[i];
    float *e = (float *)&v;
    for (int k = 0; k < 4; k++)
        e[k] = 0.5f * e[k] * (1.0f + tanhf(0.7978845608f * (e[k] + 0.044715f * e[k] * e[k] * e[k])));
    y[i] = v;
}

extern "C" __global__ void softmax_shuffle(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    __shared__ float sm[32];
    const float4 *xr = (const float4 *)(x + (size_t)blockIdx.x * cols);
    float4 *yr = (float4 *)(y + (size_t)blockIdx.x * cols);
    int n4 = cols / 4, w = threadIdx.x >> 5, l = threadIdx.x & 31, nw = blockDim.x >> 5;
    float m = -3.4e38f, s = 0;
    for (int i = threadIdx.x; i < n4; i += blockDim.x) {
        float4 v = xr[i];
        m = fmaxf(m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    for (int o = 16; o; o >>= 1)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    if (l == 0)
        sm[w] = m;
    __syncthreads();
    m = l < nw ? sm[l] : -3.4e38f;
    for (int o = 16; o; o >>= 1)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    for (int i = threadIdx.x; i < n4; i += blockDim.x) {
        float4 v = xr[i];
        s += expf(v.x - m) + expf(v.y - m) + expf(v.z - m) + expf(v.w - m);
    }
    for (int o = 16; o; o >>= 1)
        s += __shfl_xor_sync(~0u, s, o);
    __syncthreads();
    if (l == 0)
        sm[w] = s;
    __syncthreads();
    s = l < nw ? sm[l] : 0.f;
    for (int o = 16; o; o >>= 1)
        s += __shfl_xor_sync(~0u, s, o);
    float r = 1.f / s;
    for (int i = threadIdx.x; i < n4; i += blockDim.x) {
        float4 v = xr[i];
        v.x = expf(v.x - m) * r;
        v.y = expf(v.y - m) * r;
        v.z = expf(v.z - m) * r;
        v.w = expf(v.w - m) * r;
        yr[i] = v;
    }
}

extern "C" __global__ void softmax_tree(const float *x, float *y, int cols)
{
    __shared__ float sm[256];
    const float *xr = x + (size_t)blockIdx.x * cols;
    float *yr = y + (size_t)blockIdx.x * cols;
    int t = threadIdx.x;
    float m = -3.4e38f, sum = 0;
    for (int i = t; i < cols; i += blockDim.x)
        m = fmaxf(m, xr[i]);
    sm[t] = m;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s)
            sm[t] = fmaxf(sm[t], sm[t + s]);
        __syncthreads();
    }
    m = sm[0];
    __syncthreads();
    for (int i = t; i < cols; i += blockDim.x)
        sum += expf(xr[i] - m);
    sm[t] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s)
            sm[t] += sm[t + s];
        __syncthreads();
    }
    sum = sm[0];
    for (int i = t; i < cols; i += blockDim.x)
        yr[i] = expf(xr[i] - m) / sum;
}

extern "C" __global__ void matmul_naive(const float *a, const float *b, float *c, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    if (row >= n || col >= n)
        return;
    for (int k = 0; k < n; k++)
        s += a[row * n + k] * b[k * n + col];
    c[row * n + col] = s;
}

#define T 16
extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[T][T], bs[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float s = 0;
    for (int t = 0; t < n / T; t++) {
        as[threadIdx.y][threadIdx.x] = a[row * n + t * T + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(t * T + threadIdx.y) * n + col];
        __syncthreads();
        for (int i = 0; i < T; i++)
            s += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + col] = s;
}
