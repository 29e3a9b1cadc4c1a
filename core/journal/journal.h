/*
 * The journal of a run: an append-only list of records in SQLite beside a folder of artifacts named
 * by their SHA-256. A record is (sequence number, time, type, key, JSON); type and key are unique
 * together, so a step that was done once is found again after a crash. Survives kill -9 at any
 * instant: a record is there whole or not at all, and its artifacts were synced before it.
 *
 * One process writes at a time (a lock file tells the second one so); readers need no lock.
 * All functions: any thread; calls on one journal are serialised.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "base/arena.h"
#include "base/hash.h"
#include <cjson/cJSON.h>
#include <stdbool.h>

struct rung_journal;

enum rung_journal_mode {
    RUNG_JOURNAL_CREATE, /* the folder must hold no journal yet */
    RUNG_JOURNAL_RESUME, /* write to an existing one */
    RUNG_JOURNAL_READ,   /* read an existing one, also while another process writes it */
};

/*
 * Opens dir/journal.db. Messages tell a journal of a newer version, a file that is no journal or is
 * damaged, and a journal that another process is writing (RUNG_EUNAVAILABLE) apart.
 */
int32_t rung_journal_open(const char *dir, enum rung_journal_mode mode, struct rung_journal **out,
                          struct rung_error *err);
void rung_journal_close(struct rung_journal *journal);
const char *rung_journal_dir(const struct rung_journal *journal);

/*
 * Appends a record and commits. seq may be NULL. payload is borrowed. RUNG_EINVAL when (type, key)
 * is there already; RUNG_EIO names what failed (a full disk, ...): nothing before it is lost.
 */
int32_t rung_journal_append(struct rung_journal *journal, const char *type, const char *key,
                            const cJSON *payload, uint64_t *seq, struct rung_error *err);
/* The record's JSON, which the caller deletes, or NULL when there is none. seq may be NULL. */
cJSON *rung_journal_find(struct rung_journal *journal, const char *type, const char *key,
                         uint64_t *seq);
/* Number of records of a type. */
uint64_t rung_journal_count(struct rung_journal *journal, const char *type);

struct rung_record {
    uint64_t seq;
    int64_t wall_ms; /* since 1970 */
    const char *type;
    const char *key;
    const cJSON *json;
};
/*
 * Calls visit for all records of a type (NULL: all) with seq > after, in order, until it returns
 * false. visit must not call this journal. A record whose JSON is damaged ends it with RUNG_EIO.
 */
int32_t rung_journal_each(struct rung_journal *journal, const char *type, uint64_t after,
                          bool (*visit)(void *ctx, const struct rung_record *record), void *ctx,
                          struct rung_error *err);

/* Keeps bytes under their SHA-256 (hex, given). Storing the same bytes again costs nothing. */
int32_t rung_journal_store(struct rung_journal *journal, const char *sha256, const void *bytes,
                           uint64_t n, struct rung_error *err);
/* Reads an artifact back; RUNG_EIO when it is missing or its hash differs. */
int32_t rung_journal_artifact(struct rung_journal *journal, const char *sha256,
                              struct rung_arena *arena, struct rung_text *out,
                              struct rung_error *err);

#endif
