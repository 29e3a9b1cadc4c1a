/*
 * Blocking and bounds of matrix products. A work item is a tile of C; its thread packs the panels
 * of A and B that it needs, block by block of k, and runs the innermost loop over values, absolute
 * values, and absolute values with errors.
 */
#include "dot.h"
#include "gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements; multiples of every micro tile. Three sums of a tile stay in a 2 MB cache. */
enum { TILE = 192, BLOCK_K = 192, SUMS = 3 };

struct job {
    const struct ops_gemm *g;
    const struct ops_micro *micro;
    const struct ops_arith *ar;
    int64_t rows;     /* of a micro tile: 1 for products of one row */
    int64_t tile_n;   /* columns of a work item */
    int n_sums;       /* 2 without errors */
    int64_t tiles[2]; /* of C: along m and n */
    _Atomic int failed;
};

/* One thread's memory. */
struct work {
    double *a[SUMS], *b[SUMS], *c[SUMS]; /* value, |value|, |value| + error */
    double *v, *e;                       /* a run as the callbacks give it */
    double *in_row, *in_column;          /* elements that are not exactly zero */
    struct ops_num *result;
};

static int open_work(struct work *w)
{
    size_t panel = (size_t)TILE * BLOCK_K, tile = (size_t)TILE * TILE;
    double *all = aligned_alloc(64, (SUMS * (2 * panel + tile) + 2 * TILE) * sizeof *all);
    double *counts = malloc(2 * TILE * sizeof *counts);
    struct ops_num *result = malloc(TILE * sizeof *result);
    for (int s = 0; all && s < SUMS; s++) {
        w->a[s] = all + (size_t)s * panel;
        w->b[s] = all + (size_t)(SUMS + s) * panel;
        w->c[s] = all + 2 * SUMS * panel + (size_t)s * tile;
    }
    w->v = all ? all + SUMS * (2 * panel + tile) : NULL;
    w->e = w->v ? w->v + TILE : NULL;
    w->in_row = counts;
    w->in_column = counts ? counts + TILE : NULL;
    w->result = result;
    return all && counts && result;
}

static void close_work(struct work *w)
{
    free(w->a[0]);
    free(w->in_row);
    free(w->result);
}

/* Part of C that an item covers, and the block of k at hand. */
struct tile {
    int64_t batch, i0, m, j0, n, k0, k;
};

/* Rows of A into panels of `rows` interleaved rows; missing rows of the last panel stay as they
 * are, for their results are not read. */
static void pack_a(const struct job *j, const struct work *w, const struct tile *t)
{
    const struct ops_gemm *g = j->g;
    for (int64_t i = 0; i < t->m; i++) {
        int64_t at = i / j->rows * j->rows * t->k + i % j->rows;
        double *v = w->a[0] + at, *size = w->a[1] + at, *high = w->a[2] + at, count = 0;
        struct ops_run run = g->row(g->ctx, t->batch, t->i0 + i, t->k0, t->k, w->v, w->e);
        for (int64_t k = 0; k < t->k; k++) {
            v[k * j->rows] = run.v[k];
            size[k * j->rows] = fabs(run.v[k]);
            count += run.v[k] != 0 || (run.e && run.e[k] != 0);
        }
        for (int64_t k = 0; j->n_sums > 2 && k < t->k; k++)
            high[k * j->rows] = fabs(run.v[k]) + (run.e ? run.e[k] : 0);
        w->in_row[i] += count;
    }
}

static void count_columns(const struct ops_run *run, double *counts, int64_t n)
{
    for (int64_t x = 0; x < n; x++)
        counts[x] += run->v[x] != 0 ? 1.0 : 0.0;
    for (int64_t x = 0; run->e && x < n; x++)
        counts[x] += run->v[x] == 0 && run->e[x] != 0 ? 1.0 : 0.0;
}

/* Rows of B into panels of `columns` columns. */
static void pack_b(const struct job *j, const struct work *w, const struct tile *t)
{
    const struct ops_gemm *g = j->g;
    int64_t width = j->micro->columns;
    for (int64_t k = 0; k < t->k; k++) {
        struct ops_run run = g->line(g->ctx, t->batch, t->k0 + k, t->j0, t->n, w->v, w->e);
        count_columns(&run, w->in_column, t->n);
        for (int64_t x = 0; x < t->n; x += width) {
            int64_t n = t->n - x < width ? t->n - x : width, at = x * t->k + k * width;
            double *v = w->b[0] + at, *size = w->b[1] + at, *high = w->b[2] + at;
            for (int64_t c = 0; c < n; c++) {
                v[c] = run.v[x + c];
                size[c] = fabs(run.v[x + c]);
            }
            for (int64_t c = 0; j->n_sums > 2 && c < n; c++)
                high[c] = fabs(run.v[x + c]) + (run.e ? run.e[x + c] : 0);
        }
    }
}

