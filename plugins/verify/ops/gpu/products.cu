/*
 * Matrix products and convolutions in tiles of 64 x 64: a block of 256 threads, 4 x 4 elements a
 * thread, k in steps of 16 through shared memory. Beside the values run the sums that bounds need
 * (dot.h): of absolute values, and, where operands have errors (E), of those with the errors.
 */

enum { TILE = OPS_GPU_TILE, DEEP = 16, MICRO = 4, PITCH = TILE + 2 };

/* Operands of products: element (i, k) of A; a column of B, read at rising k. */
struct ops_gpu_matrices {
    struct column {
        int64_t place;
    };
    static int64_t left(const ops_gpu_product_args &a, int64_t batch, int64_t i, int32_t k)
    {
        return batch * a.batch_a + i * a.k + k;
    }
    static column column_of(const ops_gpu_product_args &a, int64_t batch, int64_t j)
    {
        return column{batch * a.batch_b + j};
    }
    static int64_t right(const ops_gpu_product_args &a, const column &c, int32_t k)
    {
        return c.place + k * a.n;
    }
    static int64_t result(const ops_gpu_product_args &a, int64_t batch, int64_t i, int64_t j)
    {
        return (batch * a.m + i) * a.n + j;
    }
};

struct ops_gpu_windows {
    struct column {
        int64_t plane; /* of the first channel of the group, in elements */
        int32_t q[OPS_MAX_SPACE];
    };
    static int64_t left(const ops_gpu_product_args &a, int64_t batch, int64_t i, int32_t k)
    {
        const ops_gpu_conv &c = a.conv;
        int32_t channel = k / c.n_taps, tap = k - channel * c.n_taps;
        int64_t group = batch % c.groups;
        int64_t place = c.transposed ? (group * c.group_in + channel) * c.width + i
                                     : (group * c.rows + i) * c.width + channel;
        return place * c.volume + ((const int32_t *)c.flat)[tap];
    }
    static void unfold(const ops_gpu_conv &c, int64_t j, int32_t *q)
    {
        int32_t rest = (int32_t)j;
#pragma unroll
        for (int d = OPS_MAX_SPACE - 1; d >= 0; d--) {
            q[d] = 0;
            if (d < c.n) {
                q[d] = rest % c.q[d];
                rest /= c.q[d];
            }
        }
    }
    static int64_t plane(const ops_gpu_conv &c)
    {
        int64_t size = 1;
#pragma unroll
        for (int d = 0; d < OPS_MAX_SPACE; d++)
            size *= d < c.n ? c.extent[d] : 1;
        return size;
    }
    static column column_of(const ops_gpu_product_args &a, int64_t batch, int64_t j)
    {
        const ops_gpu_conv &c = a.conv;
        column col;
        unfold(c, j, col.q);
        col.plane = (batch / c.groups * c.channels + batch % c.groups * c.group_in) * plane(c);
        return col;
    }
    /* -1: in the padding. */
    static int64_t right(const ops_gpu_product_args &a, const column &col, int32_t k)
    {
        const ops_gpu_conv &c = a.conv;
        int32_t channel = k / c.n_taps, tap = k - channel * c.n_taps;
        int64_t place = channel;
#pragma unroll
        for (int d = 0; d < OPS_MAX_SPACE; d++)
            if (d < c.n) {
                int32_t in = col.q[d] * c.in_step[d] +
                             ((const int32_t *)c.offset)[d * c.n_taps + tap];
                if (in < 0 || in >= c.extent[d])
                    return -1;
                place = place * c.extent[d] + in;
            }
        return col.plane + place;
    }
    static int64_t result(const ops_gpu_product_args &a, int64_t batch, int64_t i, int64_t j)
    {
        const ops_gpu_conv &c = a.conv;
        int32_t q[OPS_MAX_SPACE];
        unfold(c, j, q);
        int64_t place = batch / c.groups * c.groups * c.rows + batch % c.groups * c.rows + i;
#pragma unroll
        for (int d = 0; d < OPS_MAX_SPACE; d++)
            if (d < c.n)
                place = place * c.out[d] + q[d] * c.out_step[d] + c.out_at[d];
        return place;
    }
};

template <int E> struct tile_memory {
    double a[DEEP][PITCH], b[DEEP][PITCH];
    double high_a[E ? DEEP : 1][PITCH], high_b[E ? DEEP : 1][PITCH];
    uint32_t in_row[TILE], in_column[TILE]; /* elements that are not exactly zero */
};

