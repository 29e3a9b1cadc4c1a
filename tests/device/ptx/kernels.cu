// Kernels of the end-to-end test, in the manner that models write them.

extern "C" __global__ void vadd4(const float4 *a, const float4 *b, float4 *c, int n4)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n4) {
        float4 x = a[i], y = b[i];
        c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}

extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = x[i];
        y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}

extern "C" __global__ void softmax_rows(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    extern __shared__ float sm[];
    const float *xr = x + (size_t)blockIdx.x * cols;
    float *yr = y + (size_t)blockIdx.x * cols;
    float m = -3.4e38f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        m = fmaxf(m, xr[i]);
    sm[threadIdx.x] = m;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s)
            sm[threadIdx.x] = fmaxf(sm[threadIdx.x], sm[threadIdx.x + s]);
        __syncthreads();
    }
    m = sm[0];
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        sum += expf(xr[i] - m);
    sm[threadIdx.x] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s)
            sm[threadIdx.x] += sm[threadIdx.x + s];
        __syncthreads();
    }
    sum = sm[0];
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        yr[i] = expf(xr[i] - m) / sum;
}

extern "C" __global__ void layernorm(const float *x, const float *g, const float *b, float *y, int cols, float eps)
{
    __shared__ float part[2][32];
    const float *xr = x + (size_t)blockIdx.x * cols;
    float s = 0, q = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        float v = xr[i];
        s += v;
        q += v * v;
    }
    for (int o = 16; o > 0; o >>= 1) {
        s += __shfl_down_sync(0xffffffff, s, o);
        q += __shfl_down_sync(0xffffffff, q, o);
    }
    int w = threadIdx.x / 32, l = threadIdx.x % 32;
    if (l == 0) {
        part[0][w] = s;
        part[1][w] = q;
    }
    __syncthreads();
    if (w == 0) {
        int n = blockDim.x / 32;
        s = l < n ? part[0][l] : 0;
        q = l < n ? part[1][l] : 0;
        for (int o = 16; o > 0; o >>= 1) {
            s += __shfl_down_sync(0xffffffff, s, o);
            q += __shfl_down_sync(0xffffffff, q, o);
        }
        if (l == 0) {
            part[0][0] = s / cols;
            part[1][0] = rsqrtf(q / cols - (s / cols) * (s / cols) + eps);
        }
    }
    __syncthreads();
    float mean = part[0][0], inv = part[1][0];
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        y[(size_t)blockIdx.x * cols + i] = (xr[i] - mean) * inv * g[i] + b[i];
}

extern "C" __global__ void reduce_sum(const float *x, float *out, int n)
{
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        s += x[i];
    for (int o = 16; o > 0; o >>= 1)
        s += __shfl_xor_sync(0xffffffff, s, o);
    if ((threadIdx.x & 31) == 0)
        atomicAdd(out, s);
}

#define T 16
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[T][T], bs[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < (k + T - 1) / T; t++) {
        as[threadIdx.y][threadIdx.x] = row < m && t * T + threadIdx.x < k ? a[row * k + t * T + threadIdx.x] : 0;
        bs[threadIdx.y][threadIdx.x] = col < n && t * T + threadIdx.y < k ? b[(t * T + threadIdx.y) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < T; i++)
            sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

extern "C" __global__ void conv2d(const float *x, const float *w, float *y, int h, int wd, int r)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h || j >= wd)
        return;
    float s = 0;
    for (int a = -r; a <= r; a++) {
        if (i + a < 0 || i + a >= h)
            continue;
        for (int b = -r; b <= r; b++) {
            if (j + b < 0 || j + b >= wd)
                continue;
            s += x[(i + a) * wd + j + b] * w[(a + r) * (2 * r + 1) + b + r];
        }
    }
    y[i * wd + j] = s;
}

__device__ __noinline__ float poly(float x, float3 k)
{
    return (k.x * x + k.y) * x + k.z;
}

extern "C" __global__ void functions(const float *x, float *y, double *z, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    float *o = y + 14 * i;
    o[0] = expf(v);
    o[1] = logf(fabsf(v));
    o[2] = powf(fabsf(v), 1.7f);
    o[3] = sinf(v * 1000.0f);
    o[4] = cosf(v);
    o[5] = tanhf(v);
    o[6] = erff(v);
    o[7] = sqrtf(fabsf(v));
    o[8] = 1.0f / v;
    o[9] = v / 3.0f;
    o[10] = fmodf(v, 0.7f);
    o[11] = log1pf(fabsf(v)) + expm1f(v);
    o[12] = poly(v, make_float3(1.5f, -2.0f, 0.25f));
    o[13] = __expf(v) + __logf(fabsf(v) + 1.0f) + __sinf(v) + __cosf(v);
    z[2 * i] = sin((double)v * 1e6) + exp((double)v) + log(fabs((double)v));
    z[2 * i + 1] = pow(fabs((double)v), 0.3) / (1.0 + (double)v * v);
}

extern "C" __global__ void histogram(const unsigned char *x, unsigned *bins, int n)
{
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[x[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (local[i])
            atomicAdd(&bins[i], local[i]);
}

extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (r + k < rows && c < cols)
            tile[threadIdx.y + k][threadIdx.x] = x[(r + k) * cols + c];
    __syncthreads();
    c = blockIdx.y * 32 + threadIdx.x;
    r = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (r + k < cols && c < rows)
            y[(r + k) * rows + c] = tile[threadIdx.x][threadIdx.y + k];
}
