/*
 * This executable again, as a child that prints one JSON object: what is foreign (a plugin file, a
 * driver) is touched there, so that one which crashes or hangs is named and the rest goes on.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "base/json.h"

/*
 * Runs `rung ARGS...` (NULL-terminated, at most 30), reads its standard output and waits. A child
 * that takes longer than limit_s is killed with its group. Never NULL: a child that gave no object
 * is {"error": "SUBJECT: crashed ..."}. The child's standard error is ours unless quiet. The caller
 * deletes the object. [main]
 */
cJSON *cli_child(const char *const *args, const char *subject, double limit_s, bool quiet);

#endif
