// operator: transpose
// idea: Give each element to one thread; it reads beside its neighbours and writes far from them.
// category: baseline
// after: none
// graph: y = transpose(x)
// tensors: x f32 [batch.., m, n]; y f32
// graph: y = transpose(x, dim0=0, dim1=1)
// tensors: x f32 [m, n]; y f32
// let: batch = 1
// graph: y = transpose(x, dim0=1, dim1=0)
// tensors: x f32 [m, n]; y f32
// let: batch = 1
// graph: y = transpose(x, dim0=1, dim1=2)
// tensors: x f32 [batch, m, n]; y f32
//@ tune   TPB = 256, 128, 512
//@ launch transpose_naive<TPB> grid=(ceil_div({{batch}} * {{m}} * {{n}}, TPB)) block=(TPB) args=({{x}}, {{y}}, {{batch}}, {{m}}, {{n}})

template <int TPB>
__global__ void __launch_bounds__(TPB)
transpose_naive(const float *__restrict__ x, float *__restrict__ y, long long batch, int m, int n)
{
    const long long at = (long long)blockIdx.x * TPB + threadIdx.x;
    if (at >= batch * m * n) return; //! guard
    const int row = at / n % m, col = at % n;
    y[(at / n / m * n + col) * m + row] = x[at];
}
