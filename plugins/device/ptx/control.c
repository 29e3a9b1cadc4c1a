/*
 * control.c - handlers of branches, exits, predicates, barriers and clocks. The same at every
 * instruction-set level.
 */
#include "exec_lane.h"

#include <time.h>

/* ---- Predicates ------------------------------------------------------------------------------ */

HANDLER(any_mov_p)
{
    put_mask(w, in->r[0], get_mask(w, in->r[1]));
    return in + 1;
}

HANDLER(any_not_p)
{
    put_mask(w, in->r[0], ~get_mask(w, in->r[1]));
    return in + 1;
}

HANDLER(any_and_p)
{
    put_mask(w, in->r[0], get_mask(w, in->r[1]) & get_mask(w, in->r[2]));
    return in + 1;
}

HANDLER(any_or_p)
{
    put_mask(w, in->r[0], get_mask(w, in->r[1]) | get_mask(w, in->r[2]));
    return in + 1;
}

HANDLER(any_xor_p)
{
    put_mask(w, in->r[0], get_mask(w, in->r[1]) ^ get_mask(w, in->r[2]));
    return in + 1;
}

/* ---- Branches -------------------------------------------------------------------------------- */

/* All running lanes go to the target. A way back costs fuel, so that endless loops come up for air.
 */
static const struct ptx_insn *jump(struct ptx_warp *w, const struct ptx_insn *in)
{
    struct ptx_exec *x = w->x;
    const struct ptx_insn *target = x->code + in->target;

    ptx_account(w, in->count);
    w->base = target->count - (target->flags & PTX_F_WEIGHT);
    if ((in->flags & PTX_F_BACK) && --x->fuel < 0) {
        w->split[w->current].pc = in->target;
        x->hot_line = in->line ? in->line : x->hot_line;
        x->reason = PTX_YIELD;
        return NULL;
    }
    return target;
}

HANDLER(any_bra)
{
    return jump(w, in);
}

HANDLER(any_bra_if)
{
    const uint32_t p = get_mask(w, in->r[0]);
    const uint32_t taken = (in->flags & PTX_F_NEGATED ? ~p : p) & w->mask;

    if (taken == w->mask)
        return jump(w, in);
    return taken ? ptx_diverge(w, in, taken) : in + 1;
}

HANDLER(any_exit)
{
    return ptx_exit(w, in);
}

HANDLER(any_fell_off)
{
    return ptx_exit(w, in);
}

HANDLER(any_nop)
{
    (void)w;
    return in + 1;
}

/* ---- Barriers -------------------------------------------------------------------------------- */

HANDLER(any_bar)
{
    return ptx_arrive(w, in, 0, 1);
}

/* Memory is one for all warps; only the shadow cares. */
HANDLER(any_fence)
{
    (void)w;
    return in + 1;
}

HANDLER(any_cluster_arrive)
{
    return ptx_cluster_arrive(w, in);
}

HANDLER(any_cluster_wait)
{
    return ptx_cluster_wait(w, in);
}

HANDLER(any_bar_arrive)
{
    return ptx_arrive(w, in, 0, 0);
}

HANDLER(any_bar_red)
{
    return ptx_arrive(w, in, get_mask(w, in->r[2]), 1);
}

/* The barrier number is the same in all lanes; bar_red has checked it. */
static const struct ptx_barrier *barrier_of(const struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint32_t *number = (const uint32_t *)(const void *)(w->frame + in->r[1]);

    return &w->x->barriers[number[__builtin_ctz(w->mask)] % PTX_N_BARRIERS];
}

HANDLER(any_bar_popc)
{
    uint32_t *to = SLOT(uint32_t, in->r[0]);

    for (uint32_t left = w->mask; left; left &= left - 1)
        to[__builtin_ctz(left)] = barrier_of(w, in)->last_popc;
    return in + 1;
}

HANDLER(any_bar_pred)
{
    const struct ptx_barrier *b = barrier_of(w, in);

    put_mask(w, in->r[0], (in->sub ? b->last_all : b->last_any) ? PTX_ALL : 0);
    return in + 1;
}

/* ---- Crashes and clocks ---------------------------------------------------------------------- */

HANDLER(any_trap)
{
    return ptx_fault(w, in, (uint32_t)__builtin_ctz(w->mask), "run.crash", 0,
                     "the kernel executed trap");
}

/* A NUL-terminated text in device memory, for messages; "?" where there is none. */
static void device_text(struct ptx_warp *w, uint32_t lane, uint64_t address, char *out, size_t n)
{
    size_t k = 0;

    for (; k + 1 < n; k++) {
        const uint8_t *c = ptx_resolve(w, lane, address + k, 1, 0);

        if (!c || !*c)
            break;
        out[k] = *c >= ' ' && *c < 127 ? (char)*c : '?';
    }
    out[k] = 0;
}

HANDLER(any_assert_fail)
{
    const uint32_t lane = (uint32_t)__builtin_ctz(w->mask);
    char text[160], function[80];

    device_text(w, lane, SLOT(const uint64_t, in->r[0])[lane], text, sizeof text);
    device_text(w, lane, SLOT(const uint64_t, in->r[3])[lane], function, sizeof function);
    return ptx_fault(w, in, lane, "run.crash", 0, "assertion `%s` failed in %s", text, function);
}

HANDLER(any_print)
{
    return ptx_print(w, in);
}

/* The interpreter's cycle is one PTX instruction of a lane: deterministic, and it grows. */
HANDLER(any_clock_32)
{
    uint32_t *to = SLOT(uint32_t, in->r[0]);
    const uint64_t now = w->x->lane_instructions + in->count;

    for (uint32_t left = w->mask; left; left &= left - 1)
        to[__builtin_ctz(left)] = (uint32_t)(in->sub ? now >> 32 : now);
    return in + 1;
}

HANDLER(any_clock_64)
{
    uint64_t *to = SLOT(uint64_t, in->r[0]);
    const uint64_t now = w->x->lane_instructions + in->count;

    for (uint32_t left = w->mask; left; left &= left - 1)
        to[__builtin_ctz(left)] = now;
    return in + 1;
}

#define ANY(name) isa->full[PTX_OP_##name] = isa->masked[PTX_OP_##name] = any_##name

void ptx_fill_control(struct ptx_isa *isa)
{
    ANY(mov_p);
    ANY(not_p);
    ANY(and_p);
    ANY(or_p);
    ANY(xor_p);
    ANY(bra);
    ANY(bra_if);
    ANY(exit);
    ANY(fell_off);
    ANY(nop);
    ANY(bar);
    ANY(fence);
    ANY(cluster_arrive);
    ANY(cluster_wait);
    ANY(bar_arrive);
    ANY(bar_red);
    ANY(bar_popc);
    ANY(bar_pred);
    ANY(trap);
    ANY(assert_fail);
    ANY(print);
    ANY(clock_32);
    ANY(clock_64);
}
