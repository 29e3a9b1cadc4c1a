/*
 * What the files of the session share. A run owns all its buffers, its host copies of the inputs
 * and its reference result; the session owns the module and the list of runs.
 */
#ifndef SESSION_PRIVATE_H
#define SESSION_PRIVATE_H

#include "session/gpu/gpu.h"
#include "session/session.h"

#include "base/arena.h"
#include "base/status.h"

enum {
    /* Period of a poison pattern: a multiple of every element size, and of no page, since what will
     * be overwritten is not worth sharing (rung_device_ops.fill). */
    POISON_BYTES = 4088,
    GUARD_BYTES = 65536,               /* canary on either side of a buffer */
    CANARY_BYTES = GUARD_BYTES + 4096, /* and what aligns the set that follows */
    MAX_REPEATS = 1 << 20,             /* of a plan in one run */
    MAX_SETS = 1 << 12,                /* of buffers in one run */
    SAMPLE_BYTES = 1 << 20,            /* repeated block of a sampled run's inputs; whole pages */
    SAMPLE_BLOCKS = 2048, /* most repeats of it in one tensor; beyond, the block grows */
};

/* One tensor or temp in one set of buffers. */
struct slot {
    const char *name;
    uint32_t dtype, role;           /* role 0: a temp */
    uint64_t elements, bytes;       /* bytes: of the elements, as the host keeps them */
    uint64_t extent;                /* bytes of device memory: `bytes`, and gaps between elements */
    int64_t shape[RUNG_MAX_DIMS];   /* tensors */
    int64_t strides[RUNG_MAX_DIMS]; /* tensors; elements */
    bool strided;                   /* not row-major, or with gaps (strided.c) */
    bool laid;                      /* the gaps hold the canary */
    uint32_t n_dims;
    int64_t last; /* elements of the last axis, at least 1 */
    uint64_t alignment;
    struct rung_buffer *buffer; /* of all sets */
    uint64_t offset;            /* of element 0 */
    struct rung_fill fill;      /* an input: how it was drawn, with the seed */
    uint64_t seed;
    void *before;          /* host copy of an input as drawn, made on demand, or NULL */
    void *after;           /* host copy of the memory after the run, read on demand, or NULL */
    const uint8_t *poison; /* POISON_BYTES, or NULL when the slot was not poisoned */
};

/* Memory of one slot in all sets: canary, set 0, canary, set 1, ..., canary. */
struct room {
    struct rung_buffer *buffer;
    uint64_t guard;     /* bytes of canary before set 0; 0: none anywhere */
    uint64_t pitch;     /* bytes from a set's first element to the next one's */
    uint64_t allocated; /* bytes of buffer; 0: none */
};

struct ready;

/* Buffers for one execution of the plan. */
struct set {
    struct slot *slots;
    uint64_t *addresses; /* one a slot, of the first element */
    const struct ready *ready;
};

/* What the host's clock reads beyond the events, and what empty measurements read. */
struct floors {
    uint32_t batch;       /* that these are of; 0: not measured yet */
    double floor_ns;      /* as rung_run.floor_ns */
    double host_ns, slop; /* host's time beyond the events: median, and its spread */
};

/*
 * All that a run owns on the device, and what follows from its dims. That of a timed run stays with
 * the session for the next one with the same dims and sets.
 */
struct memory {
    struct rung_arena *arena;
    const int64_t *dims;
    const struct rung_resolved_plan *plan; /* NULL: a baseline */
    uint32_t n_slots, n_sets;              /* slots: task tensors, then temps */
    struct room *rooms;                    /* one a slot */
    struct set *sets;
    uint8_t *canary;             /* CANARY_BYTES, or NULL when nothing has guards or gaps */
    struct rung_buffer *scratch; /* of a baseline */
    uint64_t scratch_bytes;
    const char *const *kernels; /* as rung_run has them; NULL until the launches are prepared */
    struct rung_launch_facts *facts;
    struct floors floors;
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
    struct memory *memory;
    uint64_t seed;
    uint32_t flags, n_slots;
    uint32_t sample_blocks;
    struct rung_fill *fills; /* one a task tensor, of inputs */
    /* The set that is launched, or was last and is looked at (run_use). */
    struct slot *slots;
    const uint64_t *addresses;
    const struct ready *ready;
    struct rung_counters *counters; /* what pub.counters points at */
    struct rung_reference_output
        *expected;                    /* one a task tensor; value NULL for inputs; NULL: not yet */
    struct rung_comparison *compared; /* one a task tensor, from the device; NULL: not yet */
    struct box *boxes;
};

