/* samples.json: what was measured, before anybody made medians of it. docs/timing.md has the form.
 */
#include "worker/race.h"
#include "base/log.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Some 20 bytes each: under 4 MiB together. */
enum { SAMPLES_MAX = 200000, FILE_MAX = 4 << 20 };

struct sheet {
    uint32_t left;
    bool cut;
};

static cJSON *blocks_json(const struct rung_track *track, struct sheet *sheet)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < track->n_turns; i++) {
        const struct rung_turn *turn = &track->turns[i];
        sheet->cut |= turn->n > sheet->left;
        if (turn->n > sheet->left)
            break;
        sheet->left -= turn->n;
        cJSON *block = cJSON_CreateObject();
        cJSON_AddBoolToObject(block, "turn", turn->in_rounds);
        cJSON_AddItemToObject(block, "samples_ns",
                              cJSON_CreateDoubleArray(track->samples + turn->first, (int)turn->n));
        cJSON_AddItemToArray(list, block);
    }
    return list;
}

static cJSON *track_json(const char *name, const struct rung_track *track, struct sheet *sheet)
{
    cJSON *json = cJSON_CreateObject();
    rung_json_add_text(json, "name", rung_text_of(name));
    rung_track_describe(json, track);
    cJSON_AddItemToObject(json, "rounds_ns",
                          cJSON_CreateDoubleArray(track->rounds_ns, (int)track->n_rounds));
    cJSON_AddItemToObject(json, "samples", blocks_json(track, sheet));
    return json;
}

static cJSON *shape_json(struct rung_trial *trial, uint32_t shape, struct sheet *sheet)
{
    const struct rung_task *task = trial->ex->task;
    cJSON *json = cJSON_CreateObject(), *list;
    const char *dims = rung_task_dims_text(trial->arena, task, task->bench[shape].dims);
    rung_json_add_text(json, "dims", rung_text_of(dims));
    list = cJSON_AddArrayToObject(json, "kernels");
    cJSON_AddItemToArray(list, track_json("candidate", trial->tracks[shape], sheet));
    for (uint32_t i = 1; trial->race && i < trial->race->n; i++) {
        const struct rung_racer *racer = &trial->race->racers[i];
        if (racer->tracks[shape]->n)
            cJSON_AddItemToArray(list, track_json(racer->name, racer->tracks[shape], sheet));
    }
    return json;
}

static bool any_samples(const struct rung_trial *trial)
{
    for (uint32_t i = 0; i < trial->ex->task->n_bench; i++)
        if (trial->tracks[i] && trial->tracks[i]->n)
            return true;
    return false;
}

void rung_trial_store_samples(struct rung_trial *trial)
{
    const struct rung_task *task = trial->ex->task;
    struct sheet sheet = {.left = SAMPLES_MAX};
    struct rung_error err = rung_error_init();
    char sha256[RUNG_SHA256_HEX];
    if (!any_samples(trial))
        return;
    cJSON *json = cJSON_CreateObject();
    rung_json_add_text(json, "task", rung_text_of(task->name));
    rung_json_add_text(json, "device", rung_text_of(trial->ex->info.name));
    cJSON *shapes = cJSON_AddArrayToObject(json, "shapes");
    for (uint32_t i = 0; i < task->n_bench; i++)
        if (trial->tracks[i])
            cJSON_AddItemToArray(shapes, shape_json(trial, i, &sheet));
    cJSON_AddBoolToObject(json, "cut", sheet.cut);
    char *line = rung_json_line(json);
    if (strlen(line) > FILE_MAX ||
        rung_executor_store(trial->ex, "samples.json", line, strlen(line), sha256, &err) != RUNG_OK)
        rung_log(RUNG_LOG_WARN, "executor", "the samples are not kept: %s",
                 err.message[0] ? err.message : "they are too many");
    free(line);
    cJSON_Delete(json);
}
