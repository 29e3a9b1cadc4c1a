/*
 * Prompts: templates of config/prompts with {{name}} filled in. System message and task are the
 * same for every request of a run and come first, so that a provider can cache them.
 */
#include "base/io.h"
#include "base/status.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TEMPLATE = 256 << 10, MAX_LISTED = 60, MAX_TAIL = 200 };

struct field {
    const char *name;
    const char *text;
};

static int32_t load(struct engine *e, const char *name, const char **out, struct rung_error *err)
{
    struct rung_text text;
    const char *path = rung_arena_printf(e->arena, "%s/prompts/%s.md", e->data_dir, name);
    int32_t status = rung_read_file(e->arena, path, MAX_TEMPLATE, &text, err);
    if (!status)
        *out = text.ptr;
    return status;
}

int32_t engine_prompts_load(struct engine *e, struct rung_error *err)
{
    const struct {
        const char *name, **out;
    } all[] = {{"system", &e->prompts.system}, {"task", &e->prompts.task},
               {"ideas", &e->prompts.ideas},   {"code", &e->prompts.code},
               {"plan", &e->prompts.plan},     {"repair", &e->prompts.repair},
               {"go_on", &e->prompts.go_on},   {"rephrase", &e->prompts.rephrase}};
    int32_t status = RUNG_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++)
        status = load(e, all[i].name, all[i].out, err);
    return status;
}

static const char *field_text(const struct field *fields, const char *name, size_t n)
{
    for (; fields->name; fields++)
        if (strlen(fields->name) == n && memcmp(fields->name, name, n) == 0)
            return fields->text ? fields->text : "";
    return NULL;
}

/* Unknown names stay as they are: a template may hold CUDA code with {{. */
static char *fill(struct rung_arena *arena, const char *template, const struct field *fields)
{
    struct rung_buf out = {0};
    while (*template) {
        const char *end = rung_starts_with(template, "{{") ? strstr(template, "}}") : NULL;
        const char *text =
            end ? field_text(fields, template + 2, (size_t)(end - template) - 2) : NULL;
        if (text) {
            rung_buf_puts(&out, text);
            template = end + 2;
        } else {
            rung_buf_putc(&out, *template ++);
        }
    }
    char *copy = rung_arena_strdup(arena, rung_buf_text(&out));
    rung_buf_free(&out);
    return copy;
}

static struct rung_part text_part(const char *text, bool mark)
{
    return (struct rung_part){.struct_size = sizeof(struct rung_part),
                              .kind = RUNG_PART_TEXT,
                              .text = rung_text_of(text),
                              .cache_mark = mark};
}

static struct rung_message message_of(uint32_t role, const struct rung_part *parts, uint32_t n)
{
    return (struct rung_message){
        .struct_size = sizeof(struct rung_message), .role = role, .parts = parts, .n_parts = n};
}

struct rung_message engine_message(struct rung_arena *arena, uint32_t role, const char *text)
{
    struct rung_part *part = RUNG_ARENA_NEW(arena, struct rung_part, 1);
    *part = text_part(text, false);
    return message_of(role, part, 1);
}

void engine_open_talk(struct engine *e, struct rung_arena *arena, const char *prompt,
                      struct rung_message out[2])
{
    const struct field fields[] = {{"task", rung_task_contract(arena, e->task)}, {NULL, NULL}};
    struct rung_part *parts = RUNG_ARENA_NEW(arena, struct rung_part, 2);
    parts[0] = text_part(fill(arena, e->prompts.task, fields), true);
    parts[1] = text_part(prompt, false);
    out[0] = engine_message(arena, RUNG_MSG_SYSTEM, engine_prompt_system(e, arena));
    out[1] = message_of(RUNG_MSG_USER, parts, 2);
}

const char *engine_prompt_system(struct engine *e, struct rung_arena *arena)
{
    const struct field fields[] = {{"contract", e->contract}, {NULL, NULL}};
    return fill(arena, e->prompts.system, fields);
}

const char *engine_cut_middle(struct rung_arena *arena, const char *text, size_t most)
{
    size_t n = strlen(text);
    if (n <= most)
        return rung_arena_strdup(arena, text);
    size_t head = rung_utf8_cut(text, n, most / 2), tail = n - most / 2;
    while (tail < n && ((unsigned char)text[tail] & 0xc0) == 0x80)
        tail++;
    return rung_arena_printf(arena, "%.*s\n... %zu bytes left out ...\n%s", (int)head, text,
                             tail - head, text + tail);
}

static const char *cut_log(const struct engine *e, struct rung_arena *arena, const char *text)
{
    return engine_cut_middle(arena, text, (size_t)e->pipeline->conversation.log_bytes);
}

const char *engine_time_text(struct rung_arena *arena, double ns)
{
    if (ns < 1e3)
        return rung_arena_printf(arena, "%.0f ns", ns);
    if (ns < 1e6)
        return rung_arena_printf(arena, "%.4g us", ns / 1e3);
    return ns < 1e9 ? rung_arena_printf(arena, "%.4g ms", ns / 1e6)
                    : rung_arena_printf(arena, "%.4g s", ns / 1e9);
}

static const char *verdict_text(struct rung_arena *arena, const struct engine_candidate *c)
{
    if (c->state == RUNG_CANDIDATE_ACCEPTED && c->time_kind)
        return rung_arena_printf(arena, "accepted, %s %s", engine_time_text(arena, c->time_ns),
                                 c->time_kind == RUNG_TIME_MODELLED ? "(modelled)" : "(measured)");
    if (c->state == RUNG_CANDIDATE_ACCEPTED)
        return "accepted, not timed";
    return c->code[0] ? c->code : "not judged";
}

