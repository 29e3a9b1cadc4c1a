/*
 * Errors inside the core: helpers around struct rung_error. Any thread.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <rung/plugin.h>

/* A cleared error with struct_size set. */
struct rung_error rung_error_init(void);

/*
 * Fills err with a code, a symbol (may be "") and a printf message, cut to the field. Returns code,
 * so that a failing function can end in `return rung_fail(...)`. err may be NULL.
 */
int32_t rung_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Name of a rung_status: "config", "not found". Static. */
const char *rung_status_name(int32_t code);

#endif
