/*
 * Which shapes and inputs a check runs. Shapes: those of the task, and, where the task asks for all
 * dims, awkward ones: ones, primes, one beside powers of two, and others at random. All choices
 * follow from the option `seed`, which a candidate never sees.
 */
#include "numeric.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SHAPES = 256, DRAWS_LIMIT = 16 << 20, HARD_LIMIT = 512 << 10, ALIGNED_LIMIT = 4 << 20 };

/* Where the task's own shape ends: a derived shape, or one of the task. */
struct shape {
    int64_t *dims;
    double cost;
    int own;  /* of the task */
    int part; /* too dear to be compared whole */
};

struct shapes {
    struct shape list[MAX_SHAPES];
    uint32_t n;
    double limit;
};

/* splitmix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014). */
uint64_t numeric_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t pick(uint64_t *state, const int64_t *from, uint64_t n)
{
    return from[numeric_next(state) % n];
}

/*
 * Elements of all tensors, and the operations; 0 of these where the reference counts none.
 * RUNG_ECONFIG where the graph has no meaning at these dims, such as a window wider than its input:
 * nothing can be asked of a kernel there.
 */
static int32_t sizes_of(const struct numeric_check *k, const int64_t *dims, double *elements,
                        double *flops)
{
    const struct rung_task *task = k->session->task;
    struct rung_work work = {.struct_size = sizeof work};
    int64_t shape[RUNG_MAX_DIMS];
    *elements = *flops = 0;
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        double n = 1;
        if (k->session->shape(k->session, i, dims, shape))
            return RUNG_EINVAL;
        for (uint32_t d = 0; d < task->tensors[i].n_dims; d++)
            n *= (double)shape[d];
        *elements += n;
    }
    int32_t status = k->session->work(k->session, k->call, dims, &work);
    if (status)
        k->call->error->code = RUNG_OK;
    else
        *flops = work.flops;
    return status == RUNG_ECONFIG ? status : RUNG_OK;
}

/* Elements of all tensors, or half the operations where these are more. */
static int32_t cost_of(const struct numeric_check *k, const int64_t *dims, double *cost)
{
    double flops;
    int32_t status = sizes_of(k, dims, cost, &flops);
    if (!status && flops / 2 > *cost)
        *cost = flops / 2;
    return status;
}

/* The reference takes about 32 operations an element even where the task has none. */
static int too_dear(const struct numeric_check *k, const int64_t *dims)
{
    double elements, flops;
    return !sizes_of(k, dims, &elements, &flops) &&
           (flops > k->self->whole || elements > k->self->whole / 32);
}

static int known(const struct shapes *s, const int64_t *dims, uint32_t n_dims)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (!memcmp(s->list[i].dims, dims, n_dims * sizeof *dims))
            return 1;
    return 0;
}

/* Adds a shape unless it is there already or the list is full; the dims are copied. */
static int32_t add_shape(const struct numeric_check *k, struct shapes *s, const int64_t *dims,
                         double cost, int own)
{
    uint32_t n_dims = k->session->task->n_dims;
    if (s->n == MAX_SHAPES || known(s, dims, n_dims))
        return RUNG_OK;
    int64_t *copy = numeric_alloc(k, (n_dims + 1) * sizeof *copy);
    if (!copy)
        return RUNG_ENOMEM;
    memcpy(copy, dims, n_dims * sizeof *copy);
    s->list[s->n++] = (struct shape){copy, cost, own, too_dear(k, dims)};
    return RUNG_OK;
}