template <int E> struct micro_sums {
    double v[MICRO][MICRO], size[MICRO][MICRO], high[E ? MICRO : 1][E ? MICRO : 1];
};

template <int E>
static void store_pair(double *v, double *high, ops_num x, uint32_t *count)
{
    *v = x.v;
    if (E)
        *high = fabs(x.v) + x.e;
    *count += x.v != 0 || x.e != 0;
}

template <int E> static void multiply(const tile_memory<E> &m, micro_sums<E> &s, int row, int column)
{
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
        double x[MICRO], y[MICRO];
#pragma unroll
        for (int r = 0; r < MICRO; r++) {
            x[r] = m.a[k][row + r];
            y[r] = m.b[k][column + r];
        }
#pragma unroll
        for (int r = 0; r < MICRO; r++)
#pragma unroll
            for (int c = 0; c < MICRO; c++) {
                s.v[r][c] = fma(x[r], y[c], s.v[r][c]);
                s.size[r][c] = fma(fabs(x[r]), fabs(y[c]), s.size[r][c]);
            }
        if (E) {
#pragma unroll
            for (int r = 0; r < MICRO; r++) {
                x[r] = m.high_a[E ? k : 0][row + r];
                y[r] = m.high_b[E ? k : 0][column + r];
            }
#pragma unroll
            for (int r = 0; r < MICRO; r++)
#pragma unroll
                for (int c = 0; c < MICRO; c++)
                    s.high[E ? r : 0][E ? c : 0] = fma(x[r], y[c], s.high[E ? r : 0][E ? c : 0]);
        }
    }
}

template <class Source, int E>
__global__ void __launch_bounds__(OPS_GPU_THREADS) ops_gpu_product(ops_gpu_product_args a)
{
    __shared__ tile_memory<E> m;
    int64_t tile = blockIdx.x, i0 = tile % a.tiles_m * TILE, j0 = tile / a.tiles_m % a.tiles_n * TILE;
    int64_t batch = tile / a.tiles_m / a.tiles_n;
    const int t = threadIdx.x, row = t / 16 * MICRO, column = t % 16 * MICRO;
    const int a_k = t % DEEP, a_row = t / DEEP, b_column = t % TILE, b_k = t / TILE;
    const bool in_n = j0 + b_column < a.n;
    typename Source::column col = Source::column_of(a, batch, in_n ? j0 + b_column : 0);
    uint32_t in_row[MICRO] = {0, 0, 0, 0}, in_column = 0;
    micro_sums<E> s = {};
    if (t < TILE)
        m.in_row[t] = m.in_column[t] = 0;
    for (int64_t k0 = 0; k0 < a.k; k0 += DEEP) {
        __syncthreads();
#pragma unroll
        for (int r = 0; r < MICRO; r++) {
            int i = a_row + r * (OPS_GPU_THREADS / DEEP);
            ops_num x = ops_pair(0, 0);
            if (i0 + i < a.m && k0 + a_k < a.k)
                x = at(a.a, (uint64_t)Source::left(a, batch, i0 + i, (int32_t)k0 + a_k));
            store_pair<E>(&m.a[a_k][i], &m.high_a[E ? a_k : 0][i], x, &in_row[r]);
        }
#pragma unroll
        for (int r = 0; r < MICRO; r++) {
            int k = b_k + r * (OPS_GPU_THREADS / TILE);
            ops_num x = ops_pair(0, 0);
            int64_t place = in_n && k0 + k < a.k ? Source::right(a, col, (int32_t)k0 + k) : -1;
            if (place >= 0)
                x = at(a.b, (uint64_t)place);
            store_pair<E>(&m.b[k][b_column], &m.high_b[E ? k : 0][b_column], x, &in_column);
        }
        __syncthreads();
        multiply<E>(m, s, row, column);
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < MICRO; r++)
        atomicAdd(&m.in_row[a_row + r * (OPS_GPU_THREADS / DEEP)], in_row[r]);
    atomicAdd(&m.in_column[b_column], in_column);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < MICRO; r++)
#pragma unroll
        for (int c = 0; c < MICRO; c++) {
            if (i0 + row + r >= a.m || j0 + column + c >= a.n)
                continue;
            uint32_t x = m.in_row[row + r], y = m.in_column[column + c];
            double size = s.size[r][c], high = E ? s.high[E ? r : 0][E ? c : 0] : size;
            put(a.c, (uint64_t)Source::result(a, batch, i0 + row + r, j0 + column + c),
                ops_dot(s.v[r][c], size, high, x < y ? x : y, &a.ar));
        }
}
