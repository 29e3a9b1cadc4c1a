/* The ladder: every rung in pipeline order; the first that fails names the code. */
#include "base/status.h"
#include "worker/trial.h"

#include <stdio.h>
#include <string.h>

/* A verdict that keeps the contract of rung/verifier.h, in memory of ours. */
struct judged {
    uint32_t status; /* rung_verdict_status */
    const char *code;
    struct rung_text detail;
    const struct rung_map *metrics;
};

static struct judged error_of(struct rung_trial *trial, int32_t status,
                              const struct rung_error *err)
{
    const char *words = rung_arena_strdup(trial->arena, err->message);
    struct judged judged = {
        .status = RUNG_ERROR, .code = "internal", .detail = rung_text_of(words)};
    if (status == RUNG_ETIMEOUT) {
        judged.status = RUNG_FAIL;
        judged.code = "run.timeout";
    } else if (status == RUNG_ENOMEM) { /* too little memory says nothing of the kernel */
        judged.status = RUNG_UNSUPPORTED;
        judged.code = "device.memory";
    } else if (status == RUNG_EUNSUPPORTED) {
        judged.status = RUNG_UNSUPPORTED;
        judged.code = "device.unsupported";
    }
    return judged;
}

static struct judged misuse(struct rung_trial *trial, const char *name, const char *what)
{
    const char *text =
        rung_arena_printf(trial->arena, "rung %s gave a verdict that is none: %s", name, what);
    return (struct judged){.status = RUNG_ERROR, .code = "internal", .detail = rung_text_of(text)};
}

static struct judged judge(struct rung_trial *trial, const char *name,
                           const struct rung_verdict *verdict)
{
    const char *code = rung_trial_code(trial, verdict->code);
    bool needs_code = verdict->status == RUNG_FAIL || verdict->status == RUNG_UNSUPPORTED;
    if (verdict->status < RUNG_PASS || verdict->status > RUNG_SKIPPED)
        return misuse(trial, name, "an unknown status");
    if (!code || (needs_code && !*code))
        return misuse(trial, name, "its code is missing or is no code");
    return (struct judged){verdict->status, code, verdict->detail, verdict->metrics};
}

static struct judged call_rung(struct rung_trial *trial, const struct rung_executor_rung *rung)
{
    struct rung_error err;
    struct rung_call call = rung_trial_call(trial, &err);
    struct rung_verdict verdict = {.struct_size = sizeof verdict};
    const struct rung_session *session = rung_trial_watch(trial, true);
    int32_t status;
    RUNG_INVOKE(status, rung->instance, struct rung_verifier_ops, check, &call, session, &verdict);
    return status == RUNG_OK ? judge(trial, rung->name, &verdict) : error_of(trial, status, &err);
}

static struct judged skipped(const char *why)
{
    return (struct judged){.status = RUNG_SKIPPED, .code = "", .detail = rung_text_of(why)};
}

/* Keeps the entry, and tells the supervisor in case the next rung takes this process down. */
static void report(struct rung_trial *trial, const char *name, const struct judged *judged)
{
    cJSON *metrics = judged->metrics ? rung_map_to_json(judged->metrics) : NULL;
    cJSON *entry = rung_report_rung(name, judged->status, judged->code, judged->detail, metrics);
    cJSON *message = rung_message_new(RUNG_MSG_RUNG);
    rung_json_add_i64(message, "id", (int64_t)trial->id);
    cJSON_AddItemToObject(message, "rung", cJSON_Duplicate(entry, true));
    cJSON_AddItemToArray(trial->rungs, entry);
    char *line = rung_message_line(message);
    if (strlen(line) <= RUNG_LINE_MAX)
        rung_executor_send_line(trial->ex, line);
    cJSON_free(line);
}

/* What the rung's outcome means for the variant. */
static void settle(struct rung_trial *trial, const struct judged *judged)
{
    if (judged->status == RUNG_FAIL)
        rung_trial_settle(trial, judged->code, judged->detail);
    else if (judged->status == RUNG_UNSUPPORTED) /* never "wrong", whatever word the rung chose */
        rung_trial_settle(trial,
                          rung_verdict_of_code(judged->code) == RUNG_NOT_SUPPORTED
                              ? judged->code
                              : "device.unsupported",
                          judged->detail);
    else if (judged->status == RUNG_ERROR)
        rung_trial_settle(trial, "internal", judged->detail);
}

static struct judged run_rung(struct rung_trial *trial, uint32_t i)
{
    struct rung_executor *ex = trial->ex;
    const struct rung_executor_rung *rung = &ex->rungs[i];
    if (trial->verdict == RUNG_REJECTED)
        return skipped("an earlier rung failed");
    if (trial->sticky)
        return skipped("the device was lost");
    if (!(trial->occasions & 1u << rung->when))
        return skipped(rung->when == RUNG_WHEN_ALWAYS ? "it was passed before"
                       : rung->when == RUNG_WHEN_BEST ? "for the best candidates only"
                                                      : "for the winner only");
    if (trial->named && !rung->on)
        return skipped("another device judges it");
    if (!rung->instance)
        return skipped(rung_arena_printf(trial->arena, "it runs on %s only; this worker has %s",
                                         rung->on, ex->device_plugin));
    rung_trial_enter(trial, RUNG_AT_CHECK, rung->name,
                     rung_arena_printf(trial->arena, "%s %u/%u", rung->name, i + 1, ex->n_rungs),
                     ex->check_s);
    return call_rung(trial, rung);
}

void rung_trial_check(struct rung_trial *trial)
{
    trial->rungs = cJSON_CreateArray();
    for (uint32_t i = 0; i < trial->ex->n_rungs; i++) {
        struct judged judged = run_rung(trial, i);
        settle(trial, &judged);
        report(trial, trial->ex->rungs[i].name, &judged);
    }
}
