/*
 * Typed access to settings trees, for every reader of configuration. Pure but for the `used` mark
 * of nodes; one thread a tree.
 */
#ifndef TASK_SETTINGS_H
#define TASK_SETTINGS_H

#include "base/diag.h"

/*
 * Each marks the node used and reports a wrong type or range with its place; an absent key (and a
 * NULL group) gives fallback, as a faulty one does.
 */
const char *rung_config_string(const struct rung_node *group, const char *key, const char *fallback,
                               struct rung_diags *diags);
int64_t rung_config_int(const struct rung_node *group, const char *key, int64_t fallback,
                        int64_t min, int64_t max, struct rung_diags *diags);
double rung_config_float(const struct rung_node *group, const char *key, double fallback,
                         double min, double max, struct rung_diags *diags);
/* Seconds: a text such as "90s" or "2h", or a number. */
double rung_config_duration(const struct rung_node *group, const char *key, double fallback,
                            struct rung_diags *diags);
/* The child if it is there and of that type; a wrong type is reported. NULL else. */
const struct rung_node *rung_config_child(const struct rung_node *group, const char *key,
                                          enum rung_node_type type, struct rung_diags *diags);
/*
 * The texts of a list of strings, NULL-terminated, or NULL when the key is absent or faulty. A
 * single string counts as a list of one.
 */
const char *const *rung_config_strings(struct rung_arena *arena, const struct rung_node *group,
                                       const char *key, struct rung_diags *diags);

#endif
