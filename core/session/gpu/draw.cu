/*
 * Fills, as core/session/fill.c draws them, bit for bit: every floating operation is one rounding
 * of its own (the compiler contracts none of these), and the rest is whole numbers.
 */

/* A double whose operators are never fused with each other. */
struct exact {
    double v;
    __device__ exact(double x = 0) : v(x) {}
};
static __device__ inline exact operator+(exact a, exact b) { return __dadd_rn(a.v, b.v); }
static __device__ inline exact operator-(exact a, exact b) { return __dadd_rn(a.v, -b.v); }
static __device__ inline exact operator*(exact a, exact b) { return __dmul_rn(a.v, b.v); }
static __device__ inline exact operator/(exact a, exact b) { return __ddiv_rn(a.v, b.v); }

/* Two words of a block, as core/base/philox.c orders them. */
static __device__ void philox(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t *words)
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
    for (int i = 0; i < 10; i++) {
        uint32_t n0 = __umulhi(0xCD9E8D57u, c2) ^ c1 ^ k0, n2 = __umulhi(0xD2511F53u, c0) ^ c3 ^ k1;
        c1 = 0xCD9E8D57u * c2;
        c3 = 0xD2511F53u * c0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[0] = (uint64_t)c1 << 32 | c0;
    words[1] = (uint64_t)c3 << 32 | c2;
}

static __device__ inline exact unit(uint64_t word)
{
    return exact((double)(word >> 11)) * 0x1p-53;
}

template <int N> static __device__ inline exact horner(const double (&c)[N], exact x)
{
    exact sum = c[0];
#pragma unroll
    for (int k = 1; k < N; k++)
        sum = sum * x + c[k];
    return sum;
}

