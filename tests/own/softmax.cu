extern "C" __global__ void reference(struct rung_task t)
{
    for (long long r = blockIdx.x * (long long)blockDim.x + threadIdx.x; r < t.rows; r += (long long)gridDim.x * blockDim.x) {
        const real *x = t.x + r * t.cols;
        real most = x[0], sum = 0;
        for (long long c = 1; c < t.cols; c++)
            most = x[c] > most ? x[c] : most;
        for (long long c = 0; c < t.cols; c++)
            sum += exp(x[c] - most);
        for (long long c = 0; c < t.cols; c++)
            t.y[r * t.cols + c] = exp(x[c] - most) / sum;
    }
}
