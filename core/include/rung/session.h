/*
 * rung/session.h - one variant on one device, as verifiers and timers see it: the only way to
 * buffers and launches. The core owns every buffer, poisons outputs and temps before each run, and
 * keeps expected results out of the candidate's reach until it has finished.
 */
#ifndef RUNG_SESSION_H
#define RUNG_SESSION_H

#include <rung/device.h>
#include <rung/reference.h>
#include <rung/task.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rung_run_flag {
    RUNG_RUN_COUNTERS = 1u << 0, /* count; result.counters is filled (device must have COUNTERS) */
    /*
     * Execute only about sample_blocks blocks of each launch. Inputs repeat a block of the fill,
     * temps are zero; outputs are meaningless and can't be compared.
     */
    RUNG_RUN_SAMPLED = 1u << 1,
    RUNG_RUN_TIMED = 1u << 2,       /* result.elapsed_ns is filled (device must have MEASURES) */
    RUNG_RUN_KEEP_INPUTS = 1u << 3, /* skip the comparison of inputs afterwards (timing only) */
    /*
     * Before each repeat the device's caches are emptied, without waiting for it: they hold nothing
     * of the task, and the launches queue up behind it (device must have MEASURES).
     */
    RUNG_RUN_COLD = 1u << 4,
    /*
     * Variables of module scope keep what the run before left in them. Without it they are what the
     * code says at the start of each run (not of each repeat), where the device has `reset`.
     */
    RUNG_RUN_KEEP_STATE = 1u << 5,
};

/*
 * How a tensor is drawn. Every fill is a function of (seed, tensor index, element index) alone, the
 * same bits on every machine. Floating values are made in float64 and rounded to the dtype.
 *   "normal"      N(0,1): Box-Muller on Philox words
 *   "uniform"     U[0,1)
 *   "signed"      U[-1,1)
 *   "offset"      1000 + N(0,1): cancellation
 *   "large"       1e4 * N(0,1);  "small" 1e-6 * N(0,1)
 *   "zeros" "ones"
 *   "equal_rows"  along the last axis all elements are equal, a different normal a row
 *   "onehot_rows" along the last axis one element is 30, the others 0, its place random
 *   "ramp"        element index modulo 97, minus 48, over 16
 *   "integers"    whole numbers -8..8
 * Integer dtypes: whole numbers of the same range, truncated; bool: word & 1.
 * scale and shift apply after drawing: v * scale + shift (scale 0 means 1).
 */
struct rung_fill {
    uint32_t struct_size;
    uint32_t tensor;  /* index in the task */
    const char *kind; /* NULL: the task's fill of that tensor */
    double scale;
    double shift;
    const void *bytes; /* not NULL: exactly these bytes, n_bytes = the tensor's size */
    uint64_t n_bytes;
};

struct rung_run_request {
    uint32_t struct_size;
    uint32_t flags;      /* rung_run_flag */
    const int64_t *dims; /* dims vector; must satisfy the task's constraints (RUNG_EINVAL) */
    uint64_t seed;
    const struct rung_fill *fills; /* tensors not named use the task's fill */
    uint32_t n_fills;
    uint32_t repeats;       /* runs of the whole plan, poisoned anew before each; 0 means 1 */
    uint32_t sample_blocks; /* SAMPLED */
    /*
     * TIMED: sets of buffers; each has inputs of its own. Before every sample all sets get inputs
     * that no launch saw before and poisoned outputs and temps, so that nothing kept from an
     * earlier launch is of use. 0 means 1.
     */
    uint32_t sets;
    /* TIMED: executions of the plan in one sample, back to back, each on another set (so at most
     * `sets`); samples_ns is a sample's time over it. More than 1 needs a device with graphs. 0
     * means 1. */
    uint32_t batch;
    /* TIMED: repeats, chosen at random, the last always among them, after which the outputs of one
     * set are compared with the reference; what is wrong is in out->fault. 0: none. */
    uint32_t verify;
};

/* One run; owned by the session, freed by end(). */
struct rung_run {
    uint32_t struct_size;
    uint32_t n_launches; /* steps that launched, in one repeat; a `zero` is one named "memset" */
    struct rung_fault fault; /* code "" when it ran */
    uint32_t modified_input; /* 1 + index of an input tensor that the kernel changed; 0 none */
    uint32_t guard_broken;   /* 1 + index of a tensor or temp written outside its memory; 0 none */
    uint32_t n_counters;     /* = n_launches with COUNTERS */
    uint32_t reserved;
    const struct rung_counters *counters;  /* one a launch */
    const char *const *kernels;            /* each launch's, as the plan names it */
    const struct rung_launch_facts *facts; /* one a launch */
    double elapsed_ns;                     /* TIMED: one repeat, mean */
    uint64_t host_ns;                      /* wall time of launches and sync */
    void *ctx;                             /* the session's */
    const double *samples_ns;              /* TIMED: one a repeat, in order; NULL otherwise */
    uint32_t n_samples;                    /* = repeats with TIMED */
    uint32_t reserved2;
    /* TIMED: the same events with nothing between them, median; of a batch: around a graph of as
     * many settings of one word, over their number. */
    double floor_ns;
    uint32_t n_verified; /* TIMED: comparisons made, all of them good unless fault says otherwise */
    uint32_t reserved3;
    uint64_t set_bytes;                         /* TIMED: tensors and temps of one set */
    struct rung_device_condition before, after; /* TIMED: around the samples */
};

