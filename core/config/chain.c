/*
 * Files that stand on others: the chain of `base`, the built-in and the user's settings, --set.
 */
#include "config/config.h"
#include "base/io.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CHAIN = 16 };

/* The file named by `base` of a tree, whose key is dropped; NULL when there is none or it is
 * faulty. */
static const char *take_base(struct rung_arena *arena, struct rung_node *root,
                             struct rung_diags *diags)
{
    struct rung_node **at = &root->first;
    while (*at && strcmp((*at)->name, "base") != 0)
        at = &(*at)->next;
    const struct rung_node *base = *at;
    if (!base)
        return NULL;
    *at = base->next;
    if (base->type == RUNG_NODE_STRING && *base->s)
        return rung_path_beside(arena, base->file, base->s);
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

/* A file merged over its chain of bases. NULL after a fault. */
static struct rung_node *load_chain(struct rung_arena *arena, const char *path,
                                    struct rung_diags *diags)
{
    struct rung_node *files[MAX_CHAIN];
    char(*seen)[PATH_MAX] = rung_arena_need(arena, (uint64_t)MAX_CHAIN * PATH_MAX);
    size_t n = 0, before = diags->n;
    for (const char *next = path; next; n++) {
        char resolved[PATH_MAX];
        if (is_among(next, seen, n, resolved)) {
            rung_diag(diags, files[n - 1]->file, 0, "'base' goes in a circle: it leads back to %s",
                      next);
            return NULL;
        }
        if (n == MAX_CHAIN) {
            rung_diag(diags, path, 0, "stands on more than %d files by 'base'", MAX_CHAIN - 1);
            return NULL;
        }
        memcpy(seen[n], resolved, PATH_MAX);
        files[n] = rung_config_load(arena, next, diags);
        if (!files[n])
            return NULL;
        next = take_base(arena, files[n], diags);
    }
    if (diags->n != before)
        return NULL;
    struct rung_node *root = files[--n];
    while (n > 0)
        rung_config_merge(arena, root, files[--n]);
    return root;
}

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
        struct rung_node *layer = files[i] ? load_chain(arena, files[i], diags) : NULL;
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
    return load_chain(arena, path, diags);
}
