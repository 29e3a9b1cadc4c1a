/*
 * rung/host.h - host services beyond the basic table, got by id through host->get_extension.
 * A NULL answer means that this process does not offer the service.
 */
#ifndef RUNG_HOST_H
#define RUNG_HOST_H

#include <rung/bundle.h>
#include <rung/codegen.h>
#include <rung/compiler.h>
#include <rung/device.h>
#include <rung/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rung.host.plan/0: the plan language, owned by the core ------------------------------------
 */

#define RUNG_HOST_PLAN "rung.host.plan/0"

struct rung_host_plan {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [any] Reads the `//@` lines of a source into a plan for this task. The text between //@ and
     * the line's end is the plan language (docs/plans.md). When the text is wrong, returns RUNG_OK,
     * sets *plan to NULL and *problem to lines "file:line: what, remedy". Results are in
     * call->arena.
     */
    int32_t (*parse)(const struct rung_host *, struct rung_call *, const struct rung_task *,
                     const char *file, struct rung_text source, const struct rung_plan **plan,
                     struct rung_text *problem);
};

/* ---- rung.host.process/0: helper processes ------------------------------------------------------
 */

#define RUNG_HOST_PROCESS "rung.host.process/0"
#define RUNG_HELPER "rung.helper/0" /* a factory's extension id */

/*
 * What a factory offers to `rung helper`. The helper process is single-threaded and never loads a
 * GPU driver. It calls init once, then forks for every request; serve runs in the child under the
 * request's limits and may crash, hang or eat memory without harm.
 */
struct rung_helper_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /* [main, in the helper] Loads libraries, reads headers, warms up. args: the opener's bytes. */
    int32_t (*init)(const struct rung_host *, struct rung_text args, struct rung_error *,
                    void **state);
    /* [main, in the forked child] No file can be opened. Response in call->arena. */
    int32_t (*serve)(void *state, struct rung_call *, struct rung_text request,
                     struct rung_text *response);
    /*
     * [main, in the helper, before a child is forked] Optional. Makes what children are to share.
     * request: the one that was answered last, as hostile as ever; empty at first. May take its
     * time: nobody waits but a request that comes meanwhile.
     */
    void (*prepare)(void *state, struct rung_text request);
};

struct rung_helper; /* opaque */

struct rung_helper_request {
    uint32_t struct_size;
    uint32_t reserved;
    struct rung_text body;
    uint64_t wall_ms;        /* 0: no limit of its own */
    uint64_t memory_bytes;   /* address space over what the helper already has; 0: no limit */
    uint64_t response_bytes; /* cap; 0: 64 MiB */
};

enum rung_helper_outcome {
    RUNG_HELPER_DONE = 0,
    RUNG_HELPER_TIMEOUT = 1,
    RUNG_HELPER_CRASHED = 2,   /* detail: the signal or status */
    RUNG_HELPER_TOO_LARGE = 3, /* the response passed its cap */
    RUNG_HELPER_MEMORY = 4,    /* reported by serve as RUNG_ENOMEM */
};

struct rung_helper_response {
    uint32_t struct_size;
    uint32_t outcome;        /* rung_helper_outcome */
    struct rung_text body;   /* in call->arena; valid when outcome is DONE */
    struct rung_text detail; /* for people, when it is not DONE */
};

struct rung_host_process {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [worker] Starts `rung helper` for the plugin file that this instance came from. Returns after
     * the helper's init: its failure is this call's failure, with its message.
     */
    int32_t (*open)(const struct rung_host *, struct rung_call *, struct rung_text args,
                    struct rung_helper **out);
    /* [worker, one request at a time a helper] A helper that died is an RUNG_EUNAVAILABLE. */
    int32_t (*request)(const struct rung_host *, struct rung_call *, struct rung_helper *,
                       const struct rung_helper_request *, struct rung_helper_response *out);
    /* [worker] Ends the helper and its children. NULL is fine. */
    void (*close)(const struct rung_host *, struct rung_helper *);
};

/* ---- rung.host.compile/0: the pipeline's compiler, for plugins with kernels of their own -- */

#define RUNG_HOST_COMPILE "rung.host.compile/0"

struct rung_host_compile {
    uint32_t struct_size;
    uint32_t reserved;
    /* [worker, in executors] As rung_compiler_ops.compile, of the pipeline's compiler. */
    int32_t (*compile)(const struct rung_host *, struct rung_call *,
                       const struct rung_compile_request *, struct rung_compile_result *out);
};

/* ---- rung.host.device/0: the worker's device, for references and baselines ----
 * Never while a candidate's launches are queued: the core calls these plugins only between runs.
 */

#define RUNG_HOST_DEVICE "rung.host.device/0"

