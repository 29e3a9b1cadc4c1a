#include "plugin/map.h"
#include "base/json.h"
#include "plugin/instance.h"

#include <string.h>

enum item_type { ITEM_INT, ITEM_FLOAT, ITEM_STRING };
enum { MAX_KEY = 63 };

struct item {
    struct item *next;
    enum item_type type;
    int64_t i;
    double f;
    const char *s;
    char key[MAX_KEY + 1];
};

struct rung_map {
    struct rung_arena *arena;
    struct item *first;
    struct item **end;
};

struct rung_map *rung_map_new(struct rung_arena *arena)
{
    struct rung_map *map = rung_arena_alloc(arena, sizeof *map, 16);
    if (map)
        *map = (struct rung_map){.arena = arena, .end = &map->first};
    return map;
}

static bool key_valid(const char *key)
{
    size_t n = strlen(key);
    return n > 0 && n <= MAX_KEY && strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_.") == n;
}

static int32_t put(struct rung_map *map, const char *key, struct item value)
{
    if (!key || !key_valid(key))
        return RUNG_EINVAL;
    struct item *item = map->first;
    while (item && strcmp(item->key, key) != 0)
        item = item->next;
    if (!item) {
        item = rung_arena_alloc(map->arena, sizeof *item, 16);
        if (!item)
            return RUNG_ENOMEM;
        *map->end = item;
        map->end = &item->next;
        memcpy(item->key, key, strlen(key) + 1);
    }
    item->type = value.type;
    item->i = value.i;
    item->f = value.f;
    item->s = value.s;
    return RUNG_OK;
}

int32_t rung_map_set_int(struct rung_map *map, const char *key, int64_t value)
{
    return put(map, key, (struct item){.type = ITEM_INT, .i = value});
}

int32_t rung_map_set_float(struct rung_map *map, const char *key, double value)
{
    return put(map, key, (struct item){.type = ITEM_FLOAT, .f = value});
}

int32_t rung_map_set_string(struct rung_map *map, const char *key, const char *value)
{
    if (!value)
        return RUNG_EINVAL;
    size_t n = strlen(value);
    char *copy = rung_arena_alloc(map->arena, n + 1, 1);
    if (!copy)
        return RUNG_ENOMEM;
    memcpy(copy, value, n);
    return put(map, key, (struct item){.type = ITEM_STRING, .s = copy});
}

cJSON *rung_map_to_json(const struct rung_map *map)
{
    cJSON *json = cJSON_CreateObject();
    for (const struct item *item = map ? map->first : NULL; item; item = item->next) {
        if (item->type == ITEM_INT)
            rung_json_add_i64(json, item->key, item->i);
        else if (item->type == ITEM_FLOAT)
            rung_json_add_f64(json, item->key, item->f);
        else
            rung_json_add_text(json, item->key, rung_text_of(item->s));
    }
    return json;
}
