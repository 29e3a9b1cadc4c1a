/*
 * What the files of the session share. A run owns all its buffers, its host copies of the inputs
 * and its reference result; the session owns the module and the list of runs.
 */
#ifndef SESSION_PRIVATE_H
#define SESSION_PRIVATE_H

#include "session/session.h"

#include "base/arena.h"
#include "base/status.h"

enum {
    /* Period of a poison pattern: a multiple of every element size, and of no page, since what will
     * be overwritten is not worth sharing (rung_device_ops.fill). */
    POISON_BYTES = 4088,
    GUARD_BYTES = 65536,    /* canary on either side of a buffer */
    MAX_REPEATS = 1 << 20,  /* of a plan in one run */
    SAMPLE_BYTES = 1 << 20, /* repeated block of a sampled run's inputs; whole pages */
    SAMPLE_BLOCKS = 2048,   /* most repeats of it in one tensor; beyond, the block grows */
};

/* One tensor or temp of a run. */
struct slot {
    const char *name;
    uint32_t dtype, role; /* role 0: a temp */
    uint64_t elements, bytes;
    int64_t shape[RUNG_MAX_DIMS]; /* tensors */
    uint32_t n_dims;
    int64_t last; /* elements of the last axis, at least 1 */
    uint64_t alignment;
    struct rung_buffer *buffer;
    uint64_t guard;        /* bytes of canary on each side */
    uint64_t allocated;    /* bytes of buffer, guards included; 0: none */
    void *before;          /* host copy of an input as drawn, or NULL */
    void *after;           /* host copy of the memory after the run, read on demand, or NULL */
    const uint8_t *poison; /* POISON_BYTES, or NULL when the slot was not poisoned */
};

/* What the reference gave for a box of an output; in the run's arena. */
struct box {
    struct box *next;
    struct rung_region region;
    struct rung_reference_output expected;
};

struct run {
    struct rung_run pub; /* first: pub.ctx points here */
    struct rung_open_session *session;
    struct run *next;
    struct rung_arena *arena;
    const int64_t *dims;
    uint64_t seed;
    uint32_t flags, n_slots; /* slots: task tensors, then temps */
    uint32_t sample_blocks;
    struct slot *slots;
    uint64_t *addresses; /* one a slot, of the first element */
    uint8_t *canary;     /* GUARD_BYTES, or NULL when nothing has guards */
    const struct rung_resolved_plan *plan;
    struct rung_launch_facts *facts; /* what pub.facts and pub.counters point at */
    struct rung_counters *counters;
    struct rung_reference_output
        *expected; /* one a task tensor; value NULL for inputs; NULL: not yet */
    struct box *boxes;
};

struct rung_open_session {
    struct rung_session table;
    struct rung_session_spec spec;
    struct rung_module *module;
    struct run *runs;
    uint64_t allocated;     /* bytes of all live buffers */
    struct rung_fault lost; /* code "" until a fault said that the device can't be used again */
};

/* Task tensors by role. */
static inline bool slot_is_input(const struct slot *s)
{
    return s->role == RUNG_ROLE_INPUT || s->role == RUNG_ROLE_WEIGHT || s->role == RUNG_ROLE_INOUT;
}
static inline bool slot_is_output(const struct slot *s)
{
    return s->role == RUNG_ROLE_OUTPUT || s->role == RUNG_ROLE_INOUT;
}

