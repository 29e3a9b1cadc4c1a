/* Results and reports as JSON. */
#include "worker/report.h"
#include "worker/job.h"
#include "worker/message.h"

#include <stdlib.h>
#include <string.h>

static const char *const verdicts[] = {NULL, "accepted", "rejected", "unsupported", "inconclusive"};
static const char *const statuses[] = {NULL,          "pass",  "fail",   "note",
                                       "unsupported", "error", "skipped"};

const char *rung_verdict_name(uint32_t verdict)
{
    return verdict < sizeof verdicts / sizeof *verdicts ? verdicts[verdict] : NULL;
}

uint32_t rung_verdict_of_name(const char *name)
{
    for (uint32_t i = 1; i < sizeof verdicts / sizeof *verdicts; i++)
        if (name && strcmp(name, verdicts[i]) == 0)
            return i;
    return 0;
}

uint32_t rung_verdict_of_code(const char *code)
{
    if (!*code)
        return RUNG_ACCEPTED;
    if (strcmp(code, "device.unsupported") == 0 || strcmp(code, "device.memory") == 0)
        return RUNG_NOT_SUPPORTED;
    if (strcmp(code, "internal") == 0 || strcmp(code, "device.lost") == 0)
        return RUNG_INCONCLUSIVE;
    return RUNG_REJECTED;
}

const char *rung_rung_status_name(uint32_t status)
{
    return status < sizeof statuses / sizeof *statuses ? statuses[status] : NULL;
}

/* The start says what is wrong first, the end how much of it there was. */
static void cut_middle(struct rung_buf *out, struct rung_text text, size_t limit)
{
    size_t head = rung_utf8_cut(text.ptr, text.len, limit / 4 * 3), tail = text.len - limit / 4;
    while (tail < text.len && ((unsigned char)text.ptr[tail] & 0xc0) == 0x80)
        tail++;
    rung_buf_add(out, text.ptr, head);
    rung_buf_printf(out, "\n[... %zu bytes cut ...]\n", tail - head);
    rung_buf_add(out, text.ptr + tail, text.len - tail);
}

void rung_json_add_cut(cJSON *object, const char *name, struct rung_text text, size_t limit)
{
    struct rung_buf cut = {0};
    if (!text.ptr)
        text = rung_text_of("");
    if (text.len > limit) {
        cut_middle(&cut, text, limit);
        text = (struct rung_text){cut.ptr, cut.len};
    }
    rung_json_add_text(object, name, text);
    rung_buf_free(&cut);
}

static void add_code(cJSON *object, const char *code)
{
    if (*code)
        cJSON_AddStringToObject(object, "code", code);
    else
        cJSON_AddNullToObject(object, "code");
}

cJSON *rung_report_rung(const char *name, uint32_t status, const char *code,
                        struct rung_text detail, cJSON *metrics)
{
    cJSON *entry = cJSON_CreateObject();
    rung_json_add_text(entry, "rung", rung_text_of(name));
    cJSON_AddStringToObject(entry, "status", rung_rung_status_name(status));
    add_code(entry, code);
    rung_json_add_cut(entry, "detail", detail, RUNG_REPORT_TEXT);
    cJSON_AddItemToObject(entry, "metrics", metrics ? metrics : cJSON_CreateObject());
    return entry;
}

static void add_part(cJSON *object, const char *name, cJSON *part, cJSON *otherwise)
{
    cJSON_AddItemToObject(object, name, part ? part : otherwise);
    if (part)
        cJSON_Delete(otherwise);
}

static cJSON *report_new(struct rung_result *result)
{
    cJSON *report = cJSON_CreateObject();
    cJSON_AddStringToObject(report, "verdict", rung_verdict_name(result->verdict));
    add_code(report, result->code);
    rung_json_add_cut(report, "message", result->message, RUNG_REPORT_TEXT);
    add_part(report, "rungs", result->rungs, cJSON_CreateArray());
    add_part(report, "time", result->time, cJSON_CreateNull());
    add_part(report, "baselines", result->baselines, cJSON_CreateArray());
    if (result->turned)
        cJSON_AddItemToObject(report, "rival", result->turned);
    add_part(report, "resources", result->resources, cJSON_CreateNull());
    rung_json_add_text(report, "point", rung_text_of(result->point));
    add_part(report, "compile", result->compile, cJSON_CreateNull());
    add_part(report, "device", result->device, cJSON_CreateNull());
    return report;
}

/* Cuts every text below item that is longer than limit. */
static void shrink_texts(cJSON *item, size_t limit)
{
    for (cJSON *c = item->child; c; c = c->next) {
        if (!cJSON_IsString(c) || strlen(c->valuestring) <= limit) {
            shrink_texts(c, limit);
            continue;
        }
        struct rung_buf cut = {0};
        cut_middle(&cut, rung_text_of(c->valuestring), limit);
        cJSON_SetValuestring(c, rung_buf_text(&cut));
        rung_buf_free(&cut);
    }
}

static void drop_metrics(cJSON *message)
{
    cJSON *rungs = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(message, "report"), "rungs");
    cJSON *entry;
    cJSON_ArrayForEach(entry, rungs)
        cJSON_ReplaceItemInObjectCaseSensitive(entry, "metrics", cJSON_CreateObject());
}

static char *fitting_line(cJSON *message)
{
    size_t limit = RUNG_REPORT_TEXT / 2;
    char *line = rung_json_line(message);
    while (strlen(line) > RUNG_LINE_MAX && limit >= 128) {
        free(line);
        if (limit == RUNG_REPORT_TEXT / 8)
            drop_metrics(message);
        shrink_texts(message, limit);
        limit /= 2;
        line = rung_json_line(message);
    }
    return line;
}

char *rung_result_line(struct rung_result *result)
{
    cJSON *message = rung_message_new(result->draft ? RUNG_MSG_DRAFT : RUNG_MSG_RESULT);
    rung_json_add_i64(message, "id", (int64_t)result->id);
    cJSON_AddStringToObject(message, "verdict", rung_verdict_name(result->verdict));
    cJSON_AddStringToObject(message, "code", result->code);
    rung_json_add_cut(message, "message", result->message, RUNG_REPORT_TEXT);
    rung_json_add_text(message, "point", rung_text_of(result->point));
    rung_json_add_i64(message, "points", (int64_t)result->points);
    cJSON_AddBoolToObject(message, "last", result->last);
    add_part(message, "score", result->score, cJSON_CreateNull());
    add_part(message, "stored", result->stored, cJSON_CreateArray());
    cJSON_AddItemToObject(message, "report", report_new(result));
    char *line = fitting_line(message);
    cJSON_Delete(message);
    return line;
}
