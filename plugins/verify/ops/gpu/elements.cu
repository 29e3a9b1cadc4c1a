/* Element by element: inputs, maps, outputs, and operators that only move elements. */

static ops_num at(const ops_gpu_tensor &t, uint64_t i)
{
    return ops_pair(((const double *)t.v)[i], t.e ? ((const double *)t.e)[i] : 0);
}

static void put(const ops_gpu_tensor &t, uint64_t i, ops_num x)
{
    ((double *)t.v)[i] = x.v;
    ((double *)t.e)[i] = x.e;
}

static uint64_t first_item()
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static uint64_t item_step()
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* Place of flat index i, by steps along dims; 32-bit divisions where they do. */
static int64_t place_of(uint64_t i, uint32_t n_dims, const int64_t *dims, const int64_t *steps)
{
    int64_t place = 0;
    if (i >> 32 == 0) {
        uint32_t rest = (uint32_t)i;
        for (uint32_t d = n_dims; d-- > 1 && rest;) {
            uint32_t next = rest / (uint32_t)dims[d];
            place += (int64_t)(rest - next * (uint32_t)dims[d]) * steps[d];
            rest = next;
        }
        return n_dims ? place + (int64_t)rest * steps[0] : 0;
    }
    for (uint32_t d = n_dims; d-- > 1;) {
        uint64_t next = i / (uint64_t)dims[d];
        place += (int64_t)(i - next * (uint64_t)dims[d]) * steps[d];
        i = next;
    }
    return n_dims ? place + (int64_t)i * steps[0] : 0;
}

/* ---- Ends of the graph ---- */

__global__ void ops_gpu_decode(ops_gpu_decode_args a)
{
    bool errs = false;
    for (uint64_t i = first_item(); i < a.n; i += item_step()) {
        double v = verify_element(a.dtype, (const void *)a.data, i);
        double e = ops_input_errs(a.dtype, &a.ar) ? ops_input_error(a.dtype, v, &a.ar) : 0;
        ((double *)a.out.v)[i] = v;
        if (a.out.e)
            ((double *)a.out.e)[i] = e;
        errs |= e != 0;
    }
    if (errs && !a.out.e)
        atomicOr((uint32_t *)a.flag, 1u);
}

__global__ void ops_gpu_any(ops_gpu_any_args a)
{
    bool errs = false;
    for (uint64_t i = first_item(); i < a.n; i += item_step())
        errs |= ((const double *)a.e)[i] != 0;
    if (errs)
        atomicOr((uint32_t *)a.flag, 1u);
}

__global__ void ops_gpu_finish(ops_gpu_finish_args a)
{
    ops_format f = ops_format_of(a.dtype);
    for (uint64_t i = first_item(); i < a.n; i += item_step()) {
        double value, bound;
        ops_finish_element(at(a.in, i), a.dtype, &f, &a.ar, &value, &bound);
        put(a.out, i, ops_pair(value, bound));
    }
}

/* ---- Maps ---- */

static ops_num operand(const ops_gpu_map_args &a, uint32_t k, uint64_t i)
{
    return at(a.in[k], a.direct[k] ? i : place_of(i, a.n_dims, a.dims, a.steps[k]));
}

template <ops_unary F> __global__ void ops_gpu_map1(ops_gpu_map_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step())
        put(a.out, i, ops_apply1(F, operand(a, 0, i), &a.ar));
}

template <ops_binary F> __global__ void ops_gpu_map2(ops_gpu_map_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step()) {
        ops_num x = operand(a, 0, i), y = operand(a, 1, i), r = ops_apply2(F, x, y, &a.ar);
        if (isfinite(x.v) && isfinite(y.v))
            r.e += a.carried[0] * fabs(x.v) + a.carried[1] * fabs(y.v);
        put(a.out, i, r);
    }
}

template <ops_binary F> __global__ void ops_gpu_map2_exact(ops_gpu_map_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step())
        put(a.out, i, F(operand(a, 0, i), operand(a, 1, i), &a.ar));
}

template <ops_ternary F> __global__ void ops_gpu_map3(ops_gpu_map_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step())
        put(a.out, i, F(operand(a, 0, i), operand(a, 1, i), operand(a, 2, i), &a.ar));
}

__global__ void ops_gpu_stored(ops_gpu_map_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step()) {
        ops_num x = operand(a, 0, i);
        x.e += isfinite(x.v) ? a.stored * fabs(x.v) : 0;
        put(a.out, i, x);
    }
}

