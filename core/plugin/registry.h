/*
 * Finding and loading plugin files. A file is looked for as <kind>_<name>.so in the search path
 * (the pipeline's plugin_path, RUNG_PLUGIN_PATH, the install directory; never the current one), or
 * taken by path when the name holds a '/'. Loaded files stay loaded. One registry a process,
 * guarded by a lock; any thread.
 */
#ifndef PLUGIN_REGISTRY_H
#define PLUGIN_REGISTRY_H

#include "base/arena.h"
#include "base/hash.h"
#include <stdbool.h>

struct rung_registry;

/* One factory of a loaded file. All texts live as long as the registry. */
struct rung_loaded {
    const char *path; /* resolved */
    char sha256[RUNG_SHA256_HEX];
    const struct rung_plugin *plugin;
    const struct rung_factory *factory;
};

/* Uses RUNG_PLUGIN_PATH and the install directory beside the executable. */
struct rung_registry *rung_registry_new(void);
void rung_registry_free(struct rung_registry *registry);
/* Adds a directory before all others. */
void rung_registry_add_dir(struct rung_registry *registry, const char *dir);
/* Accept group- or world-writable files and directories (`--allow-insecure-plugins`). */
void rung_registry_allow_insecure(struct rung_registry *registry);
/* Whether it does, so that workers can be told. */
bool rung_registry_insecure(const struct rung_registry *registry);

/*
 * Loads (or finds loaded) the factory `name` of `kind` (RUNG_KIND_*). RUNG_ENOTFOUND names the
 * directories searched and the nearest name; RUNG_EMISUSE and RUNG_EINVAL name the file and what is
 * wrong with it (ABI, missing slots, permissions). *out lives as long as the registry.
 */
int32_t rung_registry_load(struct rung_registry *registry, const char *kind, const char *name,
                           const struct rung_loaded **out, struct rung_error *err);
/* Path and hash of the file that rung_registry_load would take, without loading it. */
int32_t rung_registry_locate(struct rung_registry *registry, const char *kind, const char *name,
                             char **path, char sha256[RUNG_SHA256_HEX], struct rung_arena *arena,
                             struct rung_error *err);
/* All *.so files of the search path, as resolved paths, in order. */
const char *const *rung_registry_files(struct rung_registry *registry, struct rung_arena *arena,
                                       size_t *n);
/* Loads a file by path and checks everything; for `rung plugin`. */
int32_t rung_registry_open(struct rung_registry *registry, const char *path,
                           const struct rung_plugin **out, struct rung_error *err);
/* "verifier" of "rung.verifier/0"; the kind's word, static or in place; NULL for an unknown kind.
 */
const char *rung_kind_word(const char *kind);
/* RUNG_KIND_* for a word, or NULL. */
const char *rung_kind_of_word(const char *word);

#endif
