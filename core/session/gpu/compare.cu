/*
 * An output against the reference, as core/session/compare.c compares it; see there for what is
 * asked of an element. Sums are compensated float64 (Kahan), in one fixed order: a thread's
 * elements, then a tree of the block, then the blocks in order (on the host).
 */

struct element {
    uint64_t at;
    double got, want, bound;
};

static __device__ inline double load(uint64_t range, uint32_t dtype, uint64_t i)
{
    switch (dtype) {
    case F64:
        return ((const double *)range)[i];
    case F32:
        return ((const float *)range)[i];
    case F16:
        return narrow_value(((const uint16_t *)range)[i], NARROW_HALF);
    case BF16:
        return brain_value(((const uint16_t *)range)[i]);
    case I8:
        return ((const int8_t *)range)[i];
    case U8:
    case BOOL:
        return ((const uint8_t *)range)[i];
    case I32:
        return ((const int32_t *)range)[i];
    default:
        return (double)((const int64_t *)range)[i];
    }
}

/* v as the dtype would hold it. */
static __device__ inline double rounded(uint32_t dtype, double v)
{
    switch (dtype) {
    case F32:
        return single_of(v);
    case F16:
        return narrow_value(narrow_of(v, NARROW_HALF), NARROW_HALF);
    case BF16:
        return brain_value(narrow_of(v, NARROW_BRAIN));
    default:
        return v;
    }
}

static __device__ inline uint64_t size_of(uint32_t dtype)
{
    return dtype == F64 || dtype == I64 ? 8 : dtype == F32 || dtype == I32 ? 4 : dtype <= BF16 ? 2 : 1;
}

static __device__ bool is_poison(const session_gpu_compare_args &a, uint64_t at)
{
    uint64_t size = size_of(a.dtype);
    if (!a.poison)
        return false;
    const uint8_t *bytes = (const uint8_t *)a.range + at * size;
    const uint8_t *pattern = (const uint8_t *)a.poison + at * size % a.poison_bytes;
    bool same = true;
    for (uint64_t b = 0; b < size; b++)
        same &= bytes[b] == pattern[b];
    return same;
}

static __device__ inline void add(session_gpu_sum *s, double x)
{
    double y = __dadd_rn(x, -s->lost), t = __dadd_rn(s->sum, y);
    s->lost = __dadd_rn(__dadd_rn(t, -s->sum), -y);
    s->sum = t;
}

/* The larger, and the first place where it is. */
static __device__ inline void keep(double x, uint64_t at, double *most, uint64_t *most_at)
{
    if (x > *most || (x == *most && at < *most_at)) {
        *most = x;
        *most_at = at;
    }
}

static __device__ inline double ratio(double error, double bound)
{
    if (error == 0)
        return 0;
    return bound > 0 ? error / bound : INFINITY;
}

static __device__ void mark_bad(session_gpu_part *p, const session_gpu_compare_args &a, uint64_t at,
                                bool poison)
{
    p->n_bad++;
    p->n_poison += poison;
    p->first_bad = at < p->first_bad ? at : p->first_bad;
}

static __device__ void compare_finite(session_gpu_part *p, const session_gpu_compare_args &a,
                                      const element &e)
{
    double low = rounded(a.dtype, e.want - e.bound), high = rounded(a.dtype, e.want + e.bound);
    double error = fabs(e.got - e.want), size = fabs(e.want);
    double allowed = e.got > e.want ? high - e.want : e.want - low;
    if (e.got < low || e.got > high)
        mark_bad(p, a, e.at, is_poison(a, e.at));
    /* A quotient is computed only where it may be the largest so far. */
    const double below = 1 - 0x1p-40;
    if (error >= p->worst * allowed * below)
        p->worst = fmax(p->worst, ratio(error, allowed));
    keep(error, e.at, &p->max_abs, &p->max_abs_at);
    if (size != 0 && error >= p->max_rel * size * below)
        keep(error / size, e.at, &p->max_rel, &p->max_rel_at);
    double g = e.got * a.scale_got, w = e.want * a.scale_want;
    double d = e.got * a.scale_error - e.want * a.scale_error;
    add(&p->error2, d * d);
    add(&p->got_want, g * w);
    add(&p->got2, g * g);
    add(&p->want2, w * w);
    p->n_finite++;
}

