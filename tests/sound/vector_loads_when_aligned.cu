// task: softmax_small
// why: float4 where the row length allows it, scalars where it does not
//@ launch softmax_vec grid=(rows) block=(128) args=(x, y, cols) when=(cols % 4 == 0)
//@ launch softmax_scalar grid=(rows) block=(128) args=(x, y, cols) when=(cols % 4 != 0)
__device__ float row_reduce(float v, bool is_max)
{
    __shared__ float s[4];
    for (int d = 16; d; d /= 2) {
        float o = __shfl_down_sync(~0u, v, d);
        v = is_max ? fmaxf(v, o) : v + o;
    }
    if (threadIdx.x % 32 == 0)
        s[threadIdx.x / 32] = v;
    __syncthreads();
    v = is_max ? fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3])) : (s[0] + s[1]) + (s[2] + s[3]);
    __syncthreads();
    return v;
}
extern "C" __global__ void softmax_vec(const float *x, float *y, int cols)
{
    const float4 *in = reinterpret_cast<const float4 *>(x + (long long)blockIdx.x * cols);
    float4 *out = reinterpret_cast<float4 *>(y + (long long)blockIdx.x * cols);
    float m = -INFINITY, s = 0.0f;
    for (int i = threadIdx.x; i < cols / 4; i += 128)
        m = fmaxf(m, fmaxf(fmaxf(in[i].x, in[i].y), fmaxf(in[i].z, in[i].w)));
    m = row_reduce(m, true);
    for (int i = threadIdx.x; i < cols / 4; i += 128) {
        float4 v = in[i];
        s += expf(v.x - m) + expf(v.y - m) + expf(v.z - m) + expf(v.w - m);
    }
    s = row_reduce(s, false);
    for (int i = threadIdx.x; i < cols / 4; i += 128) {
        float4 v = in[i];
        out[i] = make_float4(expf(v.x - m) / s, expf(v.y - m) / s, expf(v.z - m) / s, expf(v.w - m) / s);
    }
}
extern "C" __global__ void softmax_scalar(const float *x, float *y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float *out = y + (long long)blockIdx.x * cols;
    float m = -INFINITY, s = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 128)
        m = fmaxf(m, in[i]);
    m = row_reduce(m, true);
    for (int i = threadIdx.x; i < cols; i += 128)
        s += expf(in[i] - m);
    s = row_reduce(s, false);
    for (int i = threadIdx.x; i < cols; i += 128)
        out[i] = expf(in[i] - m) / s;
}
