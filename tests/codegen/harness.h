/*
 * Instances of compiler and codegen plugins for tests. The test executable is its own `rung
 * helper`: main() must start with HARNESS_HELPER. One thread.
 */
#ifndef TESTS_CODEGEN_HARNESS_H
#define TESTS_CODEGEN_HARNESS_H

#include "support/support.h"

#include "base/arena.h"
#include "base/io.h"
#include "base/status.h"
#include "plugin/instance.h"
#include "worker/process/helper.h"
#include "worker/process/service.h"
#include <string.h>

#define HARNESS_HELPER(argc, argv)                                                                 \
    do {                                                                                           \
        if ((argc) > 1 && !strcmp((argv)[1], "helper"))                                            \
            return rung_helper_command((argc)-1, (argv) + 1);                                      \
    } while (0)

struct harness {
    struct rung_registry *registry;
    struct rung_arena *arena;
    struct rung_instance *instance;
    struct rung_error error;
    struct rung_call call;
};

/*
 * Creates (and starts when `start`) kind/name with options as a JSON object ("{}" for defaults).
 * Returns the status of the start; everything before it must succeed.
 */
int32_t harness_open(struct harness *h, const char *kind, const char *name, const char *options,
                     bool start);
void harness_close(struct harness *h);
/* Empties the arena and the error between calls. */
void harness_reset(struct harness *h);

/* A task over dims rows, cols: x input, y output, f32, and the param scale; static. */
const struct rung_task *harness_task(void);

#endif
