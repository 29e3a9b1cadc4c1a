/*
 * rung/plugin.h - the plugin ABI: entry point, descriptor, factories, options, errors, host.
 *
 * A plugin is a shared object that exports exactly one function, RUNG_PLUGIN_ENTRY, and links
 * nothing of rung: every service of the host arrives through `struct rung_host`. This header and
 * one header a kind (llm.h, codegen.h, compiler.h, device.h, reference.h, verifier.h, timer.h,
 * baseline.h, search.h, examples.h) are all that a plugin may include.
 *
 * Versioning. While the kinds still change, the major is 0 and the draft number must be equal on
 * both sides; the entry is rung_plugin_v0. Version 1 will be the same under the name rung_plugin_v1
 * with "needed minor <= host minor" instead of equality. The rules already hold in both:
 *   - every struct that crosses starts with `struct_size`, the writer's sizeof;
 *   - a reader uses only what both sides know (RUNG_HAS); what is missing reads as zero = default;
 *   - a writer never writes past the struct_size that the owner of the struct has set;
 *   - fields are fixed-width, appended only, never reordered; no enum, bool, long or bit-field;
 *   - struct rung_text and struct rung_dim3 have no size of their own and are frozen for ever.
 *
 * Memory. Neither side frees the other's blocks. Inputs are borrowed for the duration of the call.
 * Results live in the arena of the call (rung_call.arena), which the host owns and resets.
 *
 * Errors. A function that can fail returns a rung_status and fills call->error (or `error`) exactly
 * when it is not RUNG_OK. A wrong kernel, a compile error or a failed check is data, not an error.
 *
 * Threads. Every function carries a tag:
 *   [pure]      any thread, any time, before create too; touches no state
 *   [main]      the host's main thread, never concurrently for the process
 *   [worker]    any thread; concurrency obeys the factory's thread_model
 *   [any]       any thread, concurrently with everything
 * No plugin may call setlocale, setenv, chdir, umask, signal, rand, exit, fork or exec, write to
 * descriptor 1, change the floating-point environment or leave a thread behind after stop().
 */
#ifndef RUNG_PLUGIN_H
#define RUNG_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUNG_ABI_MAJOR 0u
#define RUNG_ABI_DRAFT 4u
#define RUNG_PLUGIN_MAGIC 0x474e5552u /* "RUNG" */
#define RUNG_ENTRY_NAME "rung_plugin_v0"

/* True when `field` of the struct that p points at was written by the other side. */
#define RUNG_HAS(p, field)                                                                         \
    ((p)->struct_size >= offsetof(__typeof__(*(p)), field) + sizeof((p)->field))

/* UTF-8 text. ptr is never NULL for a present text and ptr[len] is always 0. Frozen. */
struct rung_text {
    const char *ptr;
    uint64_t len;
};

struct rung_dim3 { /* frozen */
    uint32_t x, y, z;
};

enum rung_status {
    RUNG_OK = 0,
    RUNG_EINVAL = 1,       /* an argument breaks the contract of the function */
    RUNG_ECONFIG = 2,      /* options or files of the user are wrong */
    RUNG_ENOTFOUND = 3,    /* a named thing does not exist */
    RUNG_EUNSUPPORTED = 4, /* well-formed, but not something that this plugin does */
    RUNG_ENOMEM = 5,
    RUNG_EIO = 6,
    RUNG_ETIMEOUT = 7,
    RUNG_ECANCELLED = 8,
    RUNG_ERATELIMIT = 9,
    RUNG_EUNAVAILABLE = 10, /* a device, library, server or driver is not there */
    RUNG_EBUDGET = 11,
    RUNG_EMISUSE = 12, /* the other side broke this contract */
    RUNG_EINTERNAL = 13,
};

/* Caller-allocated; filling it never allocates. */
struct rung_error {
    uint32_t struct_size;
    int32_t code; /* rung_status */
    uint32_t retry_after_ms;
    uint32_t reserved;
    char symbol[64];    /* stable dotted name, such as "nvrtc.not_found"; may be empty */
    char message[1024]; /* for people: what failed, which file, what to do */
};

struct rung_arena;   /* opaque, host-owned, used by one thread at a time */
struct rung_cancel;  /* opaque cancellation token */
struct rung_options; /* opaque, validated option set */
struct rung_map;     /* opaque typed map, see rung_host.map_* */

/* What every operation receives besides its arguments. */
struct rung_call {
    uint32_t struct_size;
    uint32_t reserved;
    struct rung_arena *arena;   /* results go here */
    struct rung_cancel *cancel; /* may be NULL; poll with host->is_cancelled */
    uint64_t deadline_ns;       /* absolute, host->now_ns clock; 0 = none */
    struct rung_error *error;   /* never NULL */
};

