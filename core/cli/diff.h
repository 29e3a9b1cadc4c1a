/* What changed between two texts, as unified diff. */
#ifndef CLI_DIFF_H
#define CLI_DIFF_H

#include <rung/plugin.h>

/*
 * The output of diff(1); "" when the texts are equal, a line that says why when diff can't be run.
 * The caller frees it.
 */
char *cli_diff(const char *old_name, struct rung_text old, const char *new_name,
               struct rung_text new);

#endif
