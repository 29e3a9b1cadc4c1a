/*
 * Secrets by reference: "env:NAME" or "file:PATH". Values live from the request's begin to its end.
 */
#ifndef HTTP_SECRET_H
#define HTTP_SECRET_H

#include <rung/plugin.h>

enum { RUNG_SECRET_MAX_BYTES = 16384 };

/*
 * The value that the reference names (rules: rung/http.h), on the heap, and hidden from all logs
 * from now on. NULL with err filled: RUNG_ECONFIG, http.secret, naming the variable or file, never
 * the value. Any thread.
 */
char *rung_secret_read(const char *reference, struct rung_error *err);
/* Wipes and frees. NULL is fine. */
void rung_secret_free(char *value);

#endif
