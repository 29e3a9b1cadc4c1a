/*
 * Bundles as JSON, for jobs and the journal. What is read came from another process or a file:
 * paths and sizes are checked. Pure.
 */
#include "task/plan.h"
#include "base/json.h"
#include "base/status.h"

#include <string.h>

enum { MAX_FILES = 64, MAX_PATH = 255, MAX_BYTES = 4 << 20 };

cJSON *rung_bundle_to_json(const struct rung_bundle *bundle)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "language", bundle->language);
    rung_json_add_i64(json, "entry", bundle->entry);
    cJSON *files = cJSON_AddArrayToObject(json, "files");
    for (uint32_t i = 0; i < bundle->n_files; i++) {
        cJSON *file = cJSON_CreateObject();
        cJSON_AddStringToObject(file, "path", bundle->files[i].path);
        rung_json_add_text(file, "text", bundle->files[i].text);
        cJSON_AddItemToArray(files, file);
    }
    return json;
}

/* Relative, of [A-Za-z0-9_./-], without empty, "." and ".." parts. */
static bool path_is_safe(const char *path)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    size_t n = strlen(path);
    if (n == 0 || n > MAX_PATH || strspn(path, allowed) != n)
        return false;
    for (const char *s = path;; s++) {
        size_t part = strcspn(s, "/");
        if (part == 0 || (part == 1 && s[0] == '.') || (part == 2 && s[0] == '.' && s[1] == '.'))
            return false;
        s += part;
        if (!*s)
            return true;
    }
}

static int32_t read_file(struct rung_arena *arena, const cJSON *json, struct rung_file *out,
                         size_t *total, struct rung_error *err)
{
    const char *path = rung_json_text(json, "path", NULL),
               *text = rung_json_text(json, "text", NULL);
    if (!path || !text)
        return rung_fail(err, RUNG_EINVAL, "", "a file of the bundle lacks path or text");
    if (!path_is_safe(path))
        return rung_fail(err, RUNG_EINVAL, "",
                         "the bundle names the path '%.100s'; paths are relative, of "
                         "[A-Za-z0-9_./-], without '..'",
                         path);
    size_t n = strlen(text);
    *total += n;
    if (*total > MAX_BYTES)
        return rung_fail(err, RUNG_EINVAL, "", "the bundle is larger than 4 MiB");
    if (!rung_utf8_valid(text, n))
        return rung_fail(err, RUNG_EINVAL, "", "'%s' of the bundle is not UTF-8", path);
    *out = (struct rung_file){.struct_size = sizeof *out,
                              .path = rung_arena_strdup(arena, path),
                              .text = {rung_arena_strndup(arena, text, n), n}};
    return RUNG_OK;
}

static bool path_repeats(const struct rung_file *files, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(files[k].path, files[i].path) == 0)
            return true;
    return false;
}

const struct rung_bundle *rung_bundle_from_json(struct rung_arena *arena, const cJSON *json,
                                                struct rung_error *err)
{
    const cJSON *list = rung_json_get(json, "files");
    const char *language = rung_json_text(json, "language", NULL);
    int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    int64_t entry = rung_json_i64(json, "entry", 0);
    size_t total = 0;
    if (!language || n < 1 || n > MAX_FILES || entry < 0 || entry >= n) {
        rung_fail(err, RUNG_EINVAL, "",
                  "the bundle needs a language, 1 to 64 files and an entry among them");
        return NULL;
    }
    struct rung_file *files = RUNG_ARENA_NEW(arena, struct rung_file, n);
    int i = 0;
    for (const cJSON *c = list->child; c; c = c->next, i++) {
        if (read_file(arena, c, &files[i], &total, err) != RUNG_OK)
            return NULL;
        if (path_repeats(files, i)) {
            rung_fail(err, RUNG_EINVAL, "", "the bundle has two files '%s'", files[i].path);
            return NULL;
        }
    }
    struct rung_bundle *bundle = RUNG_ARENA_NEW(arena, struct rung_bundle, 1);
    *bundle = (struct rung_bundle){.struct_size = sizeof *bundle,
                                   .n_files = (uint32_t)n,
                                   .language = rung_arena_strdup(arena, language),
                                   .files = files,
                                   .entry = (uint32_t)entry};
    return bundle;
}
