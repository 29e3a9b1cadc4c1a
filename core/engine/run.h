/*
 * One run: a pipeline applied to a task. Loads the model, codegen and search plugins, starts the
 * workers, and loops: the policy decides, its actions are carried out side by side, what came of
 * them goes back. Every step is in the journal before its result is used, under a key that depends
 * only on what was decided before; so a run that was killed is resumed by running it again over its
 * journal.
 */
#ifndef ENGINE_RUN_H
#define ENGINE_RUN_H

#include "config/config.h"
#include "plugin/registry.h"

struct rung_run_options {
    const char *pipeline;    /* file; NULL when resuming */
    const char *task;        /* file; NULL: the pipeline's */
    const char *const *sets; /* PATH=VALUE */
    size_t n_sets;
    const char *out;    /* run folder; NULL: runs/<task>-<time> */
    const char *resume; /* run folder to go on with; NULL: a new run */
    bool insecure_plugins;
    bool json;  /* one object on standard output at the end */
    bool quiet; /* no progress */
};

/* Exit status of DESIGN section 12. Messages go to standard error. [main] */
int rung_run_main(const struct rung_run_options *options);

#endif