__global__ void ops_gpu_scalar(ops_gpu_map_args a)
{
    if (first_item() == 0)
        put(a.out, 0, a.number);
}

/* ---- Moves ---- */

__global__ void ops_gpu_move(ops_gpu_move_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step()) {
        int64_t from = a.base + place_of(i, a.n_dims, a.dims, a.steps);
        ((double *)a.out.v)[i] = ((const double *)a.in.v)[from];
        if (a.in.e)
            ((double *)a.out.e)[i] = ((const double *)a.in.e)[from];
    }
}

__global__ void ops_gpu_put(ops_gpu_put_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step())
        put(a.out, i / a.run * a.stride + a.to + i % a.run, at(a.in, i));
}

__global__ void ops_gpu_triangle(ops_gpu_triangle_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step()) {
        int64_t across = (int64_t)(i % a.cols) - (int64_t)(i / a.cols % a.rows);
        bool keep = a.upper ? across >= a.diagonal : across <= a.diagonal;
        put(a.out, i, keep ? at(a.in, i) : ops_pair(a.fill, 0));
    }
}

__global__ void ops_gpu_pick(ops_gpu_pick_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step()) {
        ops_num x = at(a.index, i), r = ops_pair(0, INFINITY);
        if (x.e == 0 && x.v == (double)a.ignored)
            r.e = 0;
        else if (x.e == 0 && x.v >= 0 && x.v < (double)a.extent && x.v == floor(x.v))
            r = at(a.in, (i / a.inner * a.extent + (uint64_t)x.v) * a.inner + i % a.inner);
        put(a.out, i, r);
    }
}

/* ---- Pooling: an output a thread, its window in order as on the host ---- */

struct ops_gpu_window {
    ops_reach reach[OPS_MAX_SPACE];
    int64_t plane, size, padded; /* first element of the channel; elements, with padding too */
};

static ops_gpu_window window_of(const ops_gpu_pool_args &a, uint64_t i)
{
    ops_gpu_window w;
    uint64_t rest = i;
    w.size = w.padded = w.plane = 1;
    for (uint32_t d = a.attr.win.n; d-- > 0;) {
        uint64_t out = (uint64_t)a.attr.win.out[d];
        w.reach[d] = ops_reach_of(&a.attr, d, (int64_t)(rest % out), a.extent[d]);
        w.size *= w.reach[d].count;
        w.padded *= w.reach[d].padded;
        w.plane *= a.extent[d];
        rest /= out;
    }
    w.plane *= (int64_t)rest;
    return w;
}

static int64_t in_window(const ops_gpu_pool_args &a, const ops_gpu_window &w, int64_t k)
{
    int64_t place = 0, step = 1;
    for (uint32_t d = a.attr.win.n; d-- > 0;) {
        int64_t next = k / w.reach[d].count;
        place += (w.reach[d].first + (k - next * w.reach[d].count) * w.reach[d].step) * step;
        step *= a.extent[d];
        k = next;
    }
    return w.plane + place;
}

static ops_num window_mean(const ops_gpu_pool_args &a, const ops_gpu_window &w)
{
    ops_total t = {0, 0, 0, 0};
    double divisor = (double)(a.attr.kind == OPS_POOL_MEAN ? w.size : w.padded);
    if (w.size <= 0)
        return ops_pair(0, 0);
    for (int64_t k = 0; k < w.size; k++) {
        ops_num x = at(a.in, (uint64_t)in_window(a, w, k));
        ops_total_add(&t, x.v, x.e);
    }
    ops_num sum = ops_total_num(&t, 0, &a.ar);
    return divisor == 1 ? sum : ops_apply2(ops_div, sum, ops_pair(divisor, 0), &a.ar);
}

__global__ void ops_gpu_pool(ops_gpu_pool_args a)
{
    for (uint64_t i = first_item(); i < a.n; i += item_step()) {
        ops_gpu_window w = window_of(a, i);
        ops_extreme x;
        ops_extreme_open(&x);
        if (a.attr.kind != OPS_POOL_MAX) {
            put(a.out, i, window_mean(a, w));
            continue;
        }
        for (int64_t k = 0; k < w.size; k++) {
            ops_num y = at(a.in, (uint64_t)in_window(a, w, k));
            ops_extreme_add(&x, (uint64_t)k, y.v, y.e);
        }
        put(a.out, i, ops_extreme_num(&x, 1));
    }
}