enum rung_log_level {
    RUNG_LOG_DEBUG = 0,
    RUNG_LOG_INFO = 1,
    RUNG_LOG_WARN = 2,
    RUNG_LOG_ERROR = 3
};

/*
 * The host as one plugin instance sees it. Valid from create() until destroy() returns.
 * Further services come through get_extension; see rung/host.h.
 */
struct rung_host {
    uint32_t struct_size;
    uint32_t abi_major;
    uint32_t abi_draft;
    uint32_t reserved;
    const char *name;     /* "rung" */
    const char *version;  /* product version, for messages only */
    const char *data_dir; /* where config/ lies: catalog, prompts, gpus; absolute path */
    void *ctx;            /* the host's; opaque to plugins */

    /* [any] One line of UTF-8, without newline. The host adds kind and instance, and redacts
     * secrets. */
    void (*log)(const struct rung_host *host, uint32_t level, const char *message);
    /* [any] Zeroed block of the arena, or NULL when memory is out. align: power of two <= 64. */
    void *(*alloc)(const struct rung_host *host, struct rung_arena *arena, uint64_t size,
                   uint64_t align);
    /* [any] Monotonic nanoseconds. */
    uint64_t (*now_ns)(const struct rung_host *host);
    /* [any] Non-zero once the call shall end; it must then return RUNG_ECANCELLED within 1 s. */
    int32_t (*is_cancelled)(const struct rung_host *host, const struct rung_cancel *cancel);

    /*
     * [any] Typed option getters. The name must be one of the factory's options and the type must
     * match, else the zero value is returned and API MISUSE is logged. Strings live as long as the
     * option set. For list options, count() and the item getters.
     */
    int64_t (*opt_int)(const struct rung_host *, const struct rung_options *, const char *name);
    double (*opt_float)(const struct rung_host *, const struct rung_options *, const char *name);
    const char *(*opt_string)(const struct rung_host *, const struct rung_options *,
                              const char *name);
    uint32_t (*opt_count)(const struct rung_host *, const struct rung_options *, const char *name);
    const char *(*opt_string_at)(const struct rung_host *, const struct rung_options *,
                                 const char *name, uint32_t index);
    int64_t (*opt_int_at)(const struct rung_host *, const struct rung_options *, const char *name,
                          uint32_t index);

    /*
     * [any, one thread a map] Typed maps for metrics and free-form feedback: they turn into JSON
     * without loss. A new map lives in the arena. set returns RUNG_OK, RUNG_ENOMEM or RUNG_EINVAL
     * (key not [a-z0-9_.]{1,63}). Setting a key again replaces its value.
     */
    struct rung_map *(*map_new)(const struct rung_host *, struct rung_arena *);
    int32_t (*map_set_int)(struct rung_map *, const char *key, int64_t value);
    int32_t (*map_set_float)(struct rung_map *, const char *key, double value);
    int32_t (*map_set_string)(struct rung_map *, const char *key, const char *value);

    /* [any] A service by id ("rung.host.process/0"), or NULL when this host lacks it. */
    const void *(*get_extension)(const struct rung_host *host, const char *id);
};

/* ---- Options ------------------------------------------------------------------------------- */

enum rung_option_type {
    RUNG_OPT_BOOL = 1,
    RUNG_OPT_INT = 2,
    RUNG_OPT_FLOAT = 3,
    RUNG_OPT_STRING = 4,
    RUNG_OPT_ENUM = 5, /* string out of `values` */
    RUNG_OPT_PATH = 6, /* relative to the file that it stands in; "data:" prefix = host data dir */
    RUNG_OPT_DURATION =
        7,              /* text such as "90s", "2h" or a number of seconds; getter: float seconds */
    RUNG_OPT_BYTES = 8, /* text such as "64MiB" or a number; getter: int bytes */
    RUNG_OPT_STRINGS = 9, /* list of strings */
    RUNG_OPT_INTS = 10,   /* list of integers */
    RUNG_OPT_SECRET = 11, /* "env:NAME" or "file:PATH", never the value itself */
};

enum rung_option_flag {
    RUNG_OPT_REQUIRED = 1u << 0,
    RUNG_OPT_ADVANCED = 1u << 1,
    RUNG_OPT_AFFECTS_RESULT = 1u << 2, /* part of the hash that decides whether results compare */
};

