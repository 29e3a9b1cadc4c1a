/*
 * Rows: reductions, softmax and its like, running sums. One block a row (or a part of one). Where
 * order counts, a thread takes neighbouring elements, and what came before it is joined first.
 */

static int64_t row_start(const ops_gpu_rows_args &a, uint64_t row)
{
    return place_of(row, a.n_kept, a.kept, a.kept_step);
}

static uint64_t place_in(const ops_gpu_rows_args &a, int64_t start, uint64_t i)
{
    return (uint64_t)(start +
                      (a.contiguous ? (int64_t)i : place_of(i, a.n_reduced, a.reduced, a.reduced_step)));
}

static ops_num element(const ops_gpu_rows_args &a, int64_t start, uint64_t i)
{
    return at(a.in, place_in(a, start, i));
}

/* What all threads have, joined in one order; the same for every thread afterwards. */
template <class State> static State join_block(const State &mine, State *shared)
{
    __syncthreads();
    shared[threadIdx.x] = mine;
    for (uint32_t half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            shared[threadIdx.x].join(shared[threadIdx.x + half]);
    }
    __syncthreads();
    return shared[0];
}

/* What the threads before this one have, joined in order; `start` is the state of nothing. */
template <class State>
static State join_before(const State &mine, const State &start, State *shared)
{
    __syncthreads();
    shared[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        State sum = start;
        for (uint32_t t = 0; t < blockDim.x; t++) {
            State next = shared[t];
            shared[t] = sum;
            sum.join(next);
        }
    }
    __syncthreads();
    return shared[threadIdx.x];
}

/* This thread's part of a row: [first, end). */
struct chunk {
    uint64_t first, end;
    chunk(uint64_t n)
    {
        uint64_t each = (n + blockDim.x - 1) / blockDim.x;
        first = threadIdx.x * each < n ? threadIdx.x * each : n;
        end = first + each < n ? first + each : n;
    }
};

/* ---- Reductions that are joined: parts of rows first, then rows ---- */

struct ops_gpu_sum {
    ops_total t;
    void open() { t = ops_total{0, 0, 0, 0}; }
    void add(const ops_gpu_rows_args &a, uint64_t i, ops_num x) { ops_total_add(&t, x.v, x.e); }
    void join(const ops_gpu_sum &o) { ops_total_join(&t, &o.t); }
    ops_num num(const ops_gpu_rows_args &a) const { return ops_total_num(&t, 0, &a.ar); }
};

struct ops_gpu_mean : ops_gpu_sum {
    ops_num num(const ops_gpu_rows_args &a) const { return ops_mean_num(&t, a.length, &a.ar); }
};

struct ops_gpu_norm : ops_gpu_sum {
    void add(const ops_gpu_rows_args &a, uint64_t i, ops_num x)
    {
        ops_norm_add(&t, x.v, x.e, &a.ar);
    }
    ops_num num(const ops_gpu_rows_args &a) const { return ops_norm_num(&t, &a.ar); }
};

struct ops_gpu_extreme {
    ops_extreme x;
    void open() { ops_extreme_open(&x); }
    void add(const ops_gpu_rows_args &a, uint64_t i, ops_num y)
    {
        ops_extreme_add(&x, i, a.sign * y.v, y.e);
    }
    void join(const ops_gpu_extreme &o) { ops_extreme_join(&x, &o.x); }
    ops_num num(const ops_gpu_rows_args &a) const { return ops_extreme_num(&x, a.sign); }
};

struct ops_gpu_prod {
    ops_product p;
    void open() { p = ops_product{1, 0, 0, 0, 0, 0}; }
    void add(const ops_gpu_rows_args &a, uint64_t i, ops_num x) { ops_product_add(&p, x.v, x.e); }
    void join(const ops_gpu_prod &o) { ops_product_join(&p, &o.p); }
    ops_num num(const ops_gpu_rows_args &a) const { return ops_product_num(&p, a.length, &a.ar); }
};

template <class State> __global__ void ops_gpu_part(ops_gpu_rows_args a)
{
    __shared__ State shared[OPS_GPU_THREADS];
    uint64_t row = blockIdx.x / a.segments, segment = blockIdx.x % a.segments;
    uint64_t each = (a.length + a.segments - 1) / a.segments, first = segment * each;
    uint64_t end = first + each < a.length ? first + each : a.length;
    int64_t start = row_start(a, row);
    State s;
    s.open();
    for (uint64_t i = first + threadIdx.x; i < end; i += blockDim.x)
        s.add(a, i, element(a, start, i));
    s = join_block(s, shared);
    if (threadIdx.x != 0)
        return;
    if (a.segments == 1)
        put(a.out, row, s.num(a));
    else
        ((State *)a.states)[blockIdx.x] = s;
}

template <class State> __global__ void ops_gpu_whole(ops_gpu_rows_args a)
{
    __shared__ State shared[OPS_GPU_THREADS];
    const State *states = (const State *)a.states + blockIdx.x * a.segments;
    State s;
    s.open();
    for (uint64_t i = threadIdx.x; i < a.segments; i += blockDim.x)
        s.join(states[i]);
    s = join_block(s, shared);
    if (threadIdx.x == 0)
        put(a.out, blockIdx.x, s.num(a));
}

