/*
 * frame.c - what stands in a warp's frame before it runs: constants, parameters, special registers.
 */
#include "context.h"

#include <string.h>

static uint32_t together_value(const struct ptx_exec *x, uint32_t special)
{
    const struct rung_dim3 *c = &x->cluster_dim;

    switch (special) {
    case PTX_SR_ENVREG1:
        return (uint32_t)(x->workspace >> 32);
    case PTX_SR_ENVREG2:
        return (uint32_t)x->workspace;
    case PTX_SR_CLUSTERID_X:
        return x->at.x / c->x;
    case PTX_SR_CLUSTERID_Y:
        return x->at.y / c->y;
    case PTX_SR_CLUSTERID_Z:
        return x->at.z / c->z;
    case PTX_SR_NCLUSTERID_X:
        return x->grid.x / c->x;
    case PTX_SR_NCLUSTERID_Y:
        return x->grid.y / c->y;
    case PTX_SR_NCLUSTERID_Z:
        return x->grid.z / c->z;
    case PTX_SR_CLUSTER_CTAID_X:
        return x->at.x % c->x;
    case PTX_SR_CLUSTER_CTAID_Y:
        return x->at.y % c->y;
    case PTX_SR_CLUSTER_CTAID_Z:
        return x->at.z % c->z;
    case PTX_SR_CLUSTER_NCTAID_X:
        return c->x;
    case PTX_SR_CLUSTER_NCTAID_Y:
        return c->y;
    case PTX_SR_CLUSTER_NCTAID_Z:
        return c->z;
    case PTX_SR_CLUSTER_CTARANK:
        return x->rank;
    case PTX_SR_CLUSTER_NCTARANK:
        return c->x * c->y * c->z;
    default:
        return 0;
    }
}

static uint32_t special_value(const struct ptx_warp *w, uint32_t special, uint32_t lane)
{
    const struct ptx_exec *x = w->x;
    const uint32_t linear = w->index * PTX_LANES + lane;

    switch (special) {
    case PTX_SR_TID_X:
        return linear % x->block.x;
    case PTX_SR_TID_Y:
        return linear / x->block.x % x->block.y;
    case PTX_SR_TID_Z:
        return linear / x->block.x / x->block.y;
    case PTX_SR_NTID_X:
        return x->block.x;
    case PTX_SR_NTID_Y:
        return x->block.y;
    case PTX_SR_NTID_Z:
        return x->block.z;
    case PTX_SR_CTAID_X:
        return x->at.x;
    case PTX_SR_CTAID_Y:
        return x->at.y;
    case PTX_SR_CTAID_Z:
        return x->at.z;
    case PTX_SR_NCTAID_X:
        return x->grid.x;
    case PTX_SR_NCTAID_Y:
        return x->grid.y;
    case PTX_SR_NCTAID_Z:
        return x->grid.z;
    case PTX_SR_LANEID:
        return lane;
    case PTX_SR_WARPID:
        return w->index;
    case PTX_SR_NWARPID:
        return 64;
    case PTX_SR_SMID:
        return x->at.x % x->sm_count;
    case PTX_SR_NSMID:
        return x->sm_count;
    case PTX_SR_MASK_EQ:
        return 1u << lane;
    case PTX_SR_MASK_LT:
        return (1u << lane) - 1;
    case PTX_SR_MASK_LE:
        return (1u << lane) | ((1u << lane) - 1);
    case PTX_SR_MASK_GT:
        return ~((1u << lane) | ((1u << lane) - 1));
    case PTX_SR_MASK_GE:
        return ~((1u << lane) - 1);
    case PTX_SR_DYNAMIC_SHARED:
        return x->shared_bytes;
    case PTX_SR_TOTAL_SHARED:
        return (uint32_t)x->shared.size;
    default:
        return together_value(x, special);
    }
}

static uint64_t param_value(const struct ptx_exec *x, const struct ptx_fill *f)
{
    uint64_t v = 0;

    memcpy(&v, x->params + f->value, f->bytes);
    if (f->is_signed && f->bytes < 8)
        v = (uint64_t)((int64_t)(v << (64 - 8 * f->bytes)) >> (64 - 8 * f->bytes));
    return v;
}

static void fill_slot(struct ptx_warp *w, const struct ptx_fill *f)
{
    uint8_t *slot = w->frame + f->offset;
    uint64_t v = f->kind == PTX_FILL_PARAM ? param_value(w->x, f) : f->value;

    if (f->width == PTX_WP) {
        uint32_t mask = v ? PTX_ALL : 0;

        memcpy(slot, &mask, sizeof mask);
        return;
    }
    for (uint32_t i = 0; i < PTX_LANES; i++) {
        if (f->kind == PTX_FILL_SPECIAL || f->kind == PTX_FILL_BLOCK)
            v = special_value(w, f->special, i);
        if (f->width == PTX_W64)
            memcpy(slot + 8 * i, &v, 8);
        else
            memcpy(slot + 4 * i, &v, 4);
    }
}

void ptx_fill_frames(struct ptx_exec *x, int block)
{
    for (uint32_t i = 0; i < x->program->n_fills; i++) {
        const struct ptx_fill *f = &x->program->fills[i];
        int is_block = f->kind == PTX_FILL_BLOCK || f->kind == PTX_FILL_ZERO;

        for (uint32_t k = 0; is_block == block && k < x->n_warps; k++)
            fill_slot(&x->warps[k], f);
    }
}
