/* One kernel of a person's (or an agent's) own, judged like a candidate: `rung eval`. */
#ifndef ENGINE_EVAL_H
#define ENGINE_EVAL_H

#include <stdbool.h>
#include <stddef.h>

struct rung_eval_options {
    const char *task, *kernel; /* files */
    const char *pipeline;      /* file; NULL: built-in and the user's settings */
    const char *device;        /* plugin name; NULL: the pipeline's */
    const char *only;          /* "compile", "check", "bench"; NULL: all */
    const char *point;         /* tune point; NULL: the first that the plan allows */
    const char *save;          /* folder for PTX and CUBIN; NULL: none */
    const char *const *sets;
    size_t n_sets;
    bool json, insecure_plugins;
    bool no_baselines; /* the kernel alone is timed */
};

/* Exit status of DESIGN section 12. [main] */
int rung_eval_main(const struct rung_eval_options *options);

#endif
