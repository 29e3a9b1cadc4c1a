/*
 * Reading JSON that another process sent: hostile, so every access names what it wants and gives a
 * default when it is not there. Writing: cJSON's own calls, and one that never loses a double.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/text.h"
#include <cjson/cJSON.h>

/* Parses n bytes, nested at most 64 deep; NULL when it is not one whole JSON value. */
cJSON *rung_json_parse(const char *text, size_t n);
/* Member of an object, or NULL. */
const cJSON *rung_json_get(const cJSON *object, const char *name);
/* Text member, or fallback (may be NULL) when it is absent or no text. */
const char *rung_json_text(const cJSON *object, const char *name, const char *fallback);
double rung_json_number(const cJSON *object, const char *name, double fallback);
/* Whole numbers; also reads the text form that rung_json_add_u64 writes. */
int64_t rung_json_i64(const cJSON *object, const char *name, int64_t fallback);
bool rung_json_bool(const cJSON *object, const char *name, bool fallback);

/* Adds with all 17 digits; inf and NaN as the texts "inf", "-inf", "nan" (rung_json_number reads
 * them). */
void rung_json_add_f64(cJSON *object, const char *name, double value);
/* Adds as a number when a double holds it exactly, else as a text. */
void rung_json_add_i64(cJSON *object, const char *name, int64_t value);
void rung_json_add_text(cJSON *object, const char *name, struct rung_text text);
/* One line, on the heap (free with free()). */
char *rung_json_line(const cJSON *json);

#endif
