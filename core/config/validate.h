/*
 * What only the plugins can say about a configuration: whether each one that is named is installed,
 * takes its settings, and whether the reference can compute the task's graph. Files of plugins are
 * loaded and the reference is asked; no device, model or network is touched. [main]
 */
#ifndef CONFIG_VALIDATE_H
#define CONFIG_VALIDATE_H

#include "config/config.h"
#include "plugin/instance.h"

struct rung_validation {
    struct rung_arena *arena;
    struct rung_registry *registry; /* with the pipeline's search path, see below */
    const char *data_dir;
    struct rung_diags *diags; /* faults */
    struct rung_diags *notes; /* what is worth telling, but no fault */
};

/* The pipeline's plugin_path goes before the registry's own folders, its first one first. */
void rung_pipeline_add_path(const struct rung_pipeline *pipeline, struct rung_registry *registry);
/* Loads one stage's plugin and reads its options; NULL after a fault. kind: RUNG_KIND_*. */
const struct rung_options *rung_stage_options(const struct rung_validation *v, const char *kind,
                                              const struct rung_stage *stage,
                                              const struct rung_loaded **loaded);
/* Models, search, examples, context: what `rung run` loads itself. */
void rung_validate_search(const struct rung_validation *v, const struct rung_pipeline *pipeline);
/* Codegen, compiler, devices, references, rungs, timers, baselines, profilers: what judges. */
void rung_validate_ladder(const struct rung_validation *v, const struct rung_pipeline *pipeline);
/*
 * The task's reference: its settings, and the graph at the dims' own values, at every listed shape
 * and, where the task is for all dims, at others (a failure there is a note).
 */
void rung_validate_task(const struct rung_validation *v, const struct rung_pipeline *pipeline,
                        const struct rung_task *task, const struct rung_task_rest *rest);
/*
 * The reference as a stage: the task's settings over those that `references` holds for that plugin.
 * reference: the task's group.
 */
struct rung_stage rung_reference_stage(struct rung_arena *arena,
                                       const struct rung_pipeline *pipeline,
                                       const struct rung_node *reference);

#endif
