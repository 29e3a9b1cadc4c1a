/*
 * rung/device.h - something that runs artifacts: a GPU through the driver API, or an interpreter.
 *
 * One instance belongs to one executor process and is used by one thread at a time. Only the
 * core's session calls it; verifiers and timers never see a device.
 */
#ifndef RUNG_DEVICE_H
#define RUNG_DEVICE_H

#include <rung/bundle.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rung_device_flag {
    /* Every access outside a live buffer faults exactly: the core adds no guard zones. */
    RUNG_DEVICE_EXACT_BOUNDS = 1u << 0,
    /* Launches report rung_counters; blocks can be sampled. */
    RUNG_DEVICE_COUNTERS = 1u << 1,
    /* Elapsed time between events is real. Without it only modelled times exist. */
    RUNG_DEVICE_MEASURES = 1u << 2,
    /* map() returns host memory. */
    RUNG_DEVICE_HOST_MEMORY = 1u << 3,
    /* Reads of bytes never written are reported. */
    RUNG_DEVICE_UNINITIALISED = 1u << 4,
};

struct rung_device_info {
    uint32_t struct_size;
    uint32_t flags;        /* rung_device_flag */
    const char *name;      /* "ptx interpreter (avx512)", "NVIDIA H200" */
    const char *id;        /* stable and unique: GPU UUID; "ptx" */
    uint32_t format;       /* rung_format that load() wants */
    uint32_t sm_count;     /* what `sm_count` means in plans */
    const char *arch;      /* target of compile for that format: "compute_90", "sm_90" */
    uint64_t memory_bytes; /* that may be allocated */
    uint32_t max_threads_per_block;
    uint32_t max_shared_bytes; /* dynamic + static, a block */
    uint32_t l2_bytes;
    uint32_t reserved;
    const char *driver; /* version text */
    /* What the driver says of the hardware; 0 where it doesn't. */
    uint32_t compute_major, compute_minor;
    uint32_t sm_khz, memory_khz; /* highest clocks */
    uint32_t memory_bus_bits;
    uint32_t ordinal; /* among the devices that this plugin could have taken */
};

struct rung_buffer; /* the plugin's */
struct rung_module; /* the plugin's */

/*
 * What went wrong in a launch; data, not an error. code is "" when nothing did, else one of the
 * stable codes: launch.error launch.resources run.timeout run.crash mem.out_of_bounds
 * mem.misaligned mem.uninitialised mem.race sync.divergent_barrier sync.inactive_lane
 * sync.deadlock device.unsupported device.memory device.lost.
 */
struct rung_fault {
    uint32_t struct_size;
    uint32_t line; /* source line, 0 = not known */
    char code[32];
    char kernel[128];
    char message[768]; /* for the model: what, where, which thread, how far outside which buffer */
    uint32_t block[3];
    uint32_t thread[3];
    uint64_t address;
    uint32_t sticky; /* 1: the device can't be used again by this process */
    uint32_t reserved;
};

/*
 * Counters of one launch. "Lane" counts active lanes, "warp" counts issued warp instructions, in
 * PTX instructions. With sampling they cover `blocks` of `grid_blocks`; the reader scales.
 */
struct rung_counters {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t grid_blocks, blocks; /* all, executed */
    uint64_t threads_per_block;
    uint64_t warp_instructions, lane_instructions;
    uint64_t warp_fp32, warp_fp64, warp_int, warp_special, warp_tensor, warp_branch, warp_barrier;
    uint64_t lane_flops_fp32;                             /* fma = 2 */
    uint64_t global_loads, global_stores, global_atomics; /* warp requests */
    uint64_t shared_loads, shared_stores;                 /* warp requests */
    uint64_t shared_wavefronts; /* after bank conflicts, 32 banks of 4 bytes */
    uint64_t global_sectors_read, global_sectors_written; /* 32-byte sectors, summed a request */
    uint64_t global_lines; /* distinct 128-byte lines a request, summed */
    uint64_t unique_sectors_read, unique_sectors_written; /* distinct a block, summed over blocks */
    uint64_t local_loads, local_stores;
};

enum rung_launch_flag {
    /* All blocks are resident at once, so that grid-wide barriers end; else launch.resources. */
    RUNG_LAUNCH_COOPERATIVE = 1u << 0,
};

