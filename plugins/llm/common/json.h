/*
 * JSON of a provider: replies are read as hostile input, requests are built with every text escaped
 * and repaired. Pure; one thread a value.
 */
#ifndef LLM_COMMON_JSON_H
#define LLM_COMMON_JSON_H

#include "text.h"
#include <cjson/cJSON.h>

/* ---- Text ---- */

/* Adds bytes as UTF-8: what is none, and NUL, becomes U+FFFD. */
void llm_text_add_utf8(struct llm_text *text, const char *bytes, size_t n);
/*
 * The beginning of hostile bytes as one line for people: printable UTF-8 with runs of blanks and
 * control characters as one blank; "..." at its end when it was cut to cap - 1 bytes. cap >= 8.
 */
void llm_excerpt(char *out, size_t cap, struct llm_span bytes);

/* ---- Reading ---- */

/*
 * One whole JSON value: at most 64 deep, at most 200000 members and items. The escape of NUL and
 * lone surrogates, which no text here can hold, read as U+FFFD. Else NULL, with *why set. The
 * caller deletes it. Texts in it may still hold bytes that are no UTF-8.
 */
cJSON *llm_json_parse(struct llm_span bytes, const char **why);
/* Member of an object; NULL when object is NULL or none, or the member is absent or null. */
const cJSON *llm_json_get(const cJSON *object, const char *name);
/* Text member, or NULL. */
const char *llm_json_text(const cJSON *object, const char *name);
/* A count: a number from 0 to 10^15, fraction dropped. Else -1. */
int64_t llm_json_count(const cJSON *object, const char *name);

/* ---- Writing ---- */

/* A request's body. Adding to a NULL parent, or without memory, sets `failed`. */
struct llm_body {
    cJSON *root;
    bool failed;
};

struct llm_body llm_body_new(void);
void llm_body_free(struct llm_body *body);
/* Text of a C string; bytes that are no UTF-8 are repaired. */
void llm_body_text(struct llm_body *body, cJSON *object, const char *name, const char *text);
void llm_body_number(struct llm_body *body, cJSON *object, const char *name, double number);
void llm_body_bool(struct llm_body *body, cJSON *object, const char *name, bool value);
/* Text of any bytes. */
void llm_body_bytes(struct llm_body *body, cJSON *object, const char *name, struct llm_span bytes);
/* Takes over a value, also when it fails. */
void llm_body_value(struct llm_body *body, cJSON *object, const char *name, cJSON *value);
/* A list of one text. */
void llm_body_words(struct llm_body *body, cJSON *object, const char *name, const char *word);
/* A new member that is an empty object or list; one more object at the end of a list. */
cJSON *llm_body_object(struct llm_body *body, cJSON *object, const char *name);
cJSON *llm_body_list(struct llm_body *body, cJSON *object, const char *name);
cJSON *llm_body_item(struct llm_body *body, cJSON *list);
/*
 * Sets the member at a dotted path ("generationConfig.topP"), making objects on the way and
 * replacing what stands there. value is JSON; false when it or the path is not well-formed.
 */
bool llm_body_set(struct llm_body *body, struct llm_span path, struct llm_span value);

#endif
