//@ launch linear grid=(ceil_div(rows * outside, 128)) block=(128) args=(x, linear_weight, linear_bias, y, rows, inside, outside)

extern "C" __global__ void linear(const float *x, const float *w, const float *b, float *y, int rows, int inside, int outside)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= rows * outside)
        return;
    int r = i / outside, o = i % outside;
    float sum = b[o];
    for (int k = 0; k < inside; k++)
        sum = fmaf(x[r * inside + k], w[o * inside + k], sum);
    y[i] = sum > 0 ? sum : 0;
}
