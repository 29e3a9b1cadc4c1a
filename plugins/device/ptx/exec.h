/*
 * exec.h - state of warps and workers, and what instruction handlers may do.
 *
 * A warp is a set of splits {pc, lanes}; one split runs at a time, the one that stands earliest in
 * the program, and splits that meet at the same pc become one again. Handlers run one instruction
 * for all lanes of the running split and return the next instruction, or NULL when the scheduler
 * (sched.c) has to decide; they have then said why in exec->reason.
 * A worker (ptx_exec) belongs to one thread. Programs and buffers are shared between workers.
 */
#ifndef PTX_EXEC_H
#define PTX_EXEC_H

#include <rung/device.h>

#include "ir.h"
#include "memory.h"
#include "parse.h"

#define PTX_N_BARRIERS 16
#define PTX_FUEL 4096 /* back-edges of a warp's turn */
#define PTX_ALL 0xffffffffu

enum ptx_split_state {
    PTX_RUNS = 0,
    PTX_AT_BARRIER, /* has arrived; continues behind pc when the barrier completes */
    PTX_AT_WARP,    /* stands at pc until other lanes of the warp come there, or leave */
    PTX_AT_CLUSTER, /* waits for the cluster's barrier; continues behind pc */
};

struct ptx_split {
    uint32_t pc, mask;
    uint8_t state;   /* ptx_split_state */
    uint8_t barrier; /* AT_BARRIER */
    uint8_t turn;    /* has the processor although it is not the earliest */
    uint8_t reserved;
    uint32_t members; /* AT_WARP: lanes that it waits for */
};

struct ptx_exec;
struct ptx_async;
struct ptx_shadow; /* shadow.h */

struct ptx_warp {
    uint8_t *frame;
    struct ptx_exec *x;
    uint32_t mask;  /* lanes of the running split */
    uint32_t base;  /* PTX instructions before the point where it started to run */
    uint32_t live;  /* lanes that have not exited */
    uint32_t index; /* in the block */
    uint32_t n_splits, current;
    uint8_t *local;          /* [32][local_bytes] */
    struct ptx_async *async; /* copies under way, oldest first; see async.c */
    uint32_t n_async, cap_async;
    uint32_t cluster_phase;              /* of the cluster's barrier when this warp arrived */
    uint32_t committed[PTX_LANES];       /* groups of copies, a lane */
    _Alignas(64) uint32_t on[PTX_LANES]; /* ~0 where mask has the lane */
    struct ptx_split split[PTX_LANES];
};

struct ptx_barrier {
    uint32_t arrived;                       /* threads, this phase */
    uint32_t expected;                      /* threads; 0: all that have not exited */
    uint32_t popc, all, any;                /* of the predicates of this phase */
    uint32_t last_popc, last_all, last_any; /* of the phase that completed last */
};

/* Blocks that see each other's shared memory; all of them have a context at the same time. */
struct ptx_cluster {
    struct ptx_exec **blocks; /* [n], by rank */
    uint32_t n;
    uint32_t arrived; /* threads at the barrier, this phase */
    uint32_t phase;
};

/* Why a handler returned NULL. */
enum ptx_reason { PTX_NEXT = 0, PTX_RESCHEDULE, PTX_YIELD, PTX_FAULT };

typedef const struct ptx_insn *(*ptx_handler)(struct ptx_warp *, const struct ptx_insn *);

/* One instruction-set level's handlers: for full warps, and for any mask. */
struct ptx_isa {
    const char *name;
    ptx_handler full[PTX_N_OPS], masked[PTX_N_OPS];
};

struct ptx_counting; /* counters.h */

