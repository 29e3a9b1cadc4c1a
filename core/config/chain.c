/*
 * Files that stand on others: the chain of `base`, the built-in and the user's settings, --set.
 */
#include "config/config.h"
#include "base/io.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CHAIN = 16 };

/* The `base` of a tree, dropped from it; NULL when there is none or it is faulty. */
static const struct rung_node *take_base(struct rung_node *root, struct rung_diags *diags)
{
    struct rung_node **at = &root->first;
    while (*at && strcmp((*at)->name, "base") != 0)
        at = &(*at)->next;
    const struct rung_node *base = *at;
    if (!base)
        return NULL;
    *at = base->next;
    if (base->type == RUNG_NODE_STRING && *base->s)
        return base;
    RUNG_DIAG_AT(diags, base, "'base' must be the path of a file, as a string");
    return NULL;
}

/* Whether path is one of the n files, whatever it is called. */
static bool is_among(const char *path, char (*seen)[PATH_MAX], size_t n, char resolved[PATH_MAX])
{
    if (!realpath(path, resolved))
        resolved[0] = 0; /* it can't be read either: the load tells why */
    for (size_t i = 0; i < n; i++)
        if (resolved[0] && strcmp(seen[i], resolved) == 0)
            return true;
    return false;
}

struct chain {
    struct rung_arena *arena;
    struct rung_diags *diags;
    struct rung_node *files[MAX_CHAIN];
    char (*seen)[PATH_MAX];
    size_t n;
};

/* Loads one file of the chain; `base` is what named it, NULL for the first. False after a fault. */
static bool add_link(struct chain *c, const char *path, const struct rung_node *base)
{
    char resolved[PATH_MAX];
    if (base && is_among(path, c->seen, c->n, resolved)) {
        RUNG_DIAG_AT(c->diags, base, "'base' goes in a circle: it leads back to %s", path);
        return false;
    }
    if (c->n == MAX_CHAIN) {
        RUNG_DIAG_AT(c->diags, base, "the file stands on more than %d files by 'base'",
                     MAX_CHAIN - 1);
        return false;
    }
    if (base && access(path, R_OK) != 0) {
        RUNG_DIAG_AT(c->diags, base, "base \"%s\": %s: can't be opened: %s", base->s, path,
                     strerror(errno));
        return false;
    }
    if (!base)
        is_among(path, c->seen, 0, resolved);
    memcpy(c->seen[c->n], resolved, PATH_MAX);
    c->files[c->n] = rung_config_load(c->arena, path, c->diags);
    return c->files[c->n] && ++c->n;
}

/* A file merged over its chain of bases. NULL after a fault. */
static struct rung_node *load_chain(struct rung_arena *arena, const char *path,
                                    struct rung_diags *diags)
{
    struct chain c = {.arena = arena, .diags = diags};
    const struct rung_node *base = NULL;
    size_t before = diags->n;
    c.seen = rung_arena_need(arena, (uint64_t)MAX_CHAIN * PATH_MAX);
    do {
        if (!add_link(&c, base ? rung_path_beside(arena, base->file, base->s) : path, base))
            return NULL;
        base = take_base(c.files[c.n - 1], diags);
    } while (base);
    if (diags->n != before)
        return NULL;
    struct rung_node *root = c.files[--c.n];
    while (c.n > 0)
        rung_config_merge(arena, root, c.files[--c.n]);
    return root;
}

/* ---- Which kind of file --------------------------------------------------------------------- */

static bool is_among_keys(const char *name, const char *const *keys)
{
    while (*keys && strcmp(*keys, name) != 0)
        keys++;
    return *keys != NULL;
}

enum rung_file_kind rung_config_kind(const struct rung_node *root)
{
    static const char *const neither[] = {"base", "name", "summary", NULL};
    size_t task = 0, pipeline = 0;
    for (const struct rung_node *c = root->first; c; c = c->next) {
        if (is_among_keys(c->name, neither))
            continue;
        task += is_among_keys(c->name, rung_task_keys);
        pipeline += is_among_keys(c->name, rung_pipeline_keys);
    }
    return task > pipeline ? RUNG_FILE_TASK : pipeline > 0 ? RUNG_FILE_PIPELINE : RUNG_FILE_OTHER;
}

struct rung_node *rung_config_file(struct rung_arena *arena, const char *path,
                                   struct rung_diags *diags)
{
    return load_chain(arena, path, diags);
}

/* The file, or NULL after a fault; the other kind's file is one, told with the right command. */
static struct rung_node *load_kind(struct rung_arena *arena, const char *path,
                                   enum rung_file_kind kind, struct rung_diags *diags)
{
    struct rung_node *root = load_chain(arena, path, diags);
    enum rung_file_kind is = root ? rung_config_kind(root) : kind;
    if (is == kind || is == RUNG_FILE_OTHER)
        return root;
    if (is == RUNG_FILE_TASK)
        rung_diag(diags, path, 0,
                  "is a task file, but a pipeline is wanted here; a task is named by a pipeline's "
                  "'task', or: rung run PIPELINE --task %s",
                  path);
    else
        rung_diag(
            diags, path, 0,
            "is a pipeline file, but a task is wanted here; a pipeline is run: rung run %s, or "
            "lends its settings: rung eval TASK KERNEL.cu --pipeline %s",
            path, path);
    return NULL;
}

/* ---- Layers --------------------------------------------------------------------------------- */

/* The user's own settings, or NULL where there are none. */
static char *user_file(struct rung_arena *arena)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path = NULL;
    if (config && *config == '/')
        path = rung_path_join(arena, config, "rung/rung.cfg");
    else if (home && *home == '/')
        path = rung_path_join(arena, home, ".config/rung/rung.cfg");
    return path && access(path, F_OK) == 0 ? path : NULL;
}

struct rung_node *rung_config_pipeline(struct rung_arena *arena, const char *path,
                                       const char *data_dir, const char *const *sets, size_t n_sets,
                                       struct rung_diags *diags)
{
    const char *files[] = {rung_path_join(arena, data_dir, "pipelines/builtin.cfg"),
                           user_file(arena), path};
    size_t before = diags->n;
    struct rung_node *root = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct rung_node *layer =
            files[i] ? load_kind(arena, files[i], RUNG_FILE_PIPELINE, diags) : NULL;
        if (layer)
            root = root ? rung_config_merge(arena, root, layer) : layer;
    }
    for (size_t i = 0; root && i < n_sets; i++)
        rung_config_set(arena, root, sets[i], diags);
    return diags->n == before ? root : NULL;
}

struct rung_node *rung_config_task(struct rung_arena *arena, const char *path,
                                   struct rung_diags *diags)
{
    return load_kind(arena, path, RUNG_FILE_TASK, diags);
}
