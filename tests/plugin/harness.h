/*
 * What the plugin tests share: a registry over the folders of test plugins, option sets from JSON,
 * and the text of the log.
 */
#ifndef TESTS_PLUGIN_HARNESS_H
#define TESTS_PLUGIN_HARNESS_H

#include "plugin/instance.h"
#include "support/support.h"

struct harness {
    struct rung_registry *registry;
    struct rung_arena *arena;
    struct rung_diags diags;
    struct rung_error err;
};

/* An empty registry but for the folder; the environment's plugin path is cleared. */
struct harness harness_open(const char *folder);
void harness_close(struct harness *h);
/* The factory of a file that must load. */
const struct rung_loaded *harness_load(struct harness *h, const char *kind, const char *name);
/* Options of a factory from a JSON object (NULL: defaults), in a file called "/dir/test.cfg". */
struct rung_options *harness_options(struct harness *h, const struct rung_factory *factory,
                                     const char *json);
/* A created verifier that must come to be. */
struct rung_instance *harness_instance(struct harness *h, const char *name, const char *options);
/* Calls check() with a fresh error; metrics as JSON (delete it) or NULL. */
int32_t harness_check(struct harness *h, struct rung_instance *instance, cJSON **metrics);
/* What body writes to descriptor 2, on the heap. */
char *harness_log(void (*body)(void *arg), void *arg);

#endif
