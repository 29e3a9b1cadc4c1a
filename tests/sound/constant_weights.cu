// task: conv2d_small
// why: the filters lie in constant memory where they fit, filled by the plan before the launch
//@ symbol nets::c_w = w when=(filters * channels * 121 <= 8192)
//@ launch nets::conv<true> grid=(ceil_div(batch * filters * oh * ow, 128)) block=(128) \
//@   args=(x, w, b, y, channels, height, width, filters, oh, ow, batch * filters * oh * ow) \
//@   when=(filters * channels * 121 <= 8192)
//@ launch nets::conv<false> grid=(ceil_div(batch * filters * oh * ow, 128)) block=(128) \
//@   args=(x, w, b, y, channels, height, width, filters, oh, ow, batch * filters * oh * ow) \
//@   when=(filters * channels * 121 > 8192)
namespace nets {
__constant__ float c_w[8192];

template <bool CONSTANT>
__global__ void conv(const float *x, const float *w, const float *b, float *y, int channels, int height,
                     int width, int filters, int oh, int ow, int n)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    int col = i % ow, row = i / ow % oh, f = i / (ow * oh) % filters, image = i / (ow * oh * filters);
    float sum = 0.0f;
    for (int c = 0; c < channels; c++)
        for (int r = 0; r < 11; r++) {
            int h = row * 4 - 2 + r;
            if (h < 0 || h >= height)
                continue;
            const float *line = x + ((long long)(image * channels + c) * height + h) * width;
            int at = ((f * channels + c) * 11 + r) * 11;
            for (int k = 0; k < 11; k++) {
                int v = col * 4 - 2 + k;
                if (v >= 0 && v < width)
                    sum = fmaf(line[v], CONSTANT ? c_w[at + k] : w[at + k], sum);
            }
        }
    y[i] = sum + b[f];
}
} // namespace nets
