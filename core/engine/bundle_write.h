/* Bundles as files of a folder. */
#ifndef ENGINE_BUNDLE_WRITE_H
#define ENGINE_BUNDLE_WRITE_H

#include <rung/bundle.h>

/*
 * Writes every file of the bundle below dir, which is made. The entry file gets entry_name and
 * entry_text where they are not NULL.
 */
int32_t rung_bundle_write(const struct rung_bundle *bundle, const char *dir, const char *entry_name,
                          const char *entry_text, struct rung_error *err);

#endif
