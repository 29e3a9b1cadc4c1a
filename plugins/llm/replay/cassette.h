/*
 * A cassette: replies of a model, recorded by request key. A file of JSON lines; see cassette.c for
 * its form. Read once, then immutable: any thread.
 */
#ifndef LLM_REPLAY_CASSETTE_H
#define LLM_REPLAY_CASSETTE_H

#include "../common/text.h"

/* One recorded reply. Texts live as long as the cassette. */
struct cassette_entry {
    const char *key;
    const char *role;          /* "" when the line has none */
    const char *prompt_sha256; /* "" when the line has none */
    const char *reply;
    const char *model;
    size_t reply_len;
    uint32_t finish; /* rung_finish */
    uint32_t line;   /* 1-based, in the file */
    struct rung_usage usage;
};

struct cassette;

/* Reads and checks a whole file. Faults are RUNG_ECONFIG or RUNG_EIO with "file:line: what". */
int32_t cassette_open(const char *path, struct cassette **out, struct rung_error *error);
void cassette_free(struct cassette *cassette);
/* The entry of a key, or NULL. */
const struct cassette_entry *cassette_find(const struct cassette *cassette, const char *key);
uint32_t cassette_count(const struct cassette *cassette);

#endif