/* A block that has started, or the worker's place for one. */
struct ptx_exec {
    const struct ptx_program *program;
    const struct ptx_insn *code;
    const struct ptx_isa *isa;
    struct ptx_memory *memory;
    const struct rung_host *host;
    const struct rung_call *call;
    struct ptx_segment **hints;       /* [program->n_hints]: last segment hit by an instruction */
    struct ptx_segment shared;        /* base 0 */
    struct ptx_segment shared_window; /* the same memory at its generic address */
    struct ptx_segment nowhere;       /* what hints start with: holds no address */
    const uint8_t *params;
    uint32_t param_bytes;
    uint32_t reason;   /* ptx_reason */
    int32_t fuel;      /* back-edges until the scheduler looks around */
    int32_t turn_fuel; /* what it starts with */
    uint32_t n_warps, n_threads;
    uint32_t n_live; /* threads of the block that have not exited */
    uint32_t rank;   /* in the cluster */
    struct ptx_warp *warps;
    uint32_t *order; /* [n_warps] in which warps have their turns */
    struct ptx_cluster *cluster;
    struct ptx_shadow *shadow; /* NULL: this block is not checked */
    uint32_t is_cooperative;
    uint32_t watches; /* changes of memory are counted */
    uint32_t changes; /* stores and atomics that changed memory while watched */
    uint64_t lane_instructions, max_lane_instructions;
    struct ptx_counting *counting; /* NULL: not counted */
    struct rung_fault *fault;
    struct rung_dim3 grid, block, at, cluster_dim;
    uint64_t workspace; /* address for grid-wide barriers; 0 none */
    struct ptx_barrier barriers[PTX_N_BARRIERS];
    const char *kernel;
    uint64_t next_look;  /* lane instructions at which clock and cancel are looked at */
    uint32_t prints;     /* lines that printf may still log */
    uint32_t one_worker; /* atomics need no lock */
    uint32_t hot_line;
    uint32_t shared_bytes; /* dynamic */
    uint32_t sm_count;
};

enum ptx_block_state {
    PTX_BLOCK_FAULT = -1,
    PTX_BLOCK_ENDED = 0,
    PTX_BLOCK_WAITS,
    PTX_BLOCK_SPINS
};

/* Puts the block x->at at its first instruction. The frames have been filled. */
void ptx_block_start(struct ptx_exec *x);

/*
 * Runs the block for some rounds over its warps: until it ends, a fault was filled, all its threads
 * wait for other blocks of the cluster, or `rounds` rounds in which some warp ran out of fuel.
 */
int ptx_block_turn(struct ptx_exec *x, uint32_t rounds);

/* A number for all that decides how the running threads go on, but for memory. */
uint64_t ptx_block_hash(const struct ptx_exec *x);

/* Fills the fault of blocks that have been found to run, or wait, for ever. */
void ptx_blame_endless(struct ptx_exec *x);

/* ---- For handlers ---------------------------------------------------------------------------- */

/* Adds the instructions since the split's last account; call when leaving a straight line. */
static inline void ptx_account(struct ptx_warp *w, uint32_t upto)
{
    w->x->lane_instructions += (uint64_t)(upto - w->base) * PTX_LANES;
}

/*
 * Ends the launch with a fault at a lane: code is one of rung_fault's; what goes in front of the
 * place, which is added: "..., block (3,0,0), thread (17,0,0)"; kernel and line stand beside it.
 * Returns NULL, so that handlers can `return ptx_fault(...)`.
 */
