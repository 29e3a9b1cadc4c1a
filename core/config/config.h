/*
 * Configuration files: libconfig to a settings tree with file and line, merging of `base`, user
 * file and --set, and the typed pipeline. Results live in the caller's arena; any thread, one an
 * arena.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/diag.h"
#include "task/settings.h"
#include "task/task.h"

/*
 * One file as a tree. Syntax errors, integers that do not fit 64 bits (libconfig 1.5 wraps them
 * silently, so the text is checked too), files over 1 MiB and unreadable ones go to diags. NULL
 * then.
 */
struct rung_node *rung_config_load(struct rung_arena *arena, const char *path,
                                   struct rung_diags *diags);
/* The same of a text (for --set and tests). */
struct rung_node *rung_config_parse(struct rung_arena *arena, const char *text, const char *file,
                                    struct rung_diags *diags);
/* over wins: groups merge key by key, lists and scalars replace. Returns the merged tree (base is
 * changed). */
struct rung_node *rung_config_merge(struct rung_arena *arena, struct rung_node *base,
                                    const struct rung_node *over);
/*
 * PATH=VALUE: PATH is keys separated by '.', list items by index or by the value of their `name`
 * key; VALUE as it would stand in a file, or a bare word or text that is then a string.
 */
bool rung_config_set(struct rung_arena *arena, struct rung_node *root, const char *assignment,
                     struct rung_diags *diags);
/*
 * A pipeline or task file with all it stands on: built-in (data:pipelines/builtin.cfg, pipelines
 * only), the user's file (XDG_CONFIG_HOME/rung/rung.cfg, pipelines only), the chain of `base` (at
 * most 16, cycles refused), the file, then each --set. path NULL: without a file of one's own. A
 * file of the other kind is a fault that says so.
 */
struct rung_node *rung_config_pipeline(struct rung_arena *arena, const char *path,
                                       const char *data_dir, const char *const *sets, size_t n_sets,
                                       struct rung_diags *diags);
struct rung_node *rung_config_task(struct rung_arena *arena, const char *path,
                                   struct rung_diags *diags);

/* What a file is, by the keys that it has. */
enum rung_file_kind { RUNG_FILE_OTHER, RUNG_FILE_TASK, RUNG_FILE_PIPELINE };
enum rung_file_kind rung_config_kind(const struct rung_node *root);
/* A file of either kind with its chain of `base` only, to tell the kind. */
struct rung_node *rung_config_file(struct rung_arena *arena, const char *path,
                                   struct rung_diags *diags);

/* When a rung or a profiler runs. */
enum rung_when {
    RUNG_WHEN_ALWAYS, /* on every candidate that gets so far */
    RUNG_WHEN_BEST,   /* on one that is faster than all before it */
    RUNG_WHEN_FINAL,  /* once, on the winner */
};

/* What a model costs, in USD per million tokens. Reasoning costs what output does. */
struct rung_price {
    bool given;
    double input, output, cache_read, cache_write_5m, cache_write_1h;
};

/* One plugin in use: its name and its own settings. */
struct rung_stage {
    const char *name;                 /* instance name: `name`, else the plugin's */
    const char *plugin;               /* name or path */
    const struct rung_node *settings; /* the whole group; NULL: none */
    /* llm only */
    const char *const *roles; /* NULL-terminated; NULL: all */
    double weight;            /* 0: only when another model can't */
    struct rung_price price;  /* as the pipeline states it; see rung_price_find */
    uint32_t parallel;        /* requests at once; 0: limits.llm_parallel */
    uint32_t output_cap;      /* most tokens that one reply of the model may have; 0: not known */
    const char *const *tools; /* offered to it, NULL-terminated; NULL: the pipeline's */
    /* rungs */
    const char *const *on_devices; /* names of the devices that it needs; NULL: any */
    /* rungs, profile */
    enum rung_when when;
    /* examples: how many a prompt gets at most */
    uint32_t count;
    const char *const *keys;       /* the core's own keys in settings, NULL-terminated */
    const struct rung_node *place; /* for messages; NULL only where no file names the stage */
};

/* A file or folder that models may look things up in. */
struct rung_context_source {
    const char *path; /* resolved */
    const struct rung_node *settings;
};

struct rung_worker_spec {
    const char *const
        *launch;        /* argument vector before `rung worker`; NULL-terminated; may be empty */
    const char *rung;   /* the rung executable at the other end; NULL: this one */
    const char *device; /* "auto", or a device plugin's name */
    const struct rung_node *settings;
    uint32_t count;
};