struct rung_open_session {
    struct rung_session table;
    struct rung_session_spec spec;
    struct rung_module *module; /* NULL: a baseline */
    struct run *runs;
    struct memory *kept;                 /* of an ended timed run, or NULL */
    struct rung_device_event *events[3]; /* of timed runs, or NULL */
    uint64_t allocated;                  /* bytes of all live buffers, `kept` included */
    bool host_reference;                 /* the reference has no form for the device */
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
bool device_has_copy(const struct rung_open_session *s);
/* Nothing on a device without `reset`, or without a module. */
int32_t device_reset(struct rung_open_session *s, struct rung_call *call);
/* Both only where the device has them. */
int32_t device_symbol(struct rung_open_session *s, struct rung_call *call, const char *name,
                      struct rung_buffer **out, uint64_t *bytes);
int32_t device_copy(struct rung_open_session *s, struct rung_call *call, struct rung_buffer *to,
                    uint64_t to_offset, struct rung_buffer *from, uint64_t from_offset,
                    uint64_t bytes);

/* Tensor maps: as rung_device_ops has them. */
bool device_has_tensormaps(const struct rung_open_session *s);
int32_t device_tensormap(struct rung_open_session *s, struct rung_call *call,
                         const struct rung_tensormap *map, void *out, struct rung_fault *fault);
/* Graphs, flushing, the state of the GPU: whether the device has them. */
bool device_has_graphs(const struct rung_open_session *s);
bool device_has_flush(const struct rung_open_session *s);
int32_t device_capture(struct rung_open_session *s, struct rung_call *call);
int32_t device_captured(struct rung_open_session *s, struct rung_call *call,
                        struct rung_graph **out, struct rung_fault *fault);
int32_t device_replay(struct rung_open_session *s, struct rung_call *call, struct rung_graph *graph,
                      struct rung_fault *fault);
void device_graph_free(struct rung_open_session *s, struct rung_graph *graph);
int32_t device_flush(struct rung_open_session *s, struct rung_call *call);
/* All 0 where the device has no such operation. */
int32_t device_condition(struct rung_open_session *s, struct rung_call *call,
                         struct rung_device_condition *out);
int32_t device_event_new(struct rung_open_session *s, struct rung_call *call,
                         struct rung_device_event **out);
void device_event_free(struct rung_open_session *s, struct rung_device_event *event);
int32_t device_event_record(struct rung_open_session *s, struct rung_call *call,
                            struct rung_device_event *event);
int32_t device_event_elapsed(struct rung_open_session *s, struct rung_call *call,
                             struct rung_device_event *from, struct rung_device_event *to,
                             double *ns);

/*
 * Memory of a run: dims, plan, shapes, buffers with guards. A candidate's excess is a fault in
 * run->pub. A timed run takes what the session kept, where it fits. (memory.c)
 */
int32_t memory_take(struct run *run, struct rung_call *call, const int64_t *dims, uint32_t n_sets);
/* Back to the session, for the next timed run, or freed. */
void memory_give_back(struct run *run);
void memory_free(struct rung_open_session *s, struct memory *memory);
/*
 * A buffer that counts against the session's limit; what the session kept is freed for it.
 * RUNG_ENOMEM. memory_drop: back; NULL is fine.
 */
int32_t memory_buffer(struct rung_open_session *s, struct rung_call *call, uint64_t bytes,
                      uint64_t align, const char *label, struct rung_buffer **out);
void memory_drop(struct rung_open_session *s, struct rung_buffer *buffer, uint64_t bytes);
int32_t memory_check_guards(struct run *run, struct rung_call *call);
/* Makes a set the one that is launched and looked at; results of another are forgotten. (memory.c)
 */
void run_use(struct run *run, uint32_t set);
/* Forgets host copies and results of the set in use: it is going to change. (slots.c) */
void run_forget(struct run *run);

/*
 * What lies in the slots of the set in use: inputs, poison; then what the kernel left behind.
 * Those that return int32_t fail for reasons of the host. (slots.c)
 */
int32_t slots_take_fills(struct run *run, struct rung_call *call,
                         const struct rung_run_request *request);
/* Poison patterns of the run, one a slot that takes any; the same in all sets. */
void slots_make_poison(struct run *run);
/* Inputs by the run's fills and this seed; a sampled run's outputs and temps are cleared. */
int32_t slots_draw(struct run *run, struct rung_call *call, uint64_t seed);
/* Inouts as drawn, unless that is how they are; outputs and temps poisoned. */
int32_t slots_reset(struct run *run, struct rung_call *call, bool drawn);
/* Poisons as slots_reset, from what lies in another set, where the device copies. */
int32_t slots_reset_like(struct run *run, struct rung_call *call, const struct set *like);
int32_t slots_check_inputs(struct run *run, struct rung_call *call);
/* Memory of the slot after the run: valid until the run ends. */
int32_t slot_after(struct run *run, struct rung_call *call, struct slot *s, const void **out);
/* An input as it was drawn: valid until the run ends. */
int32_t slot_before(struct rung_call *call, struct slot *s, const void **out);
/* The same into device memory that no candidate saw. */
int32_t slot_draw_again(struct run *run, struct rung_call *call, struct slot *s,
                        struct rung_buffer *to);
/* Whether device memory from offset on equals what the host holds. */
int32_t slot_same_memory(struct run *run, struct rung_call *call, struct rung_buffer *buffer,
                         uint64_t offset, const void *host, uint64_t bytes, bool *same);

/*
 * Slots of tensors with strides, of the set in use unless `index` is there. Dense host data into
 * device memory, the canary into the gaps, which are checked first where they held it before;
 * written: as for rung_device_ops.fill. Poison likewise. The elements, dense, into out[s->bytes].
 * Whether the gaps still hold the canary: a broken one is told in run->pub. (strided.c)
 */
int32_t strided_put(struct run *run, struct rung_call *call, struct slot *s, const void *dense,
                    bool written);
int32_t strided_poison(struct run *run, struct rung_call *call, struct slot *s);
int32_t strided_get(struct run *run, struct rung_call *call, const struct slot *s, void *out);
int32_t strided_check(struct run *run, struct rung_call *call, const struct slot *s,
                      uint32_t index);

/*
 * All outputs of the set in use against the reference, on the device, into run->compared.
 * RUNG_EUNSUPPORTED or RUNG_ENOMEM when the device can't. (whole.c)
 */
int32_t whole_compare(struct run *run, struct rung_call *call);
bool whole_is_possible(const struct rung_open_session *s);

/* Everything about a launch that can be known before the first one. */
struct ready {
    const struct rung_kernel *kernel; /* LAUNCH */
    const void *params;
    struct rung_buffer *variable; /* SYMBOL: the module's */
};

/* The plan at the memory's dims and point, or a fault. (launch.c) */
int32_t launch_resolve(struct run *run, struct rung_call *call);
/*
 * Finds kernels and variables, packs arguments, checks limits, for every set, unless that was done
 * before; fills in what run->pub says of the launches. A fault in run->pub.
 */
int32_t launch_prepare(struct run *run, struct rung_call *call);
/* All steps once, in order, on the set in use. A run that is not timed waits for each, to know
 * whose a fault is. A baseline is one step. */
int32_t launch_steps(struct run *run, struct rung_call *call);
/* Waits; a fault is put down to `step` unless that is NULL. */
int32_t launch_sync(struct run *run, struct rung_call *call, const struct rung_resolved_step *step);
/* A fault of the device becomes the run's; launch faults are put down to the plan's line. */
void launch_take_fault(struct run *run, struct rung_fault *fault,
                       const struct rung_resolved_step *step);

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
/* Between repeats: whether the call has time left and is still wanted. `done`: for the fault. */
int32_t repeat_go_on(struct run *run, struct rung_call *call, uint32_t done);
/* Overwrites the caches where the device has no flush of its own. */
struct overwrite {
    struct rung_buffer *buffer;
    uint64_t bytes;
};
int32_t overwrite_new(struct run *run, struct rung_call *call, struct overwrite *out);
int32_t overwrite_queue(struct run *run, struct rung_call *call, const struct overwrite *w);
void overwrite_free(struct run *run, struct overwrite *w);

/* A timed run: samples, each on fresh sets, and the checks of inputs afterwards. (timed.c) */
int32_t timed_all(struct run *run, struct rung_call *call, const struct rung_run_request *request);
/* Which samples are verified: a mark for each, the last always. (verify.c) */
void verify_choose(uint32_t n_samples, uint32_t wanted, uint8_t *marks);
/* A random number below n that no kernel can know. */
uint32_t verify_random(uint32_t n);
/* The outputs of the set in use against the reference; what is wrong is the run's fault. */
int32_t verify_sample(struct run *run, struct rung_call *call, uint32_t sample, uint32_t n_samples);

/* The functions of struct rung_session that live outside session.c. */
int32_t session_run(const struct rung_session *table, struct rung_call *call,
                    const struct rung_run_request *request, struct rung_run **out);
void session_end(const struct rung_session *table, struct rung_run *run);
int32_t session_compare(const struct rung_session *table, struct rung_call *call,
                        struct rung_run *run, uint32_t tensor, struct rung_comparison *out);
int32_t session_compare_fast(const struct rung_session *table, struct rung_call *call,
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
/* The same, when the tensor is an output. */
int32_t run_output(struct rung_run *pub, struct rung_call *call, uint32_t tensor, struct run **out);

#endif
