/* Results of workers, read strictly. */
#include "worker/outcome.h"
#include "base/status.h"
#include "worker/message.h"
#include "worker/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STORED_MAX = 256 };

/* Codes and names of artifacts: short words of [a-z0-9_.-]. */
static bool plain_word(const char *text, size_t max)
{
    size_t n = strlen(text);
    return n <= max && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == n;
}

static int32_t bad(struct rung_error *err, const char *what)
{
    return rung_fail(err, RUNG_EMISUSE, "worker.result", "a result that breaks the protocol: %s",
                     what);
}

static bool finite_time(double v)
{
    return isfinite(v) && v >= 0;
}

static bool read_score(struct rung_arena *arena, const cJSON *score, struct rung_outcome *out)
{
    out->advice = "";
    if (!cJSON_IsObject(score))
        return true;
    out->time_kind = (uint32_t)rung_json_i64(score, "kind", 0);
    out->time_ns = rung_json_number(score, "time_ns", -1);
    out->tie_band = rung_json_number(score, "tie_band", -1);
    out->floor_ns = rung_json_number(score, "floor_ns", -1);
    out->low_ns = rung_json_number(score, "low_ns", 0);
    out->high_ns = rung_json_number(score, "high_ns", 0);
    out->advice = rung_arena_strdup(arena, rung_json_text(score, "advice", ""));
    return (out->time_kind == RUNG_TIME_MEASURED || out->time_kind == RUNG_TIME_MODELLED) &&
           finite_time(out->time_ns) && finite_time(out->tie_band) && finite_time(out->floor_ns) &&
           finite_time(out->low_ns) && finite_time(out->high_ns) && out->low_ns <= out->high_ns;
}

static bool read_stored(struct rung_arena *arena, const cJSON *list, struct rung_outcome *out)
{
    int n = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || n > STORED_MAX)
        return false;
    struct rung_stored *stored = RUNG_ARENA_NEW(arena, struct rung_stored, n + 1);
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        struct rung_stored *one = &stored[out->n_stored++];
        const char *name = rung_json_text(item, "name", ""),
                   *sha = rung_message_sha(item, "sha256");
        if (!sha || !*name || !plain_word(name, 63) ||
            !rung_message_u64(item, "bytes", &one->bytes))
            return false;
        one->name = rung_arena_strdup(arena, name);
        memcpy(one->sha256, sha, RUNG_SHA256_HEX);
    }
    out->stored = stored;
    return true;
}

int32_t rung_outcome_read(struct rung_arena *arena, cJSON *message, struct rung_outcome *out,
                          struct rung_error *err)
{
    *out = (struct rung_outcome){0};
    const char *code = rung_json_text(message, "code", NULL);
    out->verdict = rung_verdict_of_name(rung_json_text(message, "verdict", NULL));
    if (!out->verdict || !code || !plain_word(code, sizeof out->code - 1) ||
        (out->verdict == RUNG_ACCEPTED) != !*code)
        return bad(err, "verdict and code do not go together");
    memcpy(out->code, code, strlen(code));
    out->message = rung_arena_strdup(arena, rung_json_text(message, "message", ""));
    out->point = rung_arena_strdup(arena, rung_json_text(message, "point", ""));
    if (!rung_message_u64(message, "points", &out->n_points))
        return bad(err, "points is missing");
    if (!read_score(arena, rung_json_get(message, "score"), out))
        return bad(err, "the time is none");
    if (!read_stored(arena, rung_json_get(message, "stored"), out))
        return bad(err, "the list of artifacts is wrong");
    if (!cJSON_IsObject(rung_json_get(message, "report")))
        return bad(err, "the report is missing");
    out->report = cJSON_DetachItemFromObjectCaseSensitive(message, "report");
    return RUNG_OK;
}

void rung_outcome_lost(struct rung_arena *arena, const char *message, struct rung_outcome *out)
{
    struct rung_result result = {.verdict = RUNG_INCONCLUSIVE,
                                 .code = "internal",
                                 .message = rung_text_of(message),
                                 .point = ""};
    char *line = rung_result_line(&result);
    cJSON *json = rung_json_parse(line, strlen(line));
    struct rung_error ignored = rung_error_init();
    rung_outcome_read(arena, json, out, &ignored);
    cJSON_Delete(json);
    free(line);
}
