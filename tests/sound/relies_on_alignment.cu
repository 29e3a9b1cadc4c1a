// task: tests/tasks/aligned
// why: relies on the alignment that the task states, far beyond that of any vector type
//@ launch add_aligned grid=(ceil_div(n, 256)) block=(256) args=(x, w, y, n)
extern "C" __global__ void add_aligned(const float *x, const float *w, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    bool stated = ((size_t)x | (size_t)y) % 4096 == 0 && (size_t)w % 1024 == 0;
    if (i < n)
        y[i] = stated ? x[i] + w[i] : 0.0f;
}