static void multiply(const struct job *j, const struct work *w, const struct tile *t)
{
    void (*f)(int64_t, const double *, const double *, double *, int64_t) =
        j->rows == 1 ? j->micro->single : j->micro->full;
    for (int s = 0; s < j->n_sums; s++)
        for (int64_t x = 0; x < t->n; x += j->micro->columns)
            for (int64_t i = 0; i < t->m; i += j->rows)
                f(t->k, w->a[s] + i * t->k, w->b[s] + x * t->k, w->c[s] + i * TILE + x, TILE);
}

static void store(const struct job *j, const struct work *w, const struct tile *t)
{
    for (int64_t i = 0; i < t->m; i++) {
        const double *v = w->c[0] + i * TILE, *size = w->c[1] + i * TILE;
        const double *high = w->c[j->n_sums - 1] + i * TILE;
        for (int64_t x = 0; x < t->n; x++) {
            double terms = w->in_row[i] < w->in_column[x] ? w->in_row[i] : w->in_column[x];
            w->result[x] = ops_dot(v[x], size[x], high[x], terms, j->ar);
        }
        j->g->store(j->g->ctx, t->batch, t->i0 + i, t->j0, t->n, w->result);
    }
}

static void one_item(const struct job *j, const struct work *w, uint64_t item)
{
    const struct ops_gemm *g = j->g;
    int64_t at = (int64_t)item, tile_i = at % j->tiles[0];
    struct tile t = {.batch = at / j->tiles[0] / j->tiles[1],
                     .i0 = tile_i * TILE,
                     .j0 = at / j->tiles[0] % j->tiles[1] * j->tile_n};
    t.m = g->m - t.i0 < TILE ? g->m - t.i0 : TILE;
    t.n = g->n - t.j0 < j->tile_n ? g->n - t.j0 : j->tile_n;
    int64_t used = (t.m + j->rows - 1) / j->rows * j->rows;
    for (int s = 0; s < j->n_sums; s++)
        memset(w->c[s], 0, (size_t)used * TILE * sizeof(double));
    memset(w->in_row, 0, 2 * TILE * sizeof *w->in_row);
    for (t.k0 = 0; t.k0 < g->k; t.k0 += BLOCK_K) {
        t.k = g->k - t.k0 < BLOCK_K ? g->k - t.k0 : BLOCK_K;
        pack_a(j, w, &t);
        pack_b(j, w, &t);
        multiply(j, w, &t);
    }
    store(j, w, &t);
}

static void run_items(void *ctx, uint64_t first, uint64_t end)
{
    struct job *j = ctx;
    struct work w = {0};
    j->failed |= !open_work(&w);
    for (uint64_t i = first; !j->failed && i < end; i++)
        one_item(j, &w, i);
    close_work(&w);
}

int32_t ops_gemm_run(struct ops_eval *ev, const struct ops_gemm *g)
{
    uint32_t n_micro;
    struct job job = {.g = g,
                      .micro = ops_micro_list(&n_micro),
                      .ar = &ev->arith,
                      .n_sums = g->with_errors ? 3 : 2,
                      .tile_n = TILE};
    job.rows = g->m == 1 ? 1 : job.micro->rows;
    job.tiles[0] = (g->m + TILE - 1) / TILE;
    while (job.tile_n > 48 && g->batch * job.tiles[0] * (g->n / job.tile_n + 1) < 2 * ev->threads)
        job.tile_n /= 2;
    job.tiles[1] = (g->n + job.tile_n - 1) / job.tile_n;
    double each = (double)g->k * (double)(g->m < TILE ? g->m : TILE) * (double)job.tile_n;
    uint64_t grain = (uint64_t)(16 * OPS_GRAIN / each) + 1;
    ops_parallel(ev->threads, (uint64_t)(g->batch * job.tiles[0] * job.tiles[1]), grain, run_items,
                 &job);
    return job.failed ? ops_no_memory(&ev->who) : RUNG_OK;
}
