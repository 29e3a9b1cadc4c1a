#include "plugin/harness.h"
#include "base/json.h"
#include "base/status.h"

#include <fcntl.h>
#include <rung/verifier.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct harness harness_open(const char *folder)
{
    unsetenv("RUNG_PLUGIN_PATH");
    struct harness h = {
        .registry = rung_registry_new(), .arena = rung_arena_new(), .err = rung_error_init()};
    rung_registry_add_dir(h.registry, folder);
    return h;
}

void harness_close(struct harness *h)
{
    rung_registry_free(h->registry);
    rung_arena_free(h->arena);
    rung_diags_free(&h->diags);
}

const struct rung_loaded *harness_load(struct harness *h, const char *kind, const char *name)
{
    const struct rung_loaded *loaded = NULL;
    h->err = rung_error_init();
    if (rung_registry_load(h->registry, kind, name, &loaded, &h->err) != RUNG_OK)
        fail_msg("%s", h->err.message);
    return loaded;
}

struct rung_options *harness_options(struct harness *h, const struct rung_factory *factory,
                                     const char *json)
{
    static const char *const ignore[] = {"plugin", "name", NULL};
    struct rung_node *group = NULL;
    rung_diags_free(&h->diags);
    if (json) {
        cJSON *parsed = rung_json_parse(json, strlen(json));
        assert_non_null(parsed);
        group = rung_node_from_json(h->arena, parsed, NULL, "/dir/test.cfg");
        cJSON_Delete(parsed);
        assert_non_null(group);
    }
    return rung_options_read(h->arena, factory, group, ignore, "/data", &h->diags);
}

struct rung_instance *harness_instance(struct harness *h, const char *name, const char *options)
{
    const struct rung_loaded *loaded = harness_load(h, RUNG_KIND_VERIFIER, name);
    struct rung_options *set = harness_options(h, loaded->factory, options);
    struct rung_instance *instance = NULL;
    if (!set)
        fail_msg("%s", rung_buf_text(&h->diags.text));
    if (rung_instance_new(loaded, set, name, "/data", NULL, &instance, &h->err) != RUNG_OK)
        fail_msg("%s", h->err.message);
    return instance;
}

/* The map as the process sees it that reads its JSON. */
static cJSON *as_read_elsewhere(const struct rung_map *map)
{
    cJSON *json = rung_map_to_json(map);
    char *line = rung_json_line(json);
    cJSON *again = rung_json_parse(line, strlen(line));
    free(line);
    cJSON_Delete(json);
    return again;
}

int32_t harness_check(struct harness *h, struct rung_instance *instance, cJSON **metrics)
{
    struct rung_arena *arena = rung_arena_new();
    struct rung_error err = rung_error_init();
    struct rung_call call = {.struct_size = sizeof call, .arena = arena, .error = &err};
    struct rung_verdict verdict = {.struct_size = sizeof verdict};
    int32_t status;
    RUNG_INVOKE(status, instance, struct rung_verifier_ops, check, &call, NULL, &verdict);
    if (metrics)
        *metrics = status ? NULL : as_read_elsewhere(verdict.metrics);
    h->err = err;
    rung_arena_free(arena);
    return status;
}

char *harness_log(void (*body)(void *arg), void *arg)
{
    char *folder = support_folder(), *path = support_path(folder, "log");
    int saved = dup(STDERR_FILENO), fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(saved >= 0 && fd >= 0);
    dup2(fd, STDERR_FILENO);
    body(arg);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd);
    char *text = support_read(path, NULL);
    free(path);
    support_remove(folder);
    return text;
}