/* ---- Mean and variance of normalisations ---- */

struct spread_state {
    ops_spread s;
    void join(const spread_state &o) { ops_spread_join(&s, &o.s); }
};

/* The row in index order in float32: one thread adds, all fetch. */
static float running_sum(const ops_gpu_rows_args &a, int64_t start)
{
    __shared__ float tile[OPS_GPU_THREADS];
    float s = 0;
    for (uint64_t first = 0; first < a.length; first += blockDim.x) {
        uint64_t i = first + threadIdx.x, left = a.length - first;
        __syncthreads();
        tile[threadIdx.x] = i < a.length ? (float)((const double *)a.in.v)[place_in(a, start, i)] : 0;
        __syncthreads();
        uint32_t n = left < blockDim.x ? (uint32_t)left : blockDim.x;
        for (uint32_t k = 0; threadIdx.x == 0 && k < n; k++)
            s = __fadd_rn(s, tile[k]);
    }
    return s; /* of the first thread */
}

template <int VAR> __global__ void ops_gpu_moments(ops_gpu_rows_args a)
{
    __shared__ ops_gpu_sum sums[OPS_GPU_THREADS];
    __shared__ spread_state spreads[OPS_GPU_THREADS];
    int64_t start = row_start(a, blockIdx.x);
    double n = (double)a.length, divisor = n - a.unbiased, running = 0;
    ops_gpu_sum s;
    s.open();
    for (uint64_t i = threadIdx.x; i < a.length; i += blockDim.x)
        s.add(a, i, element(a, start, i));
    s = join_block(s, sums);
    if (a.ar.running32)
        running = ops_running_error(running_sum(a, start), s.t.sum, a.length);
    ops_num r;
    if (!VAR) {
        if (threadIdx.x == 0)
            put(a.out, blockIdx.x, ops_centre_num(&s.t, a.length, running, &a.ar));
        return;
    }
    spread_state k = {{0, 0, 0}};
    for (uint64_t i = threadIdx.x; i < a.length; i += blockDim.x) {
        ops_num x = element(a, start, i);
        ops_spread_add(&k.s, s.t.sum / n, x.v, x.e);
    }
    k = join_block(k, spreads);
    if (!ops_var_edge(&s.t, divisor, &r))
        r = ops_var_num(&s.t, &k.s, a.length, divisor, running, &a.ar);
    if (threadIdx.x == 0)
        put(a.out, blockIdx.x, r);
}

/* ---- argmax and argmin (arg.c) ---- */

struct best_state {
    uint64_t at;
    double v, e, floor;
    uint32_t open; /* an element is unconstrained */

    static bool beats(double x, double than) { return x > than || (isnan(x) && !isnan(than)); }
    void take(uint64_t i, double x, double error)
    {
        if (at == ~0ull || beats(x, v) || (!beats(v, x) && i < at)) {
            at = i;
            v = x;
            e = error;
        }
    }
    void join(const best_state &o)
    {
        if (o.at != ~0ull)
            take(o.at, o.v, o.e);
        floor = fmax(floor, o.floor);
        open |= o.open;
    }
};

struct range_state {
    uint64_t least, most;
    void join(const range_state &o)
    {
        least = o.least < least ? o.least : least;
        most = o.most > most ? o.most : most;
    }
};

__global__ void ops_gpu_arg(ops_gpu_rows_args a)
{
    __shared__ best_state bests[OPS_GPU_THREADS];
    __shared__ range_state ranges[OPS_GPU_THREADS];
    int64_t start = row_start(a, blockIdx.x);
    best_state b = {~0ull, 0, 0, -(double)INFINITY, 0};
    for (uint64_t i = threadIdx.x; i < a.length; i += blockDim.x) {
        ops_num x = element(a, start, i);
        b.open |= isinf(x.e) != 0;
        b.take(i, a.sign * x.v, x.e);
        b.floor = fmax(b.floor, a.sign * x.v - x.e);
    }
    b = join_block(b, bests);
    range_state r = {b.at, b.at};
    for (uint64_t i = threadIdx.x; i < a.length; i += blockDim.x) {
        ops_num x = element(a, start, i);
        if (x.e + b.e > 0 && a.sign * x.v + x.e >= b.floor)
            r.join(range_state{i, i});
    }
    r = join_block(r, ranges);
    uint64_t before = b.at - r.least, after = r.most - b.at;
    if (threadIdx.x == 0)
        put(a.out, blockIdx.x,
            b.open ? ops_pair(0, INFINITY)
                   : ops_pair((double)b.at, (double)(before > after ? before : after)));
}

/* ---- softmax, log_softmax, logsumexp (rowexp.h) ---- */

struct peak_state {
    ops_peak p;
    void join(const peak_state &o) { ops_peak_join(&p, &o.p); }
};

/* Of a part of a row: the largest element and the sum; in order, what the next part begins with. */
struct exp_state {
    double record, sum;
    void join(const exp_state &o)
    {
        record = o.record > record ? o.record : record;
        sum += o.sum;
    }
};

