/* What the journal holds of a candidate, so that memory need not. */
#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

const char *engine_entry_text(const struct rung_bundle *bundle)
{
    return bundle->files[bundle->entry].text.ptr;
}

static int32_t damaged(struct engine *e, const char *key, struct rung_error *err, const char *why)
{
    return rung_fail(err, RUNG_EIO, "journal.record",
                     "%s: the candidate '%s' in the journal is damaged: %s",
                     rung_journal_dir(e->journal), key, why);
}

int32_t engine_recall(struct engine *e, const struct engine_candidate *c, struct rung_arena *arena,
                      struct engine_source *out, struct rung_error *err)
{
    const char *key = rung_arena_printf(arena, "%u/%u", c->number, c->attempt), *problem = "";
    if (!c->has_source)
        return rung_fail(err, RUNG_ENOTFOUND, "", "candidate %u has no code", c->number);
    cJSON *json = rung_journal_find(e->journal, "candidate", key, NULL);
    if (!json)
        return damaged(e, key, err, "it is gone");
    out->bundle = rung_bundle_from_json(arena, rung_json_get(json, "bundle"), err);
    cJSON_Delete(json);
    if (!out->bundle)
        return damaged(e, key, err, "its code can't be read");
    const struct rung_file *entry = &out->bundle->files[out->bundle->entry];
    out->plan = rung_plan_parse(arena, e->task, entry->path, entry->text, &problem);
    return out->plan ? RUNG_OK : damaged(e, key, err, problem);
}

struct words_visit {
    uint64_t seq;
    struct rung_arena *arena;
    struct engine_words words;
};

static bool visit(void *ctx, const struct rung_record *record)
{
    struct words_visit *v = ctx;
    if (record->seq == v->seq) {
        v->words.message = rung_arena_strdup(v->arena, rung_json_text(record->json, "message", ""));
        v->words.advice = rung_arena_strdup(v->arena, rung_json_text(record->json, "advice", ""));
    }
    return false;
}

struct engine_words engine_words(struct engine *e, uint64_t seq, struct rung_arena *arena)
{
    struct words_visit v = {.seq = seq, .arena = arena, .words = {"", ""}};
    struct rung_error err = rung_error_init();
    if (seq)
        (void)rung_journal_each(e->journal, NULL, seq - 1, visit, &v, &err);
    return v.words;
}
