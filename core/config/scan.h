/* What must be known of a configuration text before libconfig may read it; private to core/config.
 */
#ifndef CONFIG_SCAN_H
#define CONFIG_SCAN_H

#include "base/diag.h"

enum { RUNG_CONFIG_DEPTH = 32 }; /* groups and lists in each other */

/*
 * Reports every integer literal that does not fit: past 32 bits without the suffix L (libconfig 1.5
 * keeps its low 32 bits), or past 2^53 (JSON between processes would round it); texts and
 * comments that never end; nesting too deep for a parser. Calls include
 * (NULL: don't) with the n bytes between the quotes of every `@include "..."` and its line.
 */
void rung_config_scan(const char *text, const char *file, struct rung_diags *diags,
                      void (*include)(void *ctx, const char *path, size_t n, int line), void *ctx);

#endif
