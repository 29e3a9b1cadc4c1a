/*
 * State that outlives a launch: counters that nobody sets back, results kept for later calls. All
 * cases have passed when this runs, each from variables as the code says, so what goes wrong here
 * comes from what an earlier launch left behind; a failure that a fresh start shows too is told as
 * an ordinary one.
 */
#include "numeric.h"

#include <stdlib.h>
#include <string.h>

enum {
    MANY = 64,
    MANY_COST = 1 << 16,
    DEAR_COST = 1 << 20,
    SWAPS = 3,
    MOST_EXCHANGED = 1 << 26, /* elements of a tensor */
    LONGEST_MS = 2000,        /* many launches of what is dear */
};

static const char not_first[] =
    " The first launch is right on the same inputs: something that a launch leaves behind makes "
    "later ones wrong, such as a counter or a flag in a __device__ variable that is not set back "
    "before the kernel ends.";
static const char stale[] =
    " The same launch is right where it is the first: the kernel keeps something of earlier calls "
    "in a __device__ variable, and takes it for a result of these inputs.";

int32_t numeric_tell(struct numeric_check *k, const struct numeric_stage *s, const char *why)
{
    if (s->first[UNWRITTEN].detail)
        return numeric_fail(k, &s->first[UNWRITTEN], "output.unwritten", why);
    if (s->first[NONFINITE].detail)
        return numeric_fail(k, &s->first[NONFINITE], "output.nonfinite", why);
    return numeric_fail(k, s->first[WRONG].detail ? &s->first[WRONG] : &s->first[HALF],
                        "numeric.mismatch", why);
}

static int32_t judge_alone(struct numeric_check *k, const struct numeric_case *c,
                           struct numeric_stage *s, int *ended)
{
    struct rung_run *run;
    int32_t status = numeric_start(k, c, &run);
    if (!status)
        status = numeric_judge_run(k, c, run, s, NULL, ended);
    k->session->end(k->session, run);
    return status;
}

/*
 * One case that depends on what was before it. When it fails, the same from a fresh start decides
 * what is said.
 */
static int32_t judge_later(struct numeric_check *k, const struct numeric_case *c, const char *why,
                           int *ended)
{
    struct numeric_stage later = {0}, fresh = {0};
    struct numeric_case alone = *c;
    int32_t status = judge_alone(k, c, &later, ended);
    if (status || *ended || !later.n_failed)
        return status;
    alone.repeats = 1;
    alone.keeps_state = alone.in_a_row = 0;
    status = judge_alone(k, &alone, &fresh, ended);
    if (status || *ended)
        return status;
    *ended = 1;
    return fresh.n_failed ? numeric_tell(k, &fresh, "") : numeric_tell(k, &later, why);
}

/* ---- Launches in a row ---- */

/* Launches with nothing of ours between them but fresh poison; the last is compared. */
static int32_t judge_row(struct numeric_check *k, const struct numeric_case *from, uint64_t repeats,
                         int *ended)
{
    struct numeric_case c = *from;
    c.repeats = (uint32_t)repeats;
    return judge_later(k, &c, not_first, ended);
}

/* Many launches of a small case, each compared: a kernel may be right for some time. */
static int32_t judge_each(struct numeric_check *k, const struct numeric_case *from, int *ended)
{
    struct numeric_case c = *from;
    int32_t status = RUNG_OK;
    for (c.in_a_row = 1; c.in_a_row <= MANY && !status && !*ended; c.in_a_row++) {
        status = judge_later(k, &c, not_first, ended);
        c.keeps_state = 1;
    }
    return status;
}

/* The same where no case is small: as many as some seconds allow, on a device that is fast. */
static int32_t judge_many(struct numeric_check *k, const struct numeric_case *small, int *ended)
{
    uint64_t most = k->launch_ns ? LONGEST_MS * UINT64_C(1000000) / k->launch_ns : MANY;
    if (small->cost <= MANY_COST)
        return judge_each(k, small, ended);
    most = most < MANY ? most : MANY;
    if (!(k->session->device->flags & RUNG_DEVICE_MEASURES) || most <= 2)
        return RUNG_OK;
    return judge_row(k, small, most, ended);
}