struct rung_host_device {
    uint32_t struct_size;
    uint32_t reserved;
    /* [worker, in executors] The device's own functions and what they want as `self`; NULL before
     * the device has started. Launches are faulted as ever: a fault is the plugin's own. */
    const struct rung_device_ops *(*ops)(const struct rung_host *, void **self);
    /* [worker, in executors] The device's description. */
    const struct rung_device_info *(*info)(const struct rung_host *);
    /*
     * [worker, in executors] Compiles CUDA source of the plugin's own for the device, keeps the
     * result on disk for later processes where it can, and loads it. name: for messages. kernels:
     * name expressions, NULL-terminated; *artifact has them in that order and lives as long as the
     * host. The module is unloaded by the caller.
     */
    int32_t (*load)(const struct rung_host *, struct rung_call *, const char *name,
                    struct rung_text source, const char *const *kernels,
                    const struct rung_artifact **artifact, struct rung_module **module);
};

/* ---- rung.host.program/0: a program of the user's that answers lines, such as Python with torch
 * ----
 */

#define RUNG_HOST_PROGRAM "rung.host.program/0"

struct rung_program; /* opaque */

/* One run of a program, for run_once. */
struct rung_program_run {
    uint32_t struct_size;
    uint32_t reserved;
    const char *const *argv;      /* NULL-terminated; as for open */
    const char *const *extra_env; /* "NAME=value", NULL-terminated, or NULL */
    struct rung_text input;       /* any bytes; len 0: its standard input is empty */
    uint64_t max_output;          /* bytes of its standard output; 0: 64 MiB */
};

struct rung_program_result {
    uint32_t struct_size;
    int32_t status;          /* 0..255 as it exited, or 128 + the signal that ended it */
    struct rung_text output; /* in call->arena; bytes as written, not checked to be UTF-8 */
    struct rung_text errors; /* in call->arena; the last 4 KiB of its standard error */
};

struct rung_host_program {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [worker] Starts argv[0] (looked for in PATH unless it has a '/'), NULL-terminated, without a
     * shell, in its own process group, with its standard error passed to the log and descriptors 0
     * and 1 as pipes to this process. It ends with this process. extra_env: "NAME=value" texts
     * beyond the environment, NULL-terminated, or NULL. RUNG_EUNAVAILABLE: no such program.
     */
    int32_t (*open)(const struct rung_host *, struct rung_call *, const char *const *argv,
                    const char *const *extra_env, struct rung_program **out);
    /*
     * [worker, one exchange at a time a program] Sends one line and gives back the next line that
     * the program writes (without its newline, in call->arena), at most max_bytes (0: 64 MiB) long.
     * Obeys call->deadline_ns and call->cancel: the program is killed then. RUNG_EUNAVAILABLE: it
     * ended; the message has the last of its standard error. line holds no newline.
     */
    int32_t (*exchange)(const struct rung_host *, struct rung_call *, struct rung_program *,
                        struct rung_text line, uint64_t max_bytes, struct rung_text *answer);
    /* [worker] Closes its input, waits up to 2 s, then kills its group. NULL is fine. */
    void (*close)(const struct rung_host *, struct rung_program *);
    /*
     * [worker] One program from its start to its end, started as by open: input goes to its
     * standard input, which is then closed, and its standard output is kept until it closes that
     * and ends. Input that the program doesn't read is no error. Obeys call->deadline_ns and
     * call->cancel: the program's group is killed then. A status other than 0 is data. On an error
     * too, out->output and out->errors hold what had come.
     *   RUNG_EINVAL       program.run       no argv[0], or a struct_size that fits no version
     *   RUNG_EUNAVAILABLE program.start     no such program, or it can't be executed
     *   RUNG_ETIMEOUT     program.deadline  RUNG_ECANCELLED  program.cancelled
     *   RUNG_EIO          program.too_large more output than max_output
     */
    int32_t (*run_once)(const struct rung_host *, struct rung_call *,
                        const struct rung_program_run *, struct rung_program_result *out);
};

/* ---- rung.host.artifact/0: keep bytes with the run ---- */

#define RUNG_HOST_ARTIFACT "rung.host.artifact/0"

struct rung_host_artifact {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [worker] Stores bytes with the variant under judgement; name is [a-z0-9_.-]{1,63}, kept in
     * the journal. sha256_hex receives 65 bytes. At most 64 MiB each.
     */
    int32_t (*put)(const struct rung_host *, struct rung_call *, const char *name,
                   const void *bytes, uint64_t n, char *sha256_hex);
};

/* ---- rung.host.rng/0: counter-based random numbers ---- */

#define RUNG_HOST_RNG "rung.host.rng/0"

struct rung_host_rng {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [any] Philox4x32-10 (Salmon et al., SC 2011): out[i] = word i%4 of block i/4 of stream
     * (seed, stream), from index `first` on. The same on every machine.
     */
    void (*words)(uint64_t seed, uint64_t stream, uint64_t first, uint32_t *out, uint64_t n);
};

#ifdef __cplusplus
}
#endif
#endif