/* One option: the only source for validation, defaults, `rung plugin info` and the docs. */
struct rung_option {
    uint32_t struct_size;
    uint32_t type;  /* rung_option_type */
    uint32_t flags; /* rung_option_flag */
    uint32_t reserved;
    const char *name;
    const char *default_text;  /* as it would stand in the file; NULL: zero, empty, or required */
    const char *unit;          /* NULL or such as "s", "bytes", "blocks" */
    const char *summary;       /* one sentence */
    double min, max;           /* INT and FLOAT, DURATION, BYTES; min == max: no limit */
    const char *const *values; /* ENUM: allowed texts, NULL-terminated */
};

/* ---- Descriptor ------------------------------------------------------------------------------ */

enum rung_thread_model {
    RUNG_SERIAL_GLOBAL = 0,   /* one call at a time for all instances */
    RUNG_SERIAL_INSTANCE = 1, /* one call at a time an instance */
    RUNG_PARALLEL = 2,
};

/*
 * One thing that the plugin makes. All static const, so that `rung plugin info` needs no instance.
 * Life: create (copies options; no network, no device, no thread) -> start (acquires) -> calls ->
 * stop (cancels, joins) -> destroy (frees). If create fails nothing was handed out; if start fails
 * only destroy follows.
 */
struct rung_factory {
    uint32_t struct_size;
    uint32_t thread_model;    /* rung_thread_model */
    uint32_t max_concurrency; /* calls at once for PARALLEL; 0 = no limit */
    uint32_t reserved;
    uint64_t capabilities; /* bits of the kind's header; 0 where the kind names none */
    const char *kind;      /* RUNG_KIND_*, below */
    const char *name;      /* as it stands in the pipeline file: [a-z][a-z0-9_]* */
    const char *summary;   /* one line */
    const char *doc;       /* some paragraphs; may be NULL */
    const struct rung_option *const *options; /* NULL-terminated; NULL = none */
    const void *ops;                          /* the kind's operations, struct_size first */

    /* [pure] Optional. Cross-field rules on options that are each valid. */
    int32_t (*validate)(const struct rung_host *, const struct rung_options *, struct rung_error *);
    /* [main] Required. *self must be set on RUNG_OK. */
    int32_t (*create)(const struct rung_host *, const struct rung_options *, struct rung_error *,
                      void **self);
    /* [worker] Optional. */
    int32_t (*start)(void *self, struct rung_error *);
    /* [worker] Optional. */
    void (*stop)(void *self);
    /* [main] Required. */
    void (*destroy)(void *self);
    /* [pure] Optional. A further table of this factory by id ("rung.helper/0"), or NULL. */
    const void *(*get_extension)(const char *id);
};

#define RUNG_KIND_LLM "rung.llm/0"
#define RUNG_KIND_CODEGEN "rung.codegen/0"
#define RUNG_KIND_COMPILER "rung.compiler/0"
#define RUNG_KIND_DEVICE "rung.device/0"
#define RUNG_KIND_REFERENCE "rung.reference/0"
#define RUNG_KIND_VERIFIER "rung.verifier/0"
#define RUNG_KIND_TIMER "rung.timer/0"
#define RUNG_KIND_SEARCH "rung.search/0"
#define RUNG_KIND_EXAMPLES "rung.examples/0"
#define RUNG_KIND_BASELINE "rung.baseline/0"

struct rung_plugin {
    uint32_t magic; /* RUNG_PLUGIN_MAGIC */
    uint32_t struct_size;
    uint32_t abi_major;
    uint32_t abi_draft;
    const char *id;      /* reverse domain, "org.example.mycheck" */
    const char *version; /* of the plugin */
    const char *vendor;
    const char *licence;
    const struct rung_factory *const *factories; /* NULL-terminated, at least one */
};

/*
 * [pure] The one exported function. host_major and host_draft let a plugin answer an older host
 * with an older table; it returns NULL when it can't serve that host. No allocation, I/O or log.
 */
typedef const struct rung_plugin *(*rung_plugin_entry)(uint32_t host_major, uint32_t host_draft);

#if defined(__GNUC__)
#define RUNG_EXPORT __attribute__((visibility("default")))
#else
#define RUNG_EXPORT
#endif
#ifdef __cplusplus
#define RUNG_PLUGIN_ENTRY                                                                          \
    extern "C" RUNG_EXPORT const struct rung_plugin *rung_plugin_v0(uint32_t, uint32_t);           \
    extern "C" RUNG_EXPORT const struct rung_plugin *rung_plugin_v0
#else
#define RUNG_PLUGIN_ENTRY                                                                          \
    RUNG_EXPORT const struct rung_plugin *rung_plugin_v0(uint32_t, uint32_t);                      \
    RUNG_EXPORT const struct rung_plugin *rung_plugin_v0
#endif

#ifdef __cplusplus
}
#endif
#endif