struct weight_state {
    double weighted, rescaled, sum;
    void join(const weight_state &o)
    {
        weighted += o.weighted;
        rescaled += o.rescaled;
        sum += o.sum;
    }
};

static ops_shares shares_of(const ops_gpu_rows_args &a, int64_t start)
{
    __shared__ peak_state peaks[OPS_GPU_THREADS];
    __shared__ exp_state exps[OPS_GPU_THREADS];
    __shared__ weight_state weights[OPS_GPU_THREADS];
    const chunk c(a.length);
    peak_state peak = {{-(double)INFINITY, 0, 0}};
    for (uint64_t i = threadIdx.x; i < a.length; i += blockDim.x) {
        ops_num x = element(a, start, i);
        ops_peak_add(&peak.p, x.v, x.e);
    }
    peak = join_block(peak, peaks);
    ops_shares s = ops_shares_open(&peak.p, a.length, &a.ar);
    if (!s.plain)
        return s;
    exp_state mine = {-(double)INFINITY, 0};
    for (uint64_t i = c.first; i < c.end; i++) {
        double x = element(a, start, i).v;
        mine.join(exp_state{x, exp(x - s.max)});
    }
    exp_state before = join_before(mine, exp_state{-(double)INFINITY, 0}, exps);
    ops_exp_sums k = {before.sum, 0, 0, before.record};
    for (uint64_t i = c.first; i < c.end; i++) {
        ops_num x = element(a, start, i);
        ops_exp_add(&k, x.v, exp(x.v - s.max), ops_growth(ops_exponent_error(x.v, x.e, &s, &a.ar)));
    }
    weight_state w = join_block(weight_state{k.weighted, k.rescaled, mine.sum}, weights);
    k = ops_exp_sums{w.sum, w.weighted, w.rescaled, s.max};
    ops_shares_close(&s, &k, a.length, &a.ar);
    return s;
}

enum { SOFTMAX, SOFTMAX_FUSED, LOG_SOFTMAX };

template <int KIND> static ops_num softmax_of(const ops_gpu_rows_args &a, const ops_shares &s, ops_num x)
{
    if (!s.plain)
        return ops_softmax_edge(&s);
    if (KIND == LOG_SOFTMAX)
        return ops_log_softmax_num(&s, x.v, x.e, &a.ar);
    ops_num p = ops_softmax_num(&s, exp(x.v - s.max),
                                ops_growth(ops_exponent_error(x.v, x.e, &s, &a.ar)), &a.ar);
    return KIND == SOFTMAX_FUSED ? ops_softmax_fused_num(&s, p) : p;
}

template <int KIND> __global__ void ops_gpu_softmax(ops_gpu_rows_args a)
{
    int64_t start = row_start(a, blockIdx.x);
    ops_shares s = shares_of(a, start);
    for (uint64_t i = threadIdx.x; i < a.length; i += blockDim.x) {
        uint64_t place = place_in(a, start, i);
        put(a.out, place, softmax_of<KIND>(a, s, at(a.in, place)));
    }
}

__global__ void ops_gpu_logsumexp(ops_gpu_rows_args a)
{
    ops_shares s = shares_of(a, row_start(a, blockIdx.x));
    if (threadIdx.x == 0)
        put(a.out, blockIdx.x, ops_logsumexp_num(&s, &a.ar));
}

/* ---- Running sums and products ---- */

struct ops_gpu_cumsum {
    ops_prefix p;
    void open() { p = ops_prefix{0, 0, 0, 0}; }
    void add(const ops_gpu_rows_args &a, ops_num x) { ops_prefix_add(&p, x.v, x.e); }
    void join(const ops_gpu_cumsum &o) { ops_prefix_join(&p, &o.p); }
    ops_num num(const ops_gpu_rows_args &a, bool first) const { return ops_prefix_num(&p, &a.ar); }
};

struct ops_gpu_cumprod {
    ops_chain c;
    void open() { c = ops_chain{1, 0, 0, 0, 0, 0, 0}; }
    void add(const ops_gpu_rows_args &a, ops_num x) { ops_chain_add(&c, x.v, x.e, &a.ar); }
    void join(const ops_gpu_cumprod &o) { ops_chain_join(&c, &o.c); }
    ops_num num(const ops_gpu_rows_args &a, bool first) const { return ops_chain_num(&c, first, &a.ar); }
};

template <class State> __global__ void ops_gpu_scan(ops_gpu_rows_args a)
{
    __shared__ State shared[OPS_GPU_THREADS];
    const chunk c(a.length);
    int64_t start = row_start(a, blockIdx.x);
    State s, none;
    s.open();
    none.open();
    for (uint64_t i = c.first; i < c.end; i++)
        s.add(a, element(a, start, i));
    s = join_before(s, none, shared);
    for (uint64_t i = c.first; i < c.end; i++) {
        uint64_t place = place_in(a, start, i);
        s.add(a, at(a.in, place));
        put(a.out, place, s.num(a, i == 0));
    }
}
