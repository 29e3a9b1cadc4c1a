/* What a supervisor knows of the running job, and the results that it writes. */
#include "worker/flight.h"
#include "worker/job.h"
#include "worker/report.h"
#include "worker/spawn.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { RUNGS_MAX = 256 };

bool rung_flight_begin(struct rung_flight *flight, const cJSON *job)
{
    const char *label = rung_json_text(job, "label", NULL);
    *flight = (struct rung_flight){0};
    if (!label || !rung_message_u64(job, "id", &flight->id))
        return false;
    memcpy(flight->label, label, rung_utf8_cut(label, strlen(label), sizeof flight->label - 1));
    flight->rungs = cJSON_CreateArray();
    flight->active = true;
    return true;
}

bool rung_flight_stage(struct rung_flight *flight, const cJSON *message)
{
    struct rung_stage_message stage;
    if (!flight->active || !rung_stage_read(message, &stage) || stage.id != flight->id)
        return false;
    flight->stage = stage;
    return true;
}

bool rung_flight_rung(struct rung_flight *flight, const cJSON *message)
{
    uint64_t id;
    const cJSON *entry = rung_json_get(message, "rung");
    if (!flight->active || !rung_message_u64(message, "id", &id) || id != flight->id ||
        !cJSON_IsObject(entry) || cJSON_GetArraySize(flight->rungs) >= RUNGS_MAX)
        return false;
    cJSON_AddItemToArray(flight->rungs, cJSON_Duplicate(entry, true));
    return true;
}

bool rung_flight_draft(struct rung_flight *flight, const cJSON *message)
{
    uint64_t id;
    if (!flight->active || !rung_message_u64(message, "id", &id) || id != flight->id ||
        !cJSON_IsObject(rung_json_get(message, "report")))
        return false;
    cJSON_Delete(flight->draft);
    flight->draft = cJSON_Duplicate(message, true);
    return true;
}

const char *rung_flight_guest(const struct rung_flight *flight)
{
    return flight->draft && flight->stage.kind == RUNG_AT_GUEST ? flight->stage.where : NULL;
}

void rung_flight_end(struct rung_flight *flight)
{
    cJSON_Delete(flight->draft);
    cJSON_Delete(flight->rungs);
    *flight = (struct rung_flight){0};
}

/* The rung that was running gets the verdict, those after it were not reached. */
static void close_rungs(struct rung_flight *flight, const cJSON *names, uint32_t status,
                        const char *code, const char *text)
{
    int done = cJSON_GetArraySize(flight->rungs), i = 0;
    const cJSON *name;
    cJSON_ArrayForEach(name, names)
    {
        const char *word = rung_json_text(name, "name", "");
        bool running = i == done && flight->stage.kind == RUNG_AT_CHECK &&
                       strcmp(word, flight->stage.stage) == 0;
        if (i++ < done)
            continue;
        cJSON_AddItemToArray(flight->rungs,
                             rung_report_rung(word, running ? status : RUNG_SKIPPED,
                                              running ? code : "",
                                              rung_text_of(running ? text : "not reached"), NULL));
    }
}

static char *conclude(struct rung_flight *flight, const cJSON *names, const char *code,
                      const char *text)
{
    uint32_t verdict = rung_verdict_of_code(code);
    close_rungs(flight, names, verdict == RUNG_REJECTED ? RUNG_FAIL : RUNG_ERROR, code, text);
    struct rung_result result = {.id = flight->id,
                                 .verdict = verdict,
                                 .code = code,
                                 .message = rung_text_of(text),
                                 .point = flight->stage.point,
                                 .points = flight->stage.points,
                                 .rungs = flight->rungs};
    char *line = rung_result_line(&result);
    flight->rungs = NULL;
    rung_flight_end(flight);
    return line;
}

/* "numeric, at rows=7 cols=1000": where it happened. */
static void add_place(struct rung_buf *text, const struct rung_flight *flight)
{
    rung_buf_puts(text, flight->stage.stage);
    if (flight->stage.where[0])
        rung_buf_printf(text, ", at %s", flight->stage.where);
}

/* Whether the candidate's code was running: not a plugin's own, between two runs of the kernel. */
static bool kernel_ran(const struct rung_flight *flight)
{
    const struct rung_stage_message *stage = &flight->stage;
    return stage->kind == RUNG_AT_TIME ||
           (stage->kind == RUNG_AT_CHECK && (stage->where[0] || strcmp(stage->stage, "load") == 0));
}

char *rung_flight_timed_out(struct rung_flight *flight, const cJSON *names)
{
    bool compiling = flight->stage.kind == RUNG_AT_COMPILE;
    const char *code = compiling ? "compile.timeout" : "run.timeout";
    struct rung_buf text = {0};
    rung_buf_printf(&text, "%s: ", flight->label);
    if (flight->stage.kind == RUNG_AT_NOTHING) {
        rung_buf_puts(&text, "the executor did not begin with the job");
        code = "internal";
    } else {
        bool ran = kernel_ran(flight);
        rung_buf_printf(&text, "%s did not end within %.3g s in ",
                        compiling ? "compiling"
                        : ran     ? "the kernel"
                                  : "the check itself, between two runs of the kernel,",
                        flight->stage.limit_s);
        code = compiling || ran ? code : "internal";
        add_place(&text, flight);
        rung_buf_puts(&text, "; it was killed");
    }
    char *line = conclude(flight, names, code, rung_buf_text(&text));
    rung_buf_free(&text);
    return line;
}

char *rung_flight_crashed(struct rung_flight *flight, const cJSON *names, int status)
{
    bool outside = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    bool ran = kernel_ran(flight);
    struct rung_buf text = {0};
    char how[96];
    rung_buf_printf(&text, "%s: the process died with %s in ", flight->label,
                    rung_status_text(status, how, sizeof how));
    add_place(&text, flight);
    if (!ran && flight->stage.kind == RUNG_AT_CHECK)
        rung_buf_puts(&text, "; no kernel was running: the check itself is at fault");
    if (outside)
        rung_buf_puts(&text, "; it was killed from outside (out of memory?)");
    char *line =
        conclude(flight, names, ran && !outside ? "run.crash" : "internal", rung_buf_text(&text));
    rung_buf_free(&text);
    return line;
}

static bool blame(cJSON *entry, const char *name, const char *why)
{
    if (strcmp(rung_json_text(entry, "name", ""), name) != 0)
        return false;
    cJSON_DeleteItemFromObjectCaseSensitive(entry, "why");
    cJSON_AddStringToObject(entry, "why", why);
    return true;
}

char *rung_flight_spared(struct rung_flight *flight, const char *why)
{
    cJSON *draft = flight->draft, *report = cJSON_GetObjectItemCaseSensitive(draft, "report");
    cJSON *rival = cJSON_GetObjectItemCaseSensitive(report, "rival"), *entry;
    cJSON_ArrayForEach(entry, rung_json_get(report, "baselines"))
    {
        if (blame(entry, flight->stage.where, why))
            cJSON_AddTrueToObject(entry, "crashed");
    }
    if (rival)
        blame(rival, flight->stage.where, why);
    cJSON_DeleteItemFromObjectCaseSensitive(draft, "t");
    cJSON_AddStringToObject(draft, "t", "result");
    char *line = rung_json_line(draft);
    rung_flight_end(flight);
    return line;
}

char *rung_flight_broken(struct rung_flight *flight, const cJSON *names, const char *why)
{
    struct rung_buf text = {0};
    rung_buf_printf(&text, "%s: %s", flight->label, why);
    char *line = conclude(flight, names, "internal", rung_buf_text(&text));
    rung_buf_free(&text);
    return line;
}