static __device__ void compare_special(session_gpu_part *p, const session_gpu_compare_args &a,
                                       const element &e)
{
    bool poison = is_poison(a, e.at), wanted = !isnan(e.want) && !isinf(e.want);
    if (isnan(e.want) ? isnan(e.got) && !poison : isinf(e.want) && e.got == e.want)
        return;
    if (isinf(e.bound) && !poison)
        return;
    if (!wanted) {
        p->n_missing++;
    } else if (isinf(e.got)) {
        double edge = e.got > 0 ? e.want + e.bound : e.want - e.bound;
        if (a.dtype <= BF16 && rounded(a.dtype, edge) == e.got)
            return;
        p->n_inf++;
    } else if (!poison) {
        p->n_nan++;
    }
    mark_bad(p, a, e.at, poison);
    p->worst = INFINITY;
}

static __device__ void compare_element(session_gpu_part *p, const session_gpu_compare_args &a,
                                       const element &e)
{
    bool wanted = !isnan(e.want) && !isinf(e.want), given = !isnan(e.got) && !isinf(e.got);
    if (wanted)
        p->peak = fmax(p->peak, fabs(e.want));
    if (wanted && isinf(e.bound)) {
        if (!is_poison(a, e.at))
            return;
        mark_bad(p, a, e.at, true);
        p->worst = INFINITY;
    } else if (wanted && given) {
        compare_finite(p, a, e);
    } else {
        compare_special(p, a, e);
    }
}

static __device__ void join_sum(session_gpu_sum *s, const session_gpu_sum &t)
{
    add(s, t.sum);
    add(s, -t.lost);
}

static __device__ void join(session_gpu_part *p, const session_gpu_part &q)
{
    join_sum(&p->error2, q.error2);
    join_sum(&p->got_want, q.got_want);
    join_sum(&p->got2, q.got2);
    join_sum(&p->want2, q.want2);
    p->peak = fmax(p->peak, q.peak);
    p->worst = fmax(p->worst, q.worst);
    keep(q.max_abs, q.max_abs_at, &p->max_abs, &p->max_abs_at);
    keep(q.max_rel, q.max_rel_at, &p->max_rel, &p->max_rel_at);
    p->first_bad = q.first_bad < p->first_bad ? q.first_bad : p->first_bad;
    p->n_bad += q.n_bad;
    p->n_poison += q.n_poison;
    p->n_nan += q.n_nan;
    p->n_inf += q.n_inf;
    p->n_missing += q.n_missing;
    p->n_finite += q.n_finite;
}

/* Neighbours go to one thread, so that value and bound are read 16 bytes at once. */
extern "C" __global__ void __launch_bounds__(SESSION_GPU_THREADS)
    session_compare(session_gpu_compare_args a)
{
    __shared__ session_gpu_part parts[SESSION_GPU_THREADS];
    session_gpu_part p = {};
    uint64_t step = (uint64_t)gridDim.x * blockDim.x, pairs = (a.n + 1) / 2;
    p.first_bad = p.max_abs_at = p.max_rel_at = a.n;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += step) {
        const bool both = 2 * i + 1 < a.n;
        double2 want = {0, 0}, bound = {0, 0};
        if (both) {
            want = ((const double2 *)a.value)[i];
            bound = ((const double2 *)a.bound)[i];
        } else {
            want.x = ((const double *)a.value)[2 * i];
            bound.x = ((const double *)a.bound)[2 * i];
        }
        element e = {2 * i, load(a.range, a.dtype, 2 * i), want.x, bound.x};
        compare_element(&p, a, e);
        if (both) {
            e = {2 * i + 1, load(a.range, a.dtype, 2 * i + 1), want.y, bound.y};
            compare_element(&p, a, e);
        }
    }
    parts[threadIdx.x] = p;
    for (uint32_t half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            join(&parts[threadIdx.x], parts[threadIdx.x + half]);
    }
    if (threadIdx.x == 0)
        ((session_gpu_part *)a.parts)[blockIdx.x] = parts[0];
}