struct rung_limits {
    double start_s, compile_s, check_s,
        time_s;               /* deadlines of stages: worker start, compile, a rung, timing */
    uint32_t compile_repairs; /* replies after the first for one candidate that does not compile */
    uint32_t check_repairs;   /* the same for one that compiles and fails a check */
    uint32_t llm_parallel;    /* requests at once to one model */
    uint32_t llm_tries;       /* sendings of one request that a server turns away */
    double llm_wait_s;        /* most seconds between these, all waits together */
};

/* What one logical request may grow to. */
struct rung_conversation {
    uint32_t continues;  /* times that a reply that was cut off by its length is gone on with */
    uint32_t tool_calls; /* calls that are carried out */
    int64_t tool_bytes;  /* bytes of all their results */
    int64_t log_bytes;   /* of one log or verdict in a prompt; its middle is cut out */
};

struct rung_budget {
    uint64_t evaluations; /* 0: none of these limits */
    uint64_t calls, tokens;
    double wall_s;
    double usd;
    bool allow_unknown_price; /* usd also holds when some model's price is not known */
};

/* When a search has done enough; 0: never for that reason. */
struct rung_stop {
    double roofline;   /* share of the physical floor's speed that is enough, up to 1 */
    uint32_t patience; /* rounds in a row without a faster kernel */
    double target_s;   /* a time that is enough */
};

/* How times are compared (`timing`). */
struct rung_timing_settings {
    double delta;       /* a ratio of times that is nearer to 1 is no difference */
    double budget_s;    /* wall time of the turns at one shape, once `rounds` are done */
    uint32_t rounds;    /* at least so many turns there and back */
    uint32_t processes; /* fresh executors in which a run's winner is timed again */
};
#define RUNG_TIMING_DEFAULTS                                                                       \
    {                                                                                              \
        .delta = 0.01, .budget_s = 5, .rounds = 10, .processes = 3                                 \
    }

/* How models' servers are reached (`http`); meaning: struct rung_http_settings of http/http.h. */
struct rung_http_group {
    uint32_t version;  /* 1 or 2; 0: not said */
    const char *proxy; /* "": none; NULL: not said */
    const char *ca;    /* resolved; NULL: not said */
};

struct rung_pipeline {
    const char *file;
    const char *task; /* path, resolved; NULL when the pipeline names none */
    const struct rung_stage *llms;
    uint32_t n_llms;
    struct rung_stage codegen, compiler, search;
    const struct rung_stage
        *devices; /* settings of device plugins, in the order that "auto" tries them */
    uint32_t n_devices;
    const struct rung_stage *timers; /* the first whose needs the device meets is used */
    uint32_t n_timers;
    const struct rung_stage
        *references; /* settings by plugin name; the task names the one in use */
    uint32_t n_references;
    const struct rung_stage *rungs;
    uint32_t n_rungs;
    const struct rung_worker_spec *workers;
    uint32_t n_workers;
    struct rung_limits limits;
    struct rung_budget budget;
    const char *const *plugin_path; /* NULL-terminated, resolved */
    const struct rung_node *root;
    struct rung_stop stop;
    const struct rung_stage *baselines; /* timing.baselines; a name alone has no settings */
    uint32_t n_baselines;
    const struct rung_stage *profiles;
    uint32_t n_profiles;
    const struct rung_stage *examples;
    uint32_t n_examples;
    const struct rung_context_source *contexts;
    uint32_t n_contexts;
    struct rung_http_group http;
    struct rung_conversation conversation;
    const char *const *tools; /* offered to models, NULL-terminated; NULL: none */
    struct rung_timing_settings timing;
};

/*
 * Reads the typed pipeline; every fault of every key goes to diags, NULL then. Options of plugins
 * are checked by rung_options_read, by the caller. The task names its reference plugin;
 * `references` only holds settings.
 */
const struct rung_pipeline *rung_pipeline_read(struct rung_arena *arena,
                                               const struct rung_node *root,
                                               struct rung_diags *diags);

/*
 * What a model costs: as the pipeline states it, else the first item that matches of the user's
 * prices (XDG_CONFIG_HOME/rung/prices.cfg), then of data_dir/prices.cfg. given is false when none
 * does. Faults of these files go to diags.
 */
struct rung_price rung_price_find(struct rung_arena *arena, const char *data_dir,
                                  const struct rung_stage *llm, struct rung_diags *diags);

/* Names of the tools that models can be offered; engine/tools.c carries them out. */
extern const char *const rung_tool_names[];

/* Every key of a pipeline file. NULL-terminated. */
extern const char *const rung_pipeline_keys[];

#endif
