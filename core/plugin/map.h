/* The setters behind rung_host.map_*; maps live in arenas. One thread a map. */
#ifndef PLUGIN_MAP_H
#define PLUGIN_MAP_H

#include <rung/plugin.h>

int32_t rung_map_set_int(struct rung_map *map, const char *key, int64_t value);
int32_t rung_map_set_float(struct rung_map *map, const char *key, double value);
int32_t rung_map_set_string(struct rung_map *map, const char *key, const char *value);

#endif
