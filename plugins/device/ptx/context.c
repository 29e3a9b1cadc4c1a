/*
 * context.c - see context.h.
 */
#include "context.h"
#include "shadow.h"

#include <stdlib.h>
#include <string.h>

static uint64_t frame_bytes(const struct ptx_exec *x)
{
    return (x->program->frame_bytes + 63) / 64 * 64;
}

static uint64_t local_bytes(const struct ptx_exec *x)
{
    return x->program->local_bytes * PTX_LANES;
}

uint64_t ptx_context_bytes(const struct ptx_exec *common, uint64_t shared_bytes)
{
    return common->n_warps * (frame_bytes(common) + local_bytes(common) + sizeof(struct ptx_warp)) +
           shared_bytes + sizeof(struct ptx_context);
}

static void context_end(struct ptx_context *c)
{
    for (uint32_t i = 0; c->x.warps && i < c->x.n_warps; i++)
        free(c->x.warps[i].async);
    ptx_shadow_free(c->x.shadow);
    free(c->frames);
    free(c->locals);
    free(c->shared);
    free(c->x.warps);
    free(c->x.hints);
    free(c->x.order);
}

static int context_memory(struct ptx_context *c, uint64_t shared)
{
    struct ptx_exec *x = &c->x;
    const uint64_t local = local_bytes(x), frame = frame_bytes(x);

    x->warps = aligned_alloc(64, sizeof *x->warps * x->n_warps);
    x->hints = calloc(x->program->n_hints + 1, sizeof(*x->hints));
    x->order = calloc(x->n_warps, sizeof *x->order);
    c->frames = aligned_alloc(64, frame * x->n_warps);
    c->locals = calloc(x->n_warps, local ? local : 1);
    c->shared = calloc(1, shared ? shared : 1);
    if (x->warps)
        memset(x->warps, 0, sizeof *x->warps * x->n_warps);
    if (!x->warps || !x->hints || !x->order || !c->frames || !c->locals || !c->shared)
        return -1;
    memset(c->frames, 0, frame * x->n_warps);
    for (uint32_t i = 0; i < x->n_warps; i++) {
        x->warps[i].frame = c->frames + frame * i;
        x->warps[i].local = c->locals + local * i;
        x->warps[i].index = i;
        x->warps[i].x = x;
    }
    for (uint32_t i = 0; i <= x->program->n_hints; i++)
        x->hints[i] = &x->nowhere;
    return 0;
}

static int context_init(struct ptx_context *c, const struct ptx_exec *common, uint64_t shared)
{
    struct ptx_exec *x = &c->x;

    *x = *common;
    if (context_memory(c, shared))
        return -1;
    x->nowhere = (struct ptx_segment){.base = UINT64_MAX};
    x->shared = (struct ptx_segment){.size = shared, .host = c->shared};
    x->shared_window =
        (struct ptx_segment){.base = PTX_SHARED_WINDOW, .size = shared, .host = c->shared};
    ptx_fill_frames(x, 0);
    return 0;
}

static struct ptx_context *gang_contexts(uint32_t n)
{
    const size_t bytes = (sizeof(struct ptx_context) * n + 63) / 64 * 64;
    struct ptx_context *contexts = aligned_alloc(64, bytes);

    if (contexts)
        memset(contexts, 0, bytes);
    return contexts;
}

struct ptx_gang *ptx_gang_new(const struct ptx_exec *common, uint32_t n, uint64_t shared_bytes)
{
    struct ptx_gang *g = calloc(1, sizeof *g);
    const struct rung_dim3 *c = &common->cluster_dim;
    const uint32_t size = c->x * c->y * c->z;
    int failed;

    if (!g)
        return NULL;
    g->n = n;
    g->contexts = gang_contexts(n);
    g->blocks = calloc(n, sizeof(*g->blocks));
    g->clusters = calloc(n / size, sizeof *g->clusters);
    failed = !g->contexts || !g->blocks || !g->clusters;
    for (uint32_t i = 0; !failed && i < n; i++) {
        struct ptx_cluster *cluster = &g->clusters[i / size];

        *cluster = (struct ptx_cluster){.blocks = g->blocks + i / size * size, .n = size};
        g->blocks[i] = &g->contexts[i].x;
        failed = context_init(&g->contexts[i], common, shared_bytes);
        g->contexts[i].x.cluster = cluster;
    }
    if (!failed)
        return g;
    ptx_gang_free(g);
    return NULL;
}

void ptx_gang_free(struct ptx_gang *g)
{
    for (uint32_t i = 0; g->contexts && i < g->n; i++)
        context_end(&g->contexts[i]);
    free(g->contexts);
    free(g->clusters);
    free(g->blocks);
    free(g);
}

/* Shared and local memory hold garbage when a block begins: NaN to floats, -1 to integers. */
static void forget(struct ptx_context *c)
{
    memset(c->shared, 0xff, c->x.shared.size);
    memset(c->locals, 0xff, c->x.n_warps * local_bytes(&c->x));
}

/* In order, or with a seed in an order of its own for each block (Fisher and Yates). */
static void order_warps(struct ptx_exec *x, uint64_t seed, uint64_t block)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + block * 0xd1b54a32d192ed03u;

    for (uint32_t i = 0; i < x->n_warps; i++)
        x->order[i] = i;
    for (uint32_t i = x->n_warps; seed && i > 1; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint32_t k = (uint32_t)(state >> 33) % i, other = x->order[k];

        x->order[k] = x->order[i - 1];
        x->order[i - 1] = other;
    }
}

void ptx_context_start(struct ptx_context *c, uint64_t block, uint64_t seed, int checked)
{
    struct ptx_exec *x = &c->x;
    const struct rung_dim3 *n = &x->cluster_dim;

    c->block = block;
    c->state = PTX_BLOCK_SPINS;
    x->at =
        (struct rung_dim3){(uint32_t)(block % x->grid.x), (uint32_t)(block / x->grid.x % x->grid.y),
                           (uint32_t)(block / x->grid.x / x->grid.y)};
    x->rank = x->at.x % n->x + n->x * (x->at.y % n->y + n->y * (x->at.z % n->z));
    ptx_fill_frames(x, 1);
    forget(c);
    order_warps(x, seed, block);
    if (checked && !x->shadow)
        x->shadow = ptx_shadow_new(x);
    if (!checked) {
        ptx_shadow_free(x->shadow);
        x->shadow = NULL;
    }
    if (x->shadow)
        ptx_shadow_start(x);
    ptx_block_start(x);
}