const struct ptx_insn *ptx_fault(struct ptx_warp *w, const struct ptx_insn *in, uint32_t lane,
                                 const char *code, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Fault of an access of `bytes` bytes at `address` that no segment allows. */
const struct ptx_insn *ptx_memory_fault(struct ptx_warp *w, const struct ptx_insn *in,
                                        uint32_t lane, uint64_t address, uint32_t bytes);

/* Splits the running lanes at a branch: `taken` go to in->target, the others on. Returns NULL. */
const struct ptx_insn *ptx_diverge(struct ptx_warp *w, const struct ptx_insn *in, uint32_t taken);

/*
 * Lanes that must be together at a warp-wide instruction: NULL when some of `members` are alive
 * elsewhere and were made to wait for, else `in`.
 */
const struct ptx_insn *ptx_gather(struct ptx_warp *w, const struct ptx_insn *in, uint32_t members);

/* Arrival at a barrier; see sched.c. */
const struct ptx_insn *ptx_arrive(struct ptx_warp *w, const struct ptx_insn *in, uint32_t predicate,
                                  int waits);

/* The running lanes exit. Returns NULL. */
const struct ptx_insn *ptx_exit(struct ptx_warp *w, const struct ptx_insn *in);

/* The cluster's barrier; see sched.c. */
const struct ptx_insn *ptx_cluster_arrive(struct ptx_warp *w, const struct ptx_insn *in);
const struct ptx_insn *ptx_cluster_wait(struct ptx_warp *w, const struct ptx_insn *in);

/* A call of the device's printf; see print.c. */
const struct ptx_insn *ptx_print(struct ptx_warp *w, const struct ptx_insn *in);

/*
 * Segment and host address of a generic access of one lane, or NULL. Local addresses are answered
 * with the lane's own memory.
 */
uint8_t *ptx_resolve(struct ptx_warp *w, uint32_t lane, uint64_t address, uint32_t bytes,
                     int writes);

/* Atomic operation numbers (ptx_insn.sub, low 5 bits; bit 5: the result is unused). */
enum ptx_atom {
    PTX_ATOM_ADD = 0,
    PTX_ATOM_ADD_F32,
    PTX_ATOM_ADD_F64,
    PTX_ATOM_MIN_U,
    PTX_ATOM_MIN_S,
    PTX_ATOM_MAX_U,
    PTX_ATOM_MAX_S,
    PTX_ATOM_AND,
    PTX_ATOM_OR,
    PTX_ATOM_XOR,
    PTX_ATOM_EXCH,
    PTX_ATOM_CAS,
    PTX_ATOM_INC,
    PTX_ATOM_DEC,
    PTX_ATOM_ADD_F16X2,
    PTX_ATOM_ADD_BF16X2,
    PTX_ATOM_ADD_F16,
    PTX_ATOM_ADD_BF16,
};

/* Elements of the _x memory operations and of ldl/stl (ptx_insn.sub). */
enum ptx_element { PTX_E_U8 = 0, PTX_E_S8, PTX_E_U16, PTX_E_S16, PTX_E_32, PTX_E_64 };

enum ptx_shuffle { PTX_SHFL_UP = 0, PTX_SHFL_DOWN, PTX_SHFL_BFLY, PTX_SHFL_IDX };
enum ptx_vote { PTX_VOTE_ALL = 0, PTX_VOTE_ANY, PTX_VOTE_UNI };
enum ptx_redux {
    PTX_REDUX_ADD = 0,
    PTX_REDUX_MIN_U,
    PTX_REDUX_MIN_S,
    PTX_REDUX_MAX_U,
    PTX_REDUX_MAX_S,
    PTX_REDUX_AND,
    PTX_REDUX_OR,
    PTX_REDUX_XOR
};

/*
 * A tensor operation's form, packed into ptx_insn.second. mma: sub is the number of n8 halves (1 or
 * 2), types are ptx_type of the inputs and of accumulators c and d. Tiles: which matrix, its type,
 * its order.
 */
struct ptx_tile {
    uint8_t k;    /* mma: depth */
    uint8_t type; /* of a and b, or of the tile's elements */
    uint8_t c, d; /* mma: types of accumulators; tile: c is 'a', 'b' or 'c', d is 1 for columns */
};

static inline int32_t ptx_tile_pack(struct ptx_tile t)
{
    return (int32_t)((uint32_t)t.k | (uint32_t)t.type << 8 | (uint32_t)t.c << 16 |
                     (uint32_t)t.d << 24);
}

static inline struct ptx_tile ptx_tile_of(const struct ptx_insn *in)
{
    const uint32_t v = (uint32_t)in->second;

    return (struct ptx_tile){(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
}

/* Bytes of an element of a memory instruction, and how many elements a lane moves. */
uint32_t ptx_element_bytes(const struct ptx_insn *in);
uint32_t ptx_element_count(const struct ptx_insn *in);

/* The isa-level objects fill their part of the tables. */
#define PTX_DECLARE_LEVEL(level)                                                                   \
    void ptx_fill_lane_##level(struct ptx_isa *isa);                                               \
    void ptx_fill_float_##level(struct ptx_isa *isa);                                              \
    void ptx_fill_memory_##level(struct ptx_isa *isa);                                             \
    void ptx_fill_atomic_##level(struct ptx_isa *isa);                                             \
    void ptx_fill_tensor_##level(struct ptx_isa *isa);                                             \
    void ptx_fill_warp_##level(struct ptx_isa *isa);
void ptx_fill_control(struct ptx_isa *isa);
void ptx_fill_async(struct ptx_isa *isa);
PTX_DECLARE_LEVEL(base)
PTX_DECLARE_LEVEL(v3)
PTX_DECLARE_LEVEL(v4)

#endif
