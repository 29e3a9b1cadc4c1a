/* Private to core/config. */
#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include "base/node.h"

/* Whether the text (without @include) follows the syntax of configuration files. */
bool rung_config_well_formed(const char *text);
/* A plugin's name as it stands; a path, which has a '/', from the root on, beside its file. */
const char *rung_plugin_file(struct rung_arena *arena, const struct rung_node *name);
/* A tree of one's own, with no node marked used. */
struct rung_node *rung_config_copy(struct rung_arena *arena, const struct rung_node *node);
/*
 * Puts over in place: two groups merge, unless they name different plugins, whose options have
 * nothing in common; all else replaces. The name and the siblings of place stay.
 */
void rung_config_assign(struct rung_arena *arena, struct rung_node *place,
                        const struct rung_node *over);

#endif
