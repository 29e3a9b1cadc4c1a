/* Which device judges which rung, and one verdict out of several devices' words. */
#include "base/json.h"
#include "engine/engine.h"

#include <string.h>

enum { MAX_DEVICES = 16 };

/* The device that a rung runs on: the run's own where it may, else the first that some worker has;
 * NULL: none. */
static const char *device_of(const struct engine *e, const struct rung_stage *rung)
{
    const char *own = rung_pool_plugin(e->pool);
    if (!rung->on_devices)
        return own;
    for (size_t i = 0; rung->on_devices[i]; i++)
        if (strcmp(rung->on_devices[i], own) == 0)
            return own;
    for (size_t i = 0; rung->on_devices[i]; i++)
        if (rung_pool_has(e->pool, rung->on_devices[i]))
            return rung->on_devices[i];
    return NULL;
}

static bool listed(const char *const *list, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* The devices of an occasion's rungs, the run's own first. */
static uint32_t devices_of(const struct engine *e, uint32_t occasion, const char *list[MAX_DEVICES])
{
    const char *own = rung_pool_plugin(e->pool);
    uint32_t n = 0;
    bool mine = occasion == RUNG_WHEN_ALWAYS;
    for (uint32_t i = 0; i < e->pipeline->n_rungs; i++) {
        const struct rung_stage *rung = &e->pipeline->rungs[i];
        const char *device = rung->when == occasion ? device_of(e, rung) : NULL;
        mine |= device == own;
        if (device && device != own && !listed(list, n, device) && n + 1 < MAX_DEVICES)
            list[n++] = device;
    }
    if (!mine)
        return n;
    memmove(list + 1, list, n * sizeof *list);
    list[0] = own;
    return n + 1;
}

bool engine_has_rungs(const struct engine *e, uint32_t occasion)
{
    for (uint32_t i = 0; i < e->pipeline->n_rungs; i++)
        if (e->pipeline->rungs[i].when == occasion)
            return true;
    return false;
}

void engine_warn_rungs(struct engine *e)
{
    for (uint32_t i = 0; i < e->pipeline->n_rungs; i++)
        if (!device_of(e, &e->pipeline->rungs[i]))
            engine_say(e,
                       "rung %s is skipped: it runs on %s, and no worker has it; add for example "
                       "{ device = \"%s\"; } to workers",
                       e->pipeline->rungs[i].name, e->pipeline->rungs[i].on_devices[0],
                       e->pipeline->rungs[i].on_devices[0]);
}

/* ---- One verdict ---- */

static cJSON *entry_of(cJSON *rungs, const char *name)
{
    cJSON *entry;
    cJSON_ArrayForEach(entry, rungs) if (strcmp(rung_json_text(entry, "rung", ""), name) ==
                                         0) return entry;
    return NULL;
}

/* What another device said of its rungs takes the place of "skipped". */
static void merge_rungs(cJSON *into, const cJSON *from)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, from)
    {
        cJSON *old = entry_of(into, rung_json_text(entry, "rung", ""));
        if (old && strcmp(rung_json_text(entry, "status", ""), "skipped") != 0)
            cJSON_ReplaceItemViaPointer(into, old, cJSON_Duplicate(entry, true));
    }
}

static void set_text(cJSON *report, const char *name, const char *text)
{
    if (report)
        cJSON_ReplaceItemInObjectCaseSensitive(report, name, cJSON_CreateString(text));
}

/* A refusal counts wherever it comes from; that another device can't judge says nothing. */
static void merge(struct rung_outcome *out, const struct rung_outcome *other)
{
    merge_rungs(cJSON_GetObjectItemCaseSensitive(out->report, "rungs"),
                rung_json_get(other->report, "rungs"));
    if (other->verdict != RUNG_REJECTED)
        return;
    out->verdict = RUNG_REJECTED;
    memcpy(out->code, other->code, sizeof out->code);
    out->message = other->message;
    out->time_kind = 0;
    set_text(out->report, "verdict", "rejected");
    set_text(out->report, "code", out->code);
    set_text(out->report, "message", out->message);
}

static int32_t on_device(struct engine *e, const struct rung_job *job, const char *device,
                         struct rung_arena *arena, struct rung_outcome *out, struct rung_error *err)
{
    struct rung_job mine = *job;
    bool own = device == rung_pool_plugin(e->pool);
    mine.device = own ? NULL : device;
    if (!own)
        mine.stages &= ~(uint32_t)RUNG_STAGE_TIME;
    return rung_pool_run(e->pool, &mine, arena, out, err);
}

int32_t engine_climb(struct engine *e, const struct engine_candidate *c,
                     const struct rung_bundle *bundle, const char *point, uint32_t occasion,
                     struct rung_arena *arena, struct rung_outcome *out, struct rung_error *err)
{
    const char *devices[MAX_DEVICES];
    struct rung_job job = {.label = rung_arena_printf(arena, "candidate %u%s%s", c->number,
                                                      point ? ", " : "", point ? point : ""),
                           .bundle = bundle,
                           .point = point,
                           .stages = RUNG_STAGE_COMPILE | RUNG_STAGE_CHECK,
                           .occasions = 1u << occasion};
    uint32_t n = devices_of(e, occasion, devices);
    if (occasion == RUNG_WHEN_ALWAYS)
        job.stages |= RUNG_STAGE_TIME;
    *out = (struct rung_outcome){.verdict = RUNG_ACCEPTED, .message = "", .point = point};
    int32_t status = n ? on_device(e, &job, devices[0], arena, out, err) : RUNG_OK;
    for (uint32_t i = 1; i < n && !status && out->verdict == RUNG_ACCEPTED; i++) {
        struct rung_outcome other = {0};
        job.point = out->point;
        status = on_device(e, &job, devices[i], arena, &other, err);
        if (!status)
            merge(out, &other);
        cJSON_Delete(other.report);
    }
    return status;
}
