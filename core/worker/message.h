/*
 * Messages of the worker protocol (docs/worker-protocol.md): their types, strict reading of what
 * another process sent, and the few that more than one side writes. Pure; any thread.
 */
#ifndef WORKER_MESSAGE_H
#define WORKER_MESSAGE_H

#include "base/json.h"

enum rung_message_type {
    RUNG_MSG_NONE, /* not a message: hostile or broken */
    RUNG_MSG_HELLO,
    RUNG_MSG_SETUP,
    RUNG_MSG_READY,
    RUNG_MSG_REFUSED,
    RUNG_MSG_JOB,
    RUNG_MSG_AGAIN,
    RUNG_MSG_STAGE,
    RUNG_MSG_RUNG,
    RUNG_MSG_BLOB,
    RUNG_MSG_RESULT,
    RUNG_MSG_LOG,
    RUNG_MSG_BEAT,
    RUNG_MSG_CANCEL,
    RUNG_MSG_BYE,
    RUNG_MSG_DRAFT, /* of an executor: the result, if a guest takes it down */
    RUNG_MSG_RENEW, /* the next job is for an executor that has judged nothing */
    RUNG_MSG_COUNT,
};

/*
 * Reads one line: a JSON object in valid UTF-8, nested at most 64 deep, whose "t" names a type.
 * On RUNG_MSG_NONE *out is NULL; else the caller deletes it.
 */
enum rung_message_type rung_message_parse(const char *line, size_t n, cJSON **out);
/* A new object with its "t". */
cJSON *rung_message_new(enum rung_message_type type);
/* The line of a message, which is deleted. On the heap. */
char *rung_message_line(cJSON *message);

/* Adds this program's protocol, version and ABI. */
void rung_identity_add(cJSON *message);
/* RUNG_ECONFIG, naming both sides, when the message's are not ours. who: "the worker". */
int32_t rung_identity_check(const cJSON *message, const char *who, struct rung_error *err);

/* A refusal: the status, and words for people. */
cJSON *rung_refusal_new(int32_t status, const char *text);
/* err filled from a refusal; returns its status, never RUNG_OK. */
int32_t rung_refusal_read(const cJSON *message, struct rung_error *err);

/* What part of a job an executor has entered. Texts are bounded copies. */
enum rung_stage_kind {
    RUNG_AT_NOTHING,
    RUNG_AT_COMPILE,
    RUNG_AT_CHECK,
    RUNG_AT_TIME,
    RUNG_AT_GUEST, /* a baseline or a rival, named by `where`: not the candidate's doing */
};

struct rung_stage_message {
    uint64_t id;
    uint32_t kind;   /* rung_stage_kind */
    double limit_s;  /* from now on; 0 .. 1e6 */
    uint64_t points; /* of the plan */
    char stage[96];  /* "compile", a rung's name, "time" */
    char text[128];  /* "numeric 2/3" */
    char where[256]; /* "rows=7 cols=1000", or "" */
    char point[512];
};

cJSON *rung_stage_write(const struct rung_stage_message *stage);
/* false when a member is missing or of a wrong type. */
bool rung_stage_read(const cJSON *message, struct rung_stage_message *out);

/* Whole number 0 .. 2^53 of a member; false when it is not there. */
bool rung_message_u64(const cJSON *message, const char *name, uint64_t *out);
/* Text that is exactly 64 lower-case hex digits, or NULL. */
const char *rung_message_sha(const cJSON *message, const char *name);

#endif