static __device__ exact log_unit(exact x)
{
    uint64_t bits = (uint64_t)__double_as_longlong(x.v);
    int e = (int)(bits >> 52) - 1023;
    exact m = __longlong_as_double((int64_t)((bits & ((1ull << 52) - 1)) | 1023ull << 52));
    if (m.v >= 0x1.6a09e667f3bcdp0) {
        m = m * 0.5;
        e++;
    }
    const double odd[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                          1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
    exact s = (m - 1) / (m + 1), sum = horner(odd, s * s);
    return exact((double)e) * 0x1.62e42fefa39efp-1 + exact(2) * s * sum;
}

static __device__ void turn(exact u, exact *c, exact *s)
{
    const double even[] = {1 / 20922789888000.0, -1 / 87178291200.0, 1 / 479001600.0,
                           -1 / 3628800.0,       1 / 40320.0,        -1 / 720.0,
                           1 / 24.0,             -1 / 2.0,           1};
    const double odd[] = {1 / 355687428096000.0, -1 / 1307674368000.0, 1 / 6227020800.0,
                          -1 / 39916800.0,       1 / 362880.0,         -1 / 5040.0,
                          1 / 120.0,             -1 / 6.0,             1};
    int quarter = (int)(u * 4 + 0.5).v;
    exact x = (u * 4 - (double)quarter) * 0x1.921fb54442d18p0;
    exact cs = horner(even, x * x), sn = horner(odd, x * x) * x;
    bool swap = quarter & 1;
    exact a = swap ? sn : cs, b = swap ? cs : sn;
    *c = (quarter + 1) & 2 ? -a.v : a.v;
    *s = quarter & 2 ? -b.v : b.v;
}

/* Both numbers of Box and Muller's pair. */
static __device__ void normals(const uint64_t *words, exact *out)
{
    exact r = __dsqrt_rn((exact(-2) * log_unit(exact(1) - unit(words[0]))).v), c, s;
    turn(unit(words[1]), &c, &s);
    out[0] = r * c;
    out[1] = r * s;
}

static __device__ exact normal_at(const session_gpu_draw_args &a, uint64_t i)
{
    uint64_t words[2];
    exact pair[2];
    philox(a.seed, a.stream, i / 2, words);
    normals(words, pair);
    return pair[i & 1];
}

static __device__ uint64_t word_at(const session_gpu_draw_args &a, uint64_t i)
{
    uint64_t words[2];
    philox(a.seed, a.stream, i / 2, words);
    return words[i & 1];
}

/* Kinds whose elements don't come from their own word. */
static __device__ exact plain_value(const session_gpu_draw_args &a, uint64_t i)
{
    switch (a.kind) {
    case SESSION_ONES:
        return 1;
    case SESSION_EQUAL_ROWS:
        return normal_at(a, i / a.last);
    case SESSION_ONEHOT_ROWS:
        return word_at(a, i / a.last) % a.last == i % a.last ? 30 : 0;
    case SESSION_RAMP:
        return (exact((double)(i % 97)) - 48) / 16;
    default:
        return 0;
    }
}

static __device__ bool from_words(uint32_t kind)
{
    return kind <= SESSION_SMALL || kind == SESSION_INTEGERS;
}

static __device__ exact word_value(uint32_t kind, uint64_t word)
{
    if (kind == SESSION_UNIFORM)
        return unit(word);
    if (kind == SESSION_SIGNED)
        return exact(2) * unit(word) - 1;
    return exact((double)(int64_t)(word % 17)) - 8;
}

/* Elements 2 pair and 2 pair + 1 before scale and shift. */
static __device__ void draw_pair(const session_gpu_draw_args &a, uint64_t pair, exact *out)
{
    uint64_t words[2];
    if (!from_words(a.kind)) {
        out[0] = plain_value(a, 2 * pair);
        out[1] = plain_value(a, 2 * pair + 1);
        return;
    }
    philox(a.seed, a.stream, pair, words);
    if (a.kind == SESSION_UNIFORM || a.kind == SESSION_SIGNED || a.kind == SESSION_INTEGERS) {
        out[0] = word_value(a.kind, words[0]);
        out[1] = word_value(a.kind, words[1]);
        return;
    }
    normals(words, out);
    exact add = a.kind == SESSION_OFFSET ? 1000 : 0;
    exact times = a.kind == SESSION_LARGE ? 1e4 : 1e-6;
    for (int k = 0; k < 2; k++)
        if (a.kind == SESSION_OFFSET)
            out[k] = add + out[k];
        else if (a.kind != SESSION_NORMAL)
            out[k] = times * out[k];
}

/* The same for bool: a fair bit, or whether the value is not zero. */
static __device__ void draw_bools(const session_gpu_draw_args &a, uint64_t pair, exact *out)
{
    for (int k = 0; k < 2; k++) {
        uint64_t i = 2 * pair + k;
        if (from_words(a.kind))
            out[k] = (double)(word_at(a, i) & 1);
        else if (a.kind == SESSION_EQUAL_ROWS)
            out[k] = (double)(word_at(a, i / a.last) & 1);
        else
            out[k] = plain_value(a, i).v != 0 ? 1 : 0;
    }
}

static __device__ inline bool same_bits(double x, double y)
{
    return __double_as_longlong(x) == __double_as_longlong(y);
}
static __device__ inline bool same_bits(float x, float y)
{
    return __float_as_int(x) == __float_as_int(y);
}
template <class T> static __device__ inline bool same_bits(T x, T y)
{
    return x == y;
}

/* Stores two elements, or tells whether they lie there already. The last pair may be one element. */
template <class T>
static __device__ bool meet(const session_gpu_draw_args &a, uint64_t pair, T x, T y, bool store)
{
    T *at = (T *)a.range + 2 * pair;
    bool both = 2 * pair + 1 < a.n;
    if (!store)
        return same_bits(at[0], x) && (!both || same_bits(at[1], y));
    struct alignas(2 * sizeof(T)) two {
        T x, y;
    };
    if (both && a.range % sizeof(two) == 0) {
        *(two *)at = two{x, y};
    } else {
        at[0] = x;
        if (both)
            at[1] = y;
    }
    return true;
}

#define MEET(type, value)                                                                          \
    {                                                                                              \
        double v = x;                                                                              \
        type first = (type)(value);                                                                \
        v = y;                                                                                     \
        return meet<type>(a, pair, first, (type)(value), store);                                   \
    }

static __device__ bool meet_any(const session_gpu_draw_args &a, uint64_t pair, double x, double y,
                                bool store)
{
    switch (a.dtype) {
    case F64:
        MEET(double, v);
    case F32:
        MEET(float, single_of(v));
    case F16:
        MEET(uint16_t, narrow_of(v, NARROW_HALF));
    case BF16:
        MEET(uint16_t, narrow_of(v, NARROW_BRAIN));
    case I8:
        MEET(int8_t, whole_of(v, -128, 128));
    case U8:
        MEET(uint8_t, whole_of(v, 0, 256));
    case BOOL:
        MEET(uint8_t, v != 0);
    case I32:
        MEET(int32_t, whole_of(v, -0x1p31, 0x1p31));
    default:
        MEET(int64_t, whole_of(v, -0x1p63, 0x1p63));
    }
}

static __device__ void all_pairs(const session_gpu_draw_args &a, bool store)
{
    uint64_t step = (uint64_t)gridDim.x * blockDim.x, pairs = (a.n + 1) / 2;
    bool same = true;
    for (uint64_t p = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; p < pairs; p += step) {
        exact v[2];
        if (a.dtype == BOOL)
            draw_bools(a, p, v);
        else
            draw_pair(a, p, v);
        for (int k = 0; k < 2; k++)
            v[k] = v[k] * a.scale + a.shift;
        same &= meet_any(a, p, v[0].v, v[1].v, store);
    }
    if (!same)
        atomicAdd((uint64_t *)a.differs, 1ull);
}

extern "C" __global__ void __launch_bounds__(SESSION_GPU_THREADS)
    session_draw(session_gpu_draw_args a)
{
    all_pairs(a, true);
}

extern "C" __global__ void __launch_bounds__(SESSION_GPU_THREADS)
    session_same(session_gpu_draw_args a)
{
    all_pairs(a, false);
}

struct alignas(16) sixteen {
    uint64_t low, high;
};
static __device__ inline bool equal(sixteen x, sixteen y)
{
    return x.low == y.low && x.high == y.high;
}
static __device__ inline bool equal(uint32_t x, uint32_t y)
{
    return x == y;
}

/* One range of `a` a blockIdx.y. */
template <class T> static __device__ bool equal_bytes(const session_gpu_bytes_args &g)
{
    const T *a = (const T *)(g.a + blockIdx.y * g.stride), *b = (const T *)g.b;
    uint64_t step = (uint64_t)gridDim.x * blockDim.x, n = g.bytes / sizeof(T);
    bool same = true;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        same &= equal(a[i], b[i]);
    return same;
}

extern "C" __global__ void __launch_bounds__(SESSION_GPU_THREADS)
    session_same_bytes(session_gpu_bytes_args g)
{
    bool same = g.width == 16  ? equal_bytes<sixteen>(g)
                : g.width == 4 ? equal_bytes<uint32_t>(g)
                               : equal_bytes<uint8_t>(g);
    if (!same)
        atomicAdd((uint64_t *)g.differs, 1ull);
}
