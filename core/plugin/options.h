/*
 * Option sets: a factory's table of options filled from a group of settings. The table is the only
 * source for names, types, ranges and defaults.
 */
#ifndef PLUGIN_OPTIONS_H
#define PLUGIN_OPTIONS_H

#include "base/diag.h"

/*
 * Fills the table from `group` (NULL: all defaults). Keys named in `ignore` (NULL-terminated, may
 * be NULL) belong to the core, such as "plugin" and "name". Every fault goes to diags with its
 * place; the result is NULL when there was one. data_dir resolves "data:" paths.
 */
struct rung_options *rung_options_read(struct rung_arena *arena, const struct rung_factory *factory,
                                       const struct rung_node *group, const char *const *ignore,
                                       const char *data_dir, struct rung_diags *diags);
/*
 * The set values as a group that rung_options_read reads back elsewhere: relative paths are
 * resolved, "data:" paths and secrets stay references. The caller deletes it.
 */
cJSON *rung_options_to_json(const struct rung_options *options);

/* The getters of struct rung_host, on the same contract. */
int64_t rung_options_int(const struct rung_options *, const char *name);
double rung_options_float(const struct rung_options *, const char *name);
const char *rung_options_string(const struct rung_options *, const char *name);
uint32_t rung_options_count(const struct rung_options *, const char *name);
const char *rung_options_string_at(const struct rung_options *, const char *name, uint32_t index);
int64_t rung_options_int_at(const struct rung_options *, const char *name, uint32_t index);

#endif
