/*
 * race.c - accesses of different warps to shared memory between two barriers; see shadow.h.
 */
#include "shadow_int.h"

#include <string.h>

static struct ptx_unit *unit_at(struct ptx_shadow *s, uint64_t offset)
{
    struct ptx_unit *u = &s->units[offset / s->unit];

    if (u->epoch != s->epoch)
        *u = (struct ptx_unit){.epoch = s->epoch};
    return u;
}

/* others: warps that have touched the unit in a way that does not go with this access. */
static int race(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane, uint64_t offset,
                uint32_t others, const struct ptx_unit *u, const char *mine, const char *theirs)
{
    const uint32_t other = (uint32_t)__builtin_ctz(others);
    char at[40] = "";

    if (u->line)
        snprintf(at, sizeof at, " (line %u)", u->line);
    ptx_fault(
        w, in, lane, "mem.race", PTX_SHARED_WINDOW + offset,
        "shared memory at offset %llu is %s by this thread and %s by threads %u to %u%s, with "
        "no barrier (__syncthreads) in between",
        (unsigned long long)offset, mine, theirs, other * PTX_LANES,
        other * PTX_LANES + PTX_LANES - 1, at);
    return -1;
}

static int is_pending(const struct ptx_shadow *s, uint64_t offset, uint32_t bytes)
{
    return memchr(s->shared + offset, PTX_PENDING, bytes) != NULL;
}

static int pending(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane, uint64_t offset,
                   const char *mine)
{
    ptx_fault(w, in, lane, "mem.race", PTX_SHARED_WINDOW + offset,
              "shared memory at offset %llu is %s while an asynchronous copy (cp.async) into it is "
              "under way: wait for its group (cp.async.wait_group) and meet at a barrier first",
              (unsigned long long)offset, mine);
    return -1;
}

int ptx_race_read(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane, uint64_t offset,
                  uint32_t bytes)
{
    struct ptx_shadow *s = w->x->shadow;
    const uint32_t me = 1u << w->index;

    if (in->flags & PTX_F_STRONG)
        return 0;
    if (is_pending(s, offset, bytes))
        return pending(w, in, lane, offset, "read");
    for (uint64_t at = offset; at < offset + bytes; at += s->unit) {
        struct ptx_unit *u = unit_at(s, at);

        if ((u->writers & ~me) && !(u->writers & me))
            return race(w, in, lane, at, u->writers & ~me, u, "read", "written");
        if (u->atomics & ~me)
            return race(w, in, lane, at, u->atomics & ~me, u, "read", "changed by an atomic");
        u->readers |= me;
        u->line = in->line;
    }
    return 0;
}

int ptx_race_write(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane, uint64_t offset,
                   uint32_t bytes, const uint8_t *value)
{
    struct ptx_shadow *s = w->x->shadow;
    const uint32_t me = 1u << w->index;
    const int same = value && !memcmp(w->x->shared.host + offset, value, bytes);

    if (in->flags & PTX_F_STRONG)
        return 0;
    if (value && is_pending(s, offset, bytes))
        return pending(w, in, lane, offset, "written");
    for (uint64_t at = offset; at < offset + bytes; at += s->unit) {
        struct ptx_unit *u = unit_at(s, at);
        const uint32_t others = (u->writers | u->readers | u->atomics) & ~me;

        if (same) { /* harmless, and such a writer may read it too */
            u->writers |= u->writers ? me : 0;
            continue;
        }
        if (others)
            return race(w, in, lane, at, others, u, "written",
                        u->writers & others   ? "written"
                        : u->atomics & others ? "changed by an atomic"
                                              : "read");
        u->writers |= me;
        u->line = in->line;
    }
    return 0;
}

int ptx_race_atomic(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane, uint64_t offset,
                    uint32_t bytes)
{
    struct ptx_shadow *s = w->x->shadow;
    const uint32_t me = 1u << w->index;

    for (uint64_t at = offset; at < offset + bytes; at += s->unit) {
        struct ptx_unit *u = unit_at(s, at);
        const uint32_t others = (u->writers | u->readers) & ~me;

        if (others)
            return race(w, in, lane, at, others, u, "changed by an atomic",
                        u->writers & others ? "written" : "read");
        u->atomics |= me;
        u->line = in->line;
    }
    return 0;
}