/* Task shapes within the limit; *cheapest is the cheapest of those beyond it. */
static int32_t add_task_shapes(const struct numeric_check *k, struct shapes *s, uint32_t n,
                               const struct rung_shape_case *from, struct shape *cheapest)
{
    for (uint32_t i = 0; i < n; i++) {
        double cost;
        int32_t status = cost_of(k, from[i].dims, &cost);
        /* A graph that fails at the task's own dims is no reason to check less: the run tells it.
         */
        if (status && status != RUNG_ECONFIG)
            continue;
        status = RUNG_OK;
        if (cost <= s->limit)
            status = add_shape(k, s, from[i].dims, cost, 1);
        else if (!cheapest->dims || cost < cheapest->cost)
            *cheapest = (struct shape){(int64_t *)from[i].dims, cost, 1, 0};
        if (status)
            return status;
    }
    return RUNG_OK;
}

/* The nearest value that the dim allows. */
static int64_t snap(const struct rung_dim *dim, int64_t value)
{
    int64_t m = dim->multiple_of > 0 ? dim->multiple_of : 1, low = dim->min > 1 ? dim->min : 1;
    int64_t first = (low + m - 1) / m * m, last = dim->max / m * m;
    value = (value + m - 1) / m * m;
    value = value > last ? last : value;
    return value < first ? first : value;
}

/* A value for a dim: size 0 tiny, 1 up to some hundred, 2 near the task's own value or a thousand.
 */
static int64_t draw_dim(const struct rung_dim *dim, int size, uint64_t *state)
{
    static const int64_t tiny[] = {1, 2, 3, 5, 7};
    static const int64_t primes[] = {13, 31, 61, 97, 127, 251, 257, 509};
    int64_t one = (int64_t)(numeric_next(state) % 2) * 2 - 1;
    if (size == 0)
        return snap(dim, pick(state, tiny, 5));
    if (size == 1)
        return snap(dim, numeric_next(state) % 2 ? pick(state, primes, 8)
                                                 : (1 << (4 + numeric_next(state) % 5)) + one);
    switch (numeric_next(state) % 3) {
    case 0:
        return snap(dim, dim->value > 1 ? dim->value + one : 2);
    case 1:
        return snap(dim, (1 << (9 + numeric_next(state) % 4)) + one);
    default:
        return snap(dim, 300 + (int64_t)(numeric_next(state) % 4000));
    }
}

/* One awkward shape: all least; one dim large and the others tiny (in turn); then anything. */
static void draw_dims(const struct rung_task *task, uint32_t index, uint64_t *state, int64_t *dims)
{
    uint32_t n_free = 0, turn = 0;
    for (uint32_t i = 0; i < task->n_dims; i++)
        n_free += !task->dims[i].derived;
    for (uint32_t i = 0; i < task->n_dims; i++) {
        const struct rung_dim *dim = &task->dims[i];
        int size = (int)(numeric_next(state) % 3);
        dims[i] = dim->value;
        if (dim->derived)
            continue;
        if (index == 0)
            dims[i] = snap(dim, 1);
        else if (index <= n_free) /* the last dim comes first: rows end there */
            dims[i] = draw_dim(dim, turn == n_free - index ? 2 : 0, state);
        else
            dims[i] = draw_dim(dim, size, state);
        turn++;
    }
}

/*
 * All dims the same power of two. Fast paths for whole tiles often compute in another way than the
 * general one; the task's own aligned shapes are so large that bounds say little there.
 */
static int32_t add_aligned(const struct numeric_check *k, struct shapes *s, double limit)
{
    const struct rung_task *task = k->session->task;
    int64_t *dims = numeric_alloc(k, (task->n_dims + 1) * sizeof *dims);
    double cost;
    if (!dims)
        return RUNG_ENOMEM;
    for (int64_t each = 256; each >= 8; each /= 2) {
        for (uint32_t i = 0; i < task->n_dims; i++)
            dims[i] = task->dims[i].derived ? task->dims[i].value : snap(&task->dims[i], each);
        if (!k->session->complete_dims(k->session, dims) && !cost_of(k, dims, &cost) &&
            cost <= limit)
            return add_shape(k, s, dims, cost, 0);
    }
    return RUNG_OK;
}