/* The best candidate of an idea, or NULL. */
static const struct engine_candidate *best_of_idea(const struct engine_state *s, uint32_t idea)
{
    const struct engine_candidate *best = NULL;
    for (uint32_t i = 0; i < s->n_candidates; i++)
        if (s->candidates[i]->idea == idea && (!best || engine_ahead(s->candidates[i], best)))
            best = s->candidates[i];
    return best;
}

static void add_idea_line(struct rung_buf *out, struct rung_arena *arena,
                          const struct engine_state *s, const struct engine_idea *idea)
{
    const struct engine_candidate *c = best_of_idea(s, idea->number);
    rung_buf_printf(out, "- #%u (from candidate %u, category %s) %s → %s\n", idea->number,
                    idea->parent, idea->category, idea->sentence,
                    c ? verdict_text(arena, c) : "not tried");
}

static const char *ideas_so_far(const struct engine *e, struct rung_arena *arena)
{
    const struct engine_state *s = &e->state;
    struct rung_buf out = {0};
    uint32_t first = s->n_ideas > MAX_LISTED ? s->n_ideas - MAX_LISTED : 0;
    if (first)
        rung_buf_printf(&out, "(%u earlier ideas left out)\n", first);
    for (uint32_t i = first; i < s->n_ideas; i++)
        add_idea_line(&out, arena, s, s->ideas[i]);
    const char *copy = out.len ? rung_arena_strdup(arena, out.ptr) : "(none)\n";
    rung_buf_free(&out);
    return copy;
}

static void add_parent(struct engine *e, struct rung_buf *out, struct rung_arena *arena,
                       const struct engine_candidate *c)
{
    struct engine_source source;
    struct rung_error err = rung_error_init();
    if (!c || engine_recall(e, c, arena, &source, &err))
        return;
    bool accepted = c->state == RUNG_CANDIDATE_ACCEPTED;
    struct engine_words words = engine_words(e, accepted ? c->best->seq : c->seq, arena);
    rung_buf_printf(out, "### Candidate %u\n\nVerdict: %s%s%s\n\n", c->number,
                    verdict_text(arena, c), c->point[0] ? ", tuned to " : "", c->point);
    rung_buf_printf(out, "```cuda\n%s\n```\n\n", engine_entry_text(source.bundle));
    if (accepted && words.advice[0])
        rung_buf_printf(out, "%s\n\n", words.advice);
    if (!accepted && words.message[0])
        rung_buf_printf(out, "%s\n\n", cut_log(e, arena, words.message));
}

static const char *parents_text(struct engine *e, struct rung_arena *arena, const uint32_t *parents,
                                uint32_t n)
{
    struct rung_buf out = {0};
    for (uint32_t i = 0; i < n; i++)
        add_parent(e, &out, arena, engine_candidate_get(&e->state, parents[i]));
    const char *copy = out.len ? rung_arena_strdup(arena, out.ptr) : "(none: start from nothing)\n";
    rung_buf_free(&out);
    return copy;
}

const char *engine_prompt_ideas(struct engine *e, struct rung_arena *arena,
                                const struct rung_action *action)
{
    char count[16];
    snprintf(count, sizeof count, "%u", action->count);
    const struct field fields[] = {
        {"ideas", ideas_so_far(e, arena)},
        {"parents", parents_text(e, arena, action->parents, action->n_parents)},
        {"count", count},
        {"avoid", action->avoid
                      ? rung_arena_printf(arena, "Categories not to repeat: %s.", action->avoid)
                      : ""},
        {"note", action->note},
        {NULL, NULL}};
    return fill(arena, e->prompts.ideas, fields);
}

const char *engine_prompt_code(struct engine *e, struct rung_arena *arena,
                               const struct engine_candidate *c, const char *note)
{
    const struct engine_idea *idea = engine_idea_get(&e->state, c->idea);
    const struct field fields[] = {
        {"parents", parents_text(e, arena, c->parents, c->n_parents)},
        {"examples", c->n_parents ? "" : e->examples},
        {"idea", idea ? idea->sentence : "Write a plain kernel that is right for every shape."},
        {"note", note},
        {NULL, NULL}};
    return fill(arena, e->prompts.code, fields);
}

const char *engine_prompt_plan(struct engine *e, struct rung_arena *arena, const char *source,
                               const char *message)
{
    const struct field fields[] = {{"source", rung_arena_printf(arena, "```cuda\n%s\n```", source)},
                                   {"message", cut_log(e, arena, message)},
                                   {NULL, NULL}};
    return fill(arena, e->prompts.plan, fields);
}

const char *engine_prompt_repair(struct engine *e, struct rung_arena *arena, const char *source,
                                 const char *code, const char *message, const char *note)
{
    const struct field fields[] = {
        {"source", source ? rung_arena_printf(arena, "```cuda\n%s\n```", source)
                          : "(the last reply held no kernel)"},
        {"code", code},
        {"message", cut_log(e, arena, message ? message : "")},
        {"note", note},
        {NULL, NULL}};
    return fill(arena, e->prompts.repair, fields);
}

/* The last line, or so much of it as tells the place. */
static const char *tail_of(struct rung_arena *arena, const char *text)
{
    size_t n = strlen(text), from = n;
    while (from > 0 && text[from - 1] != '\n' && n - from < MAX_TAIL)
        from--;
    while (from < n && ((unsigned char)text[from] & 0xc0) == 0x80)
        from++;
    return rung_arena_strdup(arena, text + from);
}

const char *engine_prompt_go_on(struct engine *e, struct rung_arena *arena, const char *text)
{
    const struct field fields[] = {{"tail", tail_of(arena, text)}, {NULL, NULL}};
    return fill(arena, e->prompts.go_on, fields);
}

const char *engine_prompt_rephrase(struct engine *e)
{
    return e->prompts.rephrase;
}
