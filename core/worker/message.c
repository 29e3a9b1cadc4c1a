/* Types, reading and writing of worker messages. */
#include "worker/message.h"
#include "base/status.h"
#include "worker/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[RUNG_MSG_COUNT] = {
    [RUNG_MSG_NONE] = "",       [RUNG_MSG_HELLO] = "hello",     [RUNG_MSG_SETUP] = "setup",
    [RUNG_MSG_READY] = "ready", [RUNG_MSG_REFUSED] = "refused", [RUNG_MSG_JOB] = "job",
    [RUNG_MSG_AGAIN] = "again", [RUNG_MSG_STAGE] = "stage",     [RUNG_MSG_RUNG] = "rung",
    [RUNG_MSG_BLOB] = "blob",   [RUNG_MSG_RESULT] = "result",   [RUNG_MSG_LOG] = "log",
    [RUNG_MSG_BEAT] = "beat",   [RUNG_MSG_CANCEL] = "cancel",   [RUNG_MSG_BYE] = "bye",
    [RUNG_MSG_DRAFT] = "draft", [RUNG_MSG_RENEW] = "renew",
};

static const char *const stage_kinds[] = {"nothing", "compile", "check", "time", "guest"};

enum rung_message_type rung_message_parse(const char *line, size_t n, cJSON **out)
{
    *out = NULL;
    if (n > RUNG_LINE_MAX || !rung_utf8_valid(line, n))
        return RUNG_MSG_NONE;
    cJSON *json = rung_json_parse(line, n);
    const char *name = cJSON_IsObject(json) ? rung_json_text(json, "t", NULL) : NULL;
    for (int type = 1; name && type < RUNG_MSG_COUNT; type++)
        if (strcmp(name, type_names[type]) == 0) {
            *out = json;
            return (enum rung_message_type)type;
        }
    cJSON_Delete(json);
    return RUNG_MSG_NONE;
}

cJSON *rung_message_new(enum rung_message_type type)
{
    cJSON *message = cJSON_CreateObject();
    cJSON_AddStringToObject(message, "t", type_names[type]);
    return message;
}

char *rung_message_line(cJSON *message)
{
    char *line = rung_json_line(message);
    cJSON_Delete(message);
    return line;
}

void rung_identity_add(cJSON *message)
{
    rung_json_add_i64(message, "protocol", RUNG_PROTOCOL);
    cJSON_AddStringToObject(message, "version", RUNG_VERSION);
    cJSON *abi = cJSON_AddObjectToObject(message, "abi");
    rung_json_add_i64(abi, "major", RUNG_ABI_MAJOR);
    rung_json_add_i64(abi, "draft", RUNG_ABI_DRAFT);
}

int32_t rung_identity_check(const cJSON *message, const char *who, struct rung_error *err)
{
    const cJSON *abi = rung_json_get(message, "abi");
    int64_t protocol = rung_json_i64(message, "protocol", -1);
    int64_t major = rung_json_i64(abi, "major", -1), draft = rung_json_i64(abi, "draft", -1);
    const char *version = rung_json_text(message, "version", "unknown");
    if (protocol == RUNG_PROTOCOL && major == RUNG_ABI_MAJOR && draft == RUNG_ABI_DRAFT &&
        strcmp(version, RUNG_VERSION) == 0)
        return RUNG_OK;
    return rung_fail(err, RUNG_ECONFIG, "worker.version",
                     "%s is rung %.64s (protocol %lld, plugin ABI %lld.%lld), this side is rung %s "
                     "(protocol %d, plugin ABI %u.%u): install the same rung on both",
                     who, version, (long long)protocol, (long long)major, (long long)draft,
                     RUNG_VERSION, RUNG_PROTOCOL, RUNG_ABI_MAJOR, RUNG_ABI_DRAFT);
}

cJSON *rung_refusal_new(int32_t status, const char *text)
{
    cJSON *message = rung_message_new(RUNG_MSG_REFUSED);
    rung_json_add_i64(message, "status", status);
    rung_json_add_text(message, "message", rung_text_of(text));
    return message;
}

int32_t rung_refusal_read(const cJSON *message, struct rung_error *err)
{
    int64_t status = rung_json_i64(message, "status", RUNG_EUNAVAILABLE);
    if (status <= RUNG_OK || status > RUNG_EINTERNAL)
        status = RUNG_EUNAVAILABLE;
    return rung_fail(err, (int32_t)status, "worker.refused", "%s",
                     rung_json_text(message, "message", "it gave no reason"));
}

cJSON *rung_stage_write(const struct rung_stage_message *stage)
{
    cJSON *message = rung_message_new(RUNG_MSG_STAGE);
    rung_json_add_i64(message, "id", (int64_t)stage->id);
    cJSON_AddStringToObject(message, "kind", stage_kinds[stage->kind]);
    rung_json_add_text(message, "stage", rung_text_of(stage->stage));
    rung_json_add_text(message, "text", rung_text_of(stage->text));
    rung_json_add_text(message, "case", rung_text_of(stage->where));
    rung_json_add_text(message, "point", rung_text_of(stage->point));
    rung_json_add_i64(message, "points", (int64_t)stage->points);
    rung_json_add_f64(message, "limit_s", stage->limit_s);
    return message;
}

static bool copy_text(const cJSON *message, const char *name, char *out, size_t size)
{
    const char *text = rung_json_text(message, name, NULL);
    if (!text)
        return false;
    size_t n = rung_utf8_cut(text, strlen(text), size - 1);
    memcpy(out, text, n);
    out[n] = 0;
    return true;
}

bool rung_stage_read(const cJSON *message, struct rung_stage_message *out)
{
    *out = (struct rung_stage_message){0};
    const char *kind = rung_json_text(message, "kind", "");
    for (uint32_t i = 0; i < sizeof stage_kinds / sizeof *stage_kinds; i++)
        if (strcmp(kind, stage_kinds[i]) == 0)
            out->kind = i;
    out->limit_s = rung_json_number(message, "limit_s", -1);
    return out->kind != RUNG_AT_NOTHING && out->limit_s >= 0 && out->limit_s <= 1e6 &&
           rung_message_u64(message, "id", &out->id) &&
           rung_message_u64(message, "points", &out->points) &&
           copy_text(message, "stage", out->stage, sizeof out->stage) &&
           copy_text(message, "text", out->text, sizeof out->text) &&
           copy_text(message, "case", out->where, sizeof out->where) &&
           copy_text(message, "point", out->point, sizeof out->point);
}

bool rung_message_u64(const cJSON *message, const char *name, uint64_t *out)
{
    int64_t v = rung_json_i64(message, name, -1);
    if (v < 0 || v > INT64_C(1) << 53)
        return false;
    *out = (uint64_t)v;
    return true;
}

const char *rung_message_sha(const cJSON *message, const char *name)
{
    const char *text = rung_json_text(message, name, NULL);
    return text && strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64 ? text : NULL;
}
