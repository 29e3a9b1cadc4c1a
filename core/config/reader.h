/* What the readers of a pipeline's parts share; private to core/config. */
#ifndef CONFIG_READER_H
#define CONFIG_READER_H

#include "config/config.h"

struct pipeline_reader {
    struct rung_arena *arena;
    struct rung_diags *diags;
    const struct rung_node *root;
};

/* Which of the core's keys a kind of stage takes besides name and plugin. */
enum stage_kind { STAGE_PLAIN, STAGE_LLM, STAGE_RUNG, STAGE_PROFILE, STAGE_EXAMPLES };

/*
 * The groups of a list of the root, at most `most`; other items are faults and left out. `such`
 * shows in messages what an item looks like.
 */
const struct rung_node **pipeline_groups(struct pipeline_reader *r, const char *key, size_t most,
                                         const char *such, uint32_t *n);
/* A required stage that is one group. */
void pipeline_stage(struct pipeline_reader *r, const char *key, struct rung_stage *out);
/* A list of stages; none when the key is absent. */
const struct rung_stage *pipeline_stages(struct pipeline_reader *r, const char *key,
                                         enum stage_kind kind, uint32_t *n);
/*
 * A price group: input and output must be there; what is cached costs as much as input unless the
 * group says otherwise.
 */
void pipeline_price(struct rung_diags *diags, const struct rung_node *group,
                    struct rung_price *out);
/* A list of names of tools under `tools`; NULL when the key is absent. */
const char *const *pipeline_tools(struct pipeline_reader *r, const struct rung_node *group);
/* http. */
void pipeline_http(struct pipeline_reader *r, struct rung_http_group *out);
/* timing: which timer alone is used, and the baselines. After p->timers is read. */
void pipeline_timing(struct pipeline_reader *r, struct rung_pipeline *p);

#endif