/* shared_bytes: dynamic. params: param_bytes bytes packed at the kernel's offsets. */
struct rung_launch {
    uint32_t struct_size;
    uint32_t shared_bytes;
    struct rung_module *module;
    const struct rung_kernel *kernel;
    struct rung_dim3 grid, block;
    const void *params;
    uint32_t param_bytes;
    uint32_t sample_blocks; /* 0: all; n: about n blocks spread over the grid (COUNTERS only) */
    uint64_t max_lane_instructions; /* 0: device default; more ends as run.timeout */
    struct rung_counters *counters; /* NULL: don't count (faster) */
    struct rung_dim3 cluster;       /* blocks a cluster; 0, 0, 0: as the code says */
    uint32_t flags;                 /* rung_launch_flag */
};

struct rung_device_event; /* the plugin's */
struct rung_graph;        /* the plugin's */

/* Why a GPU's clock is held down (NVML's clocks event reasons, by meaning). */
enum rung_throttle {
    RUNG_THROTTLE_POWER = 1u << 0,    /* software power cap */
    RUNG_THROTTLE_THERMAL = 1u << 1,  /* software or hardware thermal slowdown */
    RUNG_THROTTLE_HARDWARE = 1u << 2, /* hardware slowdown or power brake */
    RUNG_THROTTLE_SETTING = 1u << 3,  /* clocks set by someone, or synchronised boost */
};

/* State of a GPU at one moment; 0 where the driver does not say. */
struct rung_device_condition {
    uint32_t struct_size;
    uint32_t throttle;                 /* rung_throttle */
    uint32_t sm_mhz, sm_mhz_max;       /* now; the most that it may take */
    uint32_t memory_mhz, celsius;      /* now */
    uint32_t milliwatt, milliwatt_cap; /* now; enforced limit */
    uint32_t other_processes;          /* that compute on it besides this one */
    uint32_t known;                    /* 1: the driver's management library answered */
};

/* Handles of the driver's own, for libraries that queue work themselves. */
enum rung_native {
    RUNG_NATIVE_CONTEXT = 1, /* CUcontext, current on the calling thread afterwards */
    RUNG_NATIVE_STREAM = 2,  /* CUstream that every operation below queues on */
    RUNG_NATIVE_ORDINAL = 3, /* index among the GPUs that the driver shows */
};

/* A tensor map of the bulk copy engine (CUDA driver API, cuTensorMapEncodeTiled). */
enum { RUNG_TENSORMAP_BYTES = 128, RUNG_TENSORMAP_DIMS = 5 };
struct rung_tensormap {
    uint32_t struct_size;
    uint32_t dtype;                         /* rung_dtype */
    uint32_t n_dims;                        /* 1..5; [0] is the fastest */
    uint32_t swizzle;                       /* bytes: 0, 32, 64, 128 */
    uint32_t l2_promotion;                  /* bytes: 0, 64, 128, 256 */
    uint32_t fill_nan;                      /* 1: out of bounds reads as NaN, else 0 */
    uint64_t address;                       /* of element 0; a multiple of 16 */
    uint64_t dims[RUNG_TENSORMAP_DIMS];     /* elements */
    uint64_t strides[RUNG_TENSORMAP_DIMS];  /* bytes between neighbours along dim i; [0] unused */
    uint32_t box[RUNG_TENSORMAP_DIMS];      /* elements */
    uint32_t elements[RUNG_TENSORMAP_DIMS]; /* traversal strides, 1 = all */
};

struct rung_device_ops {
    uint32_t struct_size;
    uint32_t reserved;

    /* [worker, started] Texts live until stop. */
    int32_t (*info)(void *self, struct rung_call *, struct rung_device_info *out);

    /*
     * [worker, started] alloc: `bytes` > 0 bytes at an address that is a multiple of `align` (power
     * of two, at most 4096). Contents are undefined (and count as never written). RUNG_ENOMEM when
     * the device has no room. free accepts NULL. `label` names the buffer in fault messages.
     */
    int32_t (*alloc)(void *self, struct rung_call *, uint64_t bytes, uint64_t align,
                     const char *label, struct rung_buffer **out);
    void (*free)(void *self, struct rung_buffer *);
    /* [worker, started] Device address, as kernels see it. */
    uint64_t (*address)(void *self, struct rung_buffer *);
    /* [worker, started] Host memory of the buffer, or NULL without RUNG_DEVICE_HOST_MEMORY. */
    void *(*map)(void *self, struct rung_buffer *);
    /* [worker, started] Synchronous copies; ranges must lie inside the buffer (RUNG_EINVAL). */
    int32_t (*write)(void *self, struct rung_call *, struct rung_buffer *, uint64_t offset,
                     const void *from, uint64_t bytes);
    int32_t (*read)(void *self, struct rung_call *, struct rung_buffer *, uint64_t offset, void *to,
                    uint64_t bytes);
    /*
     * [worker, started] Repeats `pattern` (n bytes; 1 <= n) over bytes [offset, offset + bytes). A
     * device may share pages of a repeated pattern whose size is a multiple of the page, so that
     * filling gigabytes costs little. written = 0: the bytes still count as never written (poison).
     */
    int32_t (*fill)(void *self, struct rung_call *, struct rung_buffer *, uint64_t offset,
                    uint64_t bytes, const void *pattern, uint64_t n, uint32_t written);