/* Halves the largest free dim; 0 when none can shrink. */
static int shrink(const struct rung_task *task, int64_t *dims)
{
    int64_t *largest = NULL, smaller = 0;
    for (uint32_t i = 0; i < task->n_dims; i++) {
        int64_t half = snap(&task->dims[i], dims[i] / 2 | 1);
        if (!task->dims[i].derived && half < dims[i] && (!largest || dims[i] > *largest)) {
            largest = &dims[i];
            smaller = half;
        }
    }
    if (largest)
        *largest = smaller;
    return largest != NULL;
}

static int32_t add_awkward(const struct numeric_check *k, struct shapes *s, uint32_t index,
                           uint64_t *state)
{
    const struct rung_task *task = k->session->task;
    int64_t *dims = numeric_alloc(k, (task->n_dims + 1) * sizeof *dims);
    if (!dims)
        return RUNG_ENOMEM;
    for (int attempt = 0; attempt < 8; attempt++) {
        double cost;
        draw_dims(task, index, state, dims);
        for (int i = 0; i < 64; i++) {
            if (k->session->complete_dims(k->session, dims) || cost_of(k, dims, &cost))
                break;
            if (cost <= s->limit && cost <= (double)DRAWS_LIMIT)
                return add_shape(k, s, dims, cost, 0);
            if (!shrink(task, dims))
                break;
        }
    }
    return RUNG_OK;
}

static int by_cost(const void *a, const void *b)
{
    double x = ((const struct shape *)a)->cost, y = ((const struct shape *)b)->cost;
    return (x > y) - (x < y);
}

static int32_t choose_shapes(const struct numeric_check *k, struct shapes *s, uint64_t *state)
{
    const struct rung_task *task = k->session->task;
    int range = task->shape_rule == RUNG_SHAPES_RANGE;
    struct shape cheapest = {0};
    int32_t status = add_task_shapes(k, s, task->n_bench, task->bench, &cheapest);
    if (!status && (range || !s->n))
        status = add_task_shapes(k, s, task->n_extra, task->extra, &cheapest);
    if (range && !status && k->self->shapes)
        status = add_aligned(k, s, s->limit < ALIGNED_LIMIT ? s->limit : ALIGNED_LIMIT);
    for (uint32_t i = 0; range && !status && i + 1 < k->self->shapes; i++)
        status = add_awkward(k, s, i, state);
    if (!status && !s->n && cheapest.dims) /* nothing is affordable: something must be run */
        status = add_shape(k, s, cheapest.dims, cheapest.cost, 1);
    qsort(s->list, s->n, sizeof s->list[0], by_cost);
    return status;
}

/* ---- fills ---- */

static const char *const hard_fills[] = {"offset",      "large", "small", "equal_rows",
                                         "onehot_rows", "zeros", "ones"};
enum { N_HARD = sizeof hard_fills / sizeof *hard_fills };

static int drawn_freely(const struct rung_tensor_spec *t)
{
    return (t->role == RUNG_ROLE_INPUT || t->role == RUNG_ROLE_INOUT) && t->dtype < RUNG_I8;
}

/*
 * An input that its author draws as normal takes any fill. One of another kind keeps its sign and
 * range of meaning (a probability, a positive divisor): it is only moved or scaled.
 */
static int override(const struct rung_tensor_spec *t, const char *kind, struct rung_fill *fill)
{
    int normal = !t->fill || !strcmp(t->fill, "normal");
    if (normal || !strcmp(kind, "zeros") || !strcmp(kind, "ones") || !strcmp(kind, "onehot_rows"))
        fill->kind = kind;
    else if (!strcmp(kind, "offset"))
        fill->shift = 1000;
    else if (!strcmp(kind, "large"))
        fill->scale = 1e4;
    else if (!strcmp(kind, "small"))
        fill->scale = 1e-6;
    else
        return 0;
    return 1;
}

