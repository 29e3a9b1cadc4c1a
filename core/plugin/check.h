/* What a plugin file must hold before anything in it is used. */
#ifndef PLUGIN_CHECK_H
#define PLUGIN_CHECK_H

#include "base/status.h"

/* Descriptor and all factories: ABI, names, required slots. All faults of a file in one message. */
int32_t rung_plugin_check(const char *path, const struct rung_plugin *plugin,
                          struct rung_error *err);

#endif