    /* [worker, started] fault is filled when the code can't be loaded (device.unsupported, ...). */
    int32_t (*load)(void *self, struct rung_call *, const struct rung_artifact *,
                    struct rung_module **out, struct rung_fault *fault);
    void (*unload)(void *self, struct rung_module *);
    /*
     * [worker, started] Queues the launch after all earlier work; may run it at once. A fault of
     * the launch itself is in *fault; a fault of the kernel may come here or at the next sync.
     */
    int32_t (*launch)(void *self, struct rung_call *, const struct rung_launch *,
                      struct rung_fault *fault);
    int32_t (*sync)(void *self, struct rung_call *, struct rung_fault *fault);

    /* [worker, started] MEASURES only, else NULL: events of the launch stream. elapsed in ns. */
    int32_t (*event_new)(void *self, struct rung_call *, struct rung_device_event **out);
    void (*event_free)(void *self, struct rung_device_event *);
    int32_t (*event_record)(void *self, struct rung_call *, struct rung_device_event *);
    int32_t (*event_elapsed)(void *self, struct rung_call *, struct rung_device_event *from,
                             struct rung_device_event *to, double *ns);

    /*
     * [worker, started] The three below may be NULL: then plans with `symbol` are
     * device.unsupported and variables of module scope keep what a run left in them.
     * reset: every variable of module scope is again what the code says.
     * symbol: the memory of one (`name` as in the code: lowered), as a buffer that unload() frees;
     * *bytes its size. RUNG_ENOTFOUND. copy: queued after earlier work like a launch; ranges must
     * lie inside the buffers.
     */
    int32_t (*reset)(void *self, struct rung_call *, struct rung_module *);
    int32_t (*symbol)(void *self, struct rung_call *, struct rung_module *, const char *name,
                      struct rung_buffer **out, uint64_t *bytes);
    int32_t (*copy)(void *self, struct rung_call *, struct rung_buffer *to, uint64_t to_offset,
                    struct rung_buffer *from, uint64_t from_offset, uint64_t bytes);

    /*
     * [worker, started] Graphs; all four or none. Between capture and captured, launch, fill, copy
     * and whoever queues on the native stream are recorded and not run; nothing else may be called.
     * captured: *out NULL with a fault when what was recorded can't be replayed. replay is queued
     * like a launch.
     */
    int32_t (*capture)(void *self, struct rung_call *);
    int32_t (*captured)(void *self, struct rung_call *, struct rung_graph **out,
                        struct rung_fault *fault);
    int32_t (*replay)(void *self, struct rung_call *, struct rung_graph *,
                      struct rung_fault *fault);
    void (*graph_free)(void *self, struct rung_graph *);
    /*
     * [worker, started] MEASURES, may be NULL: queued like a launch; afterwards no line of any
     * buffer is in the last-level cache, none of it waits to be written back, and no part of it is
     * set aside for persisting accesses.
     */
    int32_t (*flush)(void *self, struct rung_call *);
    /* [worker, started] MEASURES, may be NULL. Never fails for what the driver doesn't tell. */
    int32_t (*condition)(void *self, struct rung_call *, struct rung_device_condition *out);
    /* [worker, started] May be NULL; a handle of rung_native, or 0. */
    uint64_t (*native)(void *self, uint32_t what);
    /* [worker, started] May be NULL: no tensor maps. Encodes into RUNG_TENSORMAP_BYTES bytes at
     * `out`; a map that the hardware can't take is a fault (plan.error) that says why. */
    int32_t (*tensormap)(void *self, struct rung_call *, const struct rung_tensormap *, void *out,
                         struct rung_fault *fault);
};

#ifdef __cplusplus
}
#endif
#endif