/* What a launch was, for models and reports. */
struct rung_launch_facts {
    uint32_t struct_size;
    uint32_t shared_bytes; /* dynamic + static */
    struct rung_dim3 grid, block;
    uint32_t registers; /* a thread; 0 not known */
    uint32_t spill_bytes;
};

/* Result of comparing one output with the reference; all in float64. */
struct rung_comparison {
    uint32_t struct_size;
    uint32_t tensor;
    uint64_t n;            /* elements */
    uint64_t n_bad;        /* outside the bound, or wrong kind of inf/NaN, or unwritten */
    uint64_t n_unwritten;  /* still poison */
    uint64_t n_nan, n_inf; /* in the output where the reference is finite */
    uint64_t n_missing;    /* reference has NaN or inf there and the output does not match it */
    uint64_t first_bad;    /* flat index; n when none */
    double first_got, first_want, first_bound;
    double max_abs, max_rel; /* rel: |got - want| / |want| where want != 0 */
    uint64_t max_abs_at, max_rel_at;
    double rmse;
    double psnr;   /* dB against the reference's peak magnitude; inf when rmse is 0 */
    double cosine; /* of the two vectors; 1 when both are zero */
    double worst;  /* largest |error| / bound; <= 1 passes */
    double
        worst_half; /* the same against the bound that fp16-like arithmetic (2^-11) would explain */
    double fraction_out; /* n_bad / n */
};

enum rung_session_flag {
    /* Whole outputs are compared where they lie, so that boxes save nothing: see compare_fast. */
    RUNG_SESSION_FAST_COMPARE = 1u << 0,
};

struct rung_session {
    uint32_t struct_size;
    uint32_t reserved;
    const struct rung_task *task;
    const struct rung_device_info *device;
    const struct rung_artifact *artifact; /* NULL for a baseline */
    void *ctx; /* the core's */

    /*
     * [worker] Draws inputs, poisons outputs and temps (a signalling pattern that no honest
     * computation yields), launches the plan, compares inputs afterwards, checks guards. A fault of
     * the kernel is in out->fault. When the plan does not fit the dims (a tune point's `where` is
     * false, an expression fails) fault.code is "plan.error".
     */
    int32_t (*run)(const struct rung_session *, struct rung_call *, const struct rung_run_request *,
                   struct rung_run **out);
    /*
     * [worker] Compares one output with the reference at the run's inputs. Computes the reference
     * on first use, only after the launches. RUNG_EINVAL for a sampled or faulted run.
     */
    int32_t (*compare)(const struct rung_session *, struct rung_call *, struct rung_run *,
                       uint32_t tensor, struct rung_comparison *out);
    /* [worker] Reference values and bounds of one output of the run. */
    int32_t (*expected)(const struct rung_session *, struct rung_call *, struct rung_run *,
                        uint32_t tensor, struct rung_reference_output *out);
    /* [worker] Read-only host view of a tensor after the run, valid until end(). */
    int32_t (*map)(const struct rung_session *, struct rung_call *, struct rung_run *,
                   uint32_t tensor, struct rung_tensor_view *out);
    /* [worker] Whether two runs left the same bits in all outputs (for nondeterminism). */
    int32_t (*same_bits)(const struct rung_session *, struct rung_call *, struct rung_run *a,
                         struct rung_run *b, uint32_t *same);
    /* [worker] Shape of a task tensor at some dims; shape[RUNG_MAX_DIMS]. */
    int32_t (*shape)(const struct rung_session *, uint32_t tensor, const int64_t *dims,
                     int64_t *shape);
    /* [worker] Whether dims satisfy the task's constraints; derived dims are filled in. */
    int32_t (*complete_dims)(const struct rung_session *, int64_t *dims);
    /* [worker] Least work at some dims, from the reference plugin. */
    int32_t (*work)(const struct rung_session *, struct rung_call *, const int64_t *dims,
                    struct rung_work *out);
    /* [worker] Frees a run. NULL is fine. */
    void (*end)(const struct rung_session *, struct rung_run *);
    /*
     * [worker] compare and expected for a box of one output: only what the box needs is computed,
     * so that rows and tiles of a huge output cost little. RUNG_EINVAL for a box that does not lie
     * inside. Indices in the comparison are flat in the whole output; its n is the box's.
     */
    int32_t (*compare_region)(const struct rung_session *, struct rung_call *, struct rung_run *,
                              uint32_t tensor, const struct rung_region *,
                              struct rung_comparison *out);
    int32_t (*expected_region)(const struct rung_session *, struct rung_call *, struct rung_run *,
                               uint32_t tensor, const struct rung_region *,
                               struct rung_reference_output *out);
    uint32_t flags; /* rung_session_flag */
    uint32_t reserved2;
    /*
     * [worker] compare, but never on the host: RUNG_EUNSUPPORTED or RUNG_ENOMEM where the device
     * can't compute the reference (always without RUNG_SESSION_FAST_COMPARE), so that the caller
     * can look at boxes of a huge output instead.
     */
    int32_t (*compare_fast)(const struct rung_session *, struct rung_call *, struct rung_run *,
                            uint32_t tensor, struct rung_comparison *out);
};

#ifdef __cplusplus
}
#endif
#endif
