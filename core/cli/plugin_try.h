/*
 * `rung plugin try KIND NAME`: starts one plugin with its options and tells what came of it.
 * Drivers and libraries are loaded by that, so `rung doctor` calls it in a child.
 */
#ifndef CLI_PLUGIN_TRY_H
#define CLI_PLUGIN_TRY_H

#include <stdbool.h>
#include <stddef.h>

struct cli_plugin_try {
    const char *kind, *name; /* "device", "cuda" */
    const char *const *sets; /* OPTION=VALUE */
    size_t n_sets;
    bool json, insecure;
};

/*
 * 0 started; 2 its options are wrong or there is no such plugin; 3 something that it needs is
 * missing. With json one object: kind, name, state ("ready", "unavailable", "refused"), message,
 * start_s, and for a device all that it says of itself. [main]
 */
int cli_plugin_try(const struct cli_plugin_try *request);

#endif