uint32_t numeric_fills(const struct rung_task *task, const struct numeric_case *c,
                       struct rung_fill *fills)
{
    uint32_t n = 0;
    for (uint32_t i = 0; c->fill && i < task->n_tensors; i++) {
        struct rung_fill fill = {.struct_size = sizeof fill, .tensor = i};
        if (drawn_freely(&task->tensors[i]) && override(&task->tensors[i], c->fill, &fill))
            fills[n++] = fill;
    }
    return n;
}

/* ---- cases ---- */

/* Poison of even seeds is NaN, which is found in an output that is not compared whole. */
static struct numeric_case one_case(const struct shape *shape, const char *fill, uint64_t *state)
{
    uint64_t seed = numeric_next(state);
    return (struct numeric_case){.dims = shape->dims,
                                 .fill = fill,
                                 .seed = shape->part ? seed & ~UINT64_C(1) : seed,
                                 .repeats = 1,
                                 .part = (uint32_t)shape->part,
                                 .of_task = (uint32_t)shape->own,
                                 .cost = shape->cost};
}

/* The largest shape of at most `limit`, or the first. */
static uint32_t largest_within(const struct shapes *s, double limit)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < s->n; i++)
        if (s->list[i].cost <= limit)
            best = i;
    return best;
}

/* Own fills: `seeds` draws at shapes of the task (one where a draw is dear), one elsewhere. */
static int32_t own_cases(const struct numeric_check *k, const struct shapes *s, uint64_t *state,
                         struct numeric_cases *out)
{
    uint32_t pair = largest_within(s, HARD_LIMIT), few = largest_within(s, 4096);
    out->own = numeric_alloc(k, s->n * (uint64_t)k->self->seeds * sizeof *out->own);
    if (!out->own)
        return RUNG_ENOMEM;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t draws =
            s->list[i].own && s->list[i].cost <= (double)DRAWS_LIMIT ? k->self->seeds : 1;
        if (i == pair)
            out->twice = &out->own[out->n_own];
        if (i == few)
            out->small = &out->own[out->n_own];
        while (draws--)
            out->own[out->n_own++] = one_case(&s->list[i], NULL, state);
    }
    return RUNG_OK;
}

/* Structured fills at two shapes: a small one and one of some hundred thousand elements. */
static int32_t hard_cases(const struct numeric_check *k, const struct shapes *s, uint64_t *state,
                          struct numeric_cases *out)
{
    const struct rung_task *task = k->session->task;
    uint32_t at[2] = {largest_within(s, 4096), largest_within(s, HARD_LIMIT)}, freely = 0;
    for (uint32_t i = 0; i < task->n_tensors; i++)
        freely += drawn_freely(&task->tensors[i]);
    out->hard = numeric_alloc(k, 2 * N_HARD * sizeof *out->hard);
    if (!out->hard)
        return RUNG_ENOMEM;
    for (int i = 0; freely && i < (at[0] == at[1] ? 1 : 2); i++)
        for (int f = 0; f < N_HARD; f++)
            out->hard[out->n_hard++] = one_case(&s->list[at[i]], hard_fills[f], state);
    return RUNG_OK;
}

int32_t numeric_choose(const struct numeric_check *k, struct numeric_cases *out)
{
    uint64_t state = k->self->seed;
    struct shapes *s = numeric_alloc(k, sizeof *s);
    *out = (struct numeric_cases){0};
    if (!s)
        return RUNG_ENOMEM;
    s->limit = (double)k->self->max_elements;
    if (!k->self->max_elements)
        s->limit = k->session->device->flags & RUNG_DEVICE_MEASURES ? 1e15 : 4 << 20;
    int32_t status = choose_shapes(k, s, &state);
    out->n_shapes = s->n;
    if (!status && s->n)
        status = own_cases(k, s, &state, out);
    if (!status && s->n)
        status = hard_cases(k, s, &state, out);
    return status;
}