/* Fills a fault unless it already says something. */
void fault_set(struct rung_fault *fault, const char *code, const char *kernel, uint32_t line,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
static inline bool fault_is(const struct rung_fault *fault)
{
    return fault->code[0] != 0;
}

/* The device, each call guarded; errors in call->error. (device.c) */
int32_t device_alloc(struct rung_open_session *s, struct rung_call *call, uint64_t bytes,
                     uint64_t align, const char *label, struct rung_buffer **out);
void device_free(struct rung_open_session *s, struct rung_buffer *buffer);
uint64_t device_address(struct rung_open_session *s, struct rung_buffer *buffer);
/* Host memory of the buffer, or NULL. */
void *device_map(struct rung_open_session *s, struct rung_buffer *buffer);
int32_t device_write(struct rung_open_session *s, struct rung_call *call,
                     struct rung_buffer *buffer, uint64_t offset, const void *from, uint64_t bytes);
int32_t device_read(struct rung_open_session *s, struct rung_call *call, struct rung_buffer *buffer,
                    uint64_t offset, void *to, uint64_t bytes);
int32_t device_fill(struct rung_open_session *s, struct rung_call *call, struct rung_buffer *buffer,
                    uint64_t offset, uint64_t bytes, const void *pattern, uint64_t n,
                    uint32_t written);
int32_t device_launch(struct rung_open_session *s, struct rung_call *call,
                      const struct rung_launch *launch, struct rung_fault *fault);
int32_t device_sync(struct rung_open_session *s, struct rung_call *call, struct rung_fault *fault);
/* Whether the device has the operations that `symbol` lines need. */
bool device_has_symbols(const struct rung_open_session *s);
/* Nothing on a device without `reset`. */
int32_t device_reset(struct rung_open_session *s, struct rung_call *call);
/* Both only where device_has_symbols. */
int32_t device_symbol(struct rung_open_session *s, struct rung_call *call, const char *name,
                      struct rung_buffer **out, uint64_t *bytes);
int32_t device_copy(struct rung_open_session *s, struct rung_call *call, struct rung_buffer *to,
                    uint64_t to_offset, struct rung_buffer *from, uint64_t from_offset,
                    uint64_t bytes);

/*
 * Slots, in order: shapes, allocation with guards, inputs, poison; then what the kernel left
 * behind. Those that return int32_t fail for reasons of the host; a candidate's excess is a fault
 * in run->pub. (slots.c)
 */
int32_t slots_plan(struct run *run, struct rung_call *call);
int32_t slots_alloc(struct run *run, struct rung_call *call);
int32_t slots_draw(struct run *run, struct rung_call *call, const struct rung_run_request *request);
/* Before each repeat: inouts as drawn, outputs and temps poisoned; a sampled run is left alone. */
int32_t slots_reset(struct run *run, struct rung_call *call, bool first);
int32_t slots_check_guards(struct run *run, struct rung_call *call);
int32_t slots_check_inputs(struct run *run, struct rung_call *call);
void slots_free(struct run *run);
/* Memory of the slot after the run: valid until the run ends. */
int32_t slot_after(struct run *run, struct rung_call *call, struct slot *s, const void **out);

/* Everything about a launch that can be known before the first one. */
struct ready {
    const struct rung_kernel *kernel; /* LAUNCH */
    const void *params;
    struct rung_buffer *variable; /* SYMBOL: the module's */
};

/* The plan at the run's dims and point, or a fault. (launch.c) */
int32_t launch_resolve(struct run *run, struct rung_call *call);
/* Finds kernels and variables, packs arguments, checks limits: one a step. *out NULL with a fault.
 */
int32_t launch_prepare(struct run *run, struct rung_call *call, const struct ready **out);
/* All steps once, in order. A run that is not timed waits for each, to know whose a fault is. */
int32_t launch_steps(struct run *run, struct rung_call *call, const struct ready *ready);
/* Waits; a fault is put down to `step` unless that is NULL. */
int32_t launch_sync(struct run *run, struct rung_call *call, const struct rung_resolved_step *step);

/* A plan's copies into variables of module scope: before the first launch, and in their place among
 * the launches. Moved bytes count like a launch named "memcpy symbol". (symbol.c) */
int32_t symbol_prepare(struct run *run, struct rung_call *call,
                       const struct rung_resolved_step *step, struct ready *out);
int32_t symbol_copy(struct run *run, struct rung_call *call, const struct rung_resolved_step *step,
                    const struct ready *ready, uint32_t index);
/* Facts and counters of step `index` that only moves bytes, 4 KiB a block. */
void launch_moves(struct run *run, uint32_t index, uint64_t bytes_read, uint64_t bytes_written);
/* The tensor or temp that a step names, or NULL when there is none. */
struct slot *launch_target(struct run *run, const struct rung_resolved_step *step);

/* Launches the plan `repeats` times and fills run->pub but for the checks. (repeat.c) */
int32_t repeat_all(struct run *run, struct rung_call *call, uint32_t repeats);

/* The functions of struct rung_session that live outside session.c. */
int32_t session_run(const struct rung_session *table, struct rung_call *call,
                    const struct rung_run_request *request, struct rung_run **out);
void session_end(const struct rung_session *table, struct rung_run *run);
int32_t session_compare(const struct rung_session *table, struct rung_call *call,
                        struct rung_run *run, uint32_t tensor, struct rung_comparison *out);
int32_t session_expected(const struct rung_session *table, struct rung_call *call,
                         struct rung_run *run, uint32_t tensor, struct rung_reference_output *out);
int32_t session_compare_region(const struct rung_session *table, struct rung_call *call,
                               struct rung_run *run, uint32_t tensor,
                               const struct rung_region *region, struct rung_comparison *out);
int32_t session_expected_region(const struct rung_session *table, struct rung_call *call,
                                struct rung_run *run, uint32_t tensor,
                                const struct rung_region *region,
                                struct rung_reference_output *out);
/*
 * Boxes as lines along the last axis, row-major: RUNG_EINVAL unless the box lies inside the slot;
 * elements a line; number of lines; flat index of a line's first element. (region.c) [pure]
 */
int32_t region_check(const struct slot *s, const struct rung_region *region,
                     struct rung_error *err);
uint64_t region_width(const struct rung_region *region);
uint64_t region_lines(const struct rung_region *region);
uint64_t region_line(const struct slot *s, const struct rung_region *region, uint64_t line);
/* Puts every operation into the table. (run.c) */
void run_fill_table(struct rung_session *table);
int32_t session_work(const struct rung_session *table, struct rung_call *call, const int64_t *dims,
                     struct rung_work *out);
/* The run behind its public part. RUNG_EINVAL unless it ran whole, with results that mean
 * something. */
int32_t run_finished(struct rung_run *pub, struct rung_call *call, uint32_t tensor,
                     struct run **out);

#endif