/* ---- Other inputs ---- */

static void swap(char *bytes, uint64_t size, uint64_t i, uint64_t j)
{
    char t[8];
    memcpy(t, bytes + i * size, size);
    memcpy(bytes + i * size, bytes + j * size, size);
    memcpy(bytes + j * size, t, size);
}

/*
 * The inputs of a finished run, in each a few elements exchanged: a cache that knows its inputs by
 * some of their elements, or by their sum, takes these for the same.
 */
static int32_t exchange(struct numeric_check *k, struct rung_run *run, uint64_t state,
                        struct numeric_case *out)
{
    const struct rung_task *task = k->session->task;
    struct rung_fill *fills = numeric_alloc(k, (task->n_tensors + 1) * sizeof *fills);
    if (!fills)
        return RUNG_ENOMEM;
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        struct rung_tensor_view view = {.struct_size = sizeof view};
        uint64_t n = 1, size = rung_dtype_bits(task->tensors[i].dtype) / 8;
        if (task->tensors[i].role != RUNG_ROLE_INPUT && task->tensors[i].role != RUNG_ROLE_WEIGHT)
            continue;
        int32_t status = k->session->map(k->session, k->call, run, i, &view);
        if (status)
            return status;
        for (uint32_t d = 0; d < view.n_dims; d++)
            n *= (uint64_t)view.dims[d];
        if (n > MOST_EXCHANGED)
            continue;
        char *bytes = numeric_alloc(k, n * size);
        if (!bytes)
            return RUNG_ENOMEM;
        memcpy(bytes, view.data, n * size);
        for (int s = 0; s < SWAPS; s++)
            swap(bytes, size, numeric_next(&state) % n, numeric_next(&state) % n);
        fills[out->n_exact++] = (struct rung_fill){
            .struct_size = sizeof *fills, .tensor = i, .bytes = bytes, .n_bytes = n * size};
    }
    out->exact = fills;
    return RUNG_OK;
}

/* The first run of the row starts afresh; *next is the case that follows. */
static int32_t judge_first(struct numeric_check *k, const struct numeric_case *c,
                           struct numeric_case *next, int *ended)
{
    struct rung_run *run;
    struct numeric_stage s = {0};
    *next = *c;
    next->keeps_state = 1;
    next->says = ", on the inputs of the run before with a few elements exchanged";
    int32_t status = numeric_start(k, c, &run);
    if (!status)
        status = numeric_judge_run(k, c, run, &s, NULL, ended);
    if (!status && !*ended && !s.n_failed)
        status = exchange(k, run, c->seed, next);
    k->session->end(k->session, run);
    if (status || *ended || !s.n_failed)
        return status;
    *ended = 1; /* it passed before: another result each time */
    return numeric_tell(k, &s, "");
}

/* Almost the same inputs, another shape, and quite other inputs of the first. */
static int32_t judge_kept(struct numeric_check *k, const struct numeric_cases *cases, int *ended)
{
    struct numeric_case exchanged, small = *cases->small, other = *cases->twice;
    int32_t status = judge_first(k, cases->twice, &exchanged, ended);
    small.keeps_state = other.keeps_state = 1;
    other.seed += 2; /* of the same kind of poison */
    if (!status && !*ended)
        status = judge_later(k, &exchanged, stale, ended);
    if (!status && !*ended && cases->small != cases->twice)
        status = judge_later(k, &small, stale, ended);
    if (!status && !*ended)
        status = judge_later(k, &other, stale, ended);
    return status;
}

int32_t numeric_state(struct numeric_check *k, const struct numeric_cases *cases, int *ended)
{
    int measures = (k->session->device->flags & RUNG_DEVICE_MEASURES) != 0;
    int32_t status = judge_row(k, cases->twice, 2, ended);
    if (!status && !*ended)
        status = judge_many(k, cases->small, ended);
    if (!status && !*ended && (measures || cases->twice->cost <= DEAR_COST))
        status = judge_kept(k, cases, ended);
    return status;
}
