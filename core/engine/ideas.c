/* Ideas are sentences before they are code: from a model's list to numbered records. */
#include "base/json.h"
#include "base/text.h"
#include "engine/engine.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SENTENCE = 600, MIN_SENTENCE = 12 };

/* The text of a list item ("- x", "* x", "3. x", "3) x"), or NULL for any other line. */
static const char *item_text(const char *line)
{
    while (*line == ' ' || *line == '\t')
        line++;
    if ((line[0] == '-' || line[0] == '*') && line[1] == ' ')
        return line + 2;
    size_t digits = strspn(line, "0123456789");
    if (digits > 0 && digits < 4 && (line[digits] == '.' || line[digits] == ')') &&
        line[digits + 1] == ' ')
        return line + digits + 2;
    return NULL;
}

/* "[category]" before the sentence, in square brackets and perhaps bold; "general" without one. */
static const char *take_category(struct rung_arena *arena, const char **text)
{
    const char *p = *text;
    while (*p == ' ' || *p == '*')
        p++;
    const char *end = *p == '[' ? strchr(p, ']') : NULL;
    if (!end || end - p > 32)
        return "general";
    char *category = rung_arena_strndup(arena, p + 1, (size_t)(end - p - 1));
    for (char *c = category; *c; c++)
        *c = isalnum((unsigned char)*c) || *c == '-' ? (char)tolower((unsigned char)*c) : '_';
    p = end + 1;
    while (*p == ' ' || *p == '*' || *p == ':')
        p++;
    *text = p;
    return category;
}

/* Letters and digits only, so that a comma does not make an idea new. */
static void fold(const char *text, char *out, size_t n)
{
    size_t used = 0;
    for (; *text && used + 1 < n; text++)
        if (isalnum((unsigned char)*text))
            out[used++] = (char)tolower((unsigned char)*text);
    out[used] = 0;
}

/* The same sentence from another parent is another experiment. */
static bool known(const struct engine_state *s, const char *sentence, uint32_t parent)
{
    char a[MAX_SENTENCE + 1], b[MAX_SENTENCE + 1];
    fold(sentence, a, sizeof a);
    for (uint32_t i = 0; i < s->n_ideas; i++) {
        fold(s->ideas[i]->sentence, b, sizeof b);
        if (s->ideas[i]->parent == parent && strcmp(a, b) == 0)
            return true;
    }
    return false;
}

static void record(struct engine *e, struct engine_idea *idea)
{
    char key[16];
    cJSON *json = cJSON_CreateObject(), *known_record;
    struct rung_error err = {.struct_size = sizeof err};
    snprintf(key, sizeof key, "%u", idea->number);
    cJSON_AddNumberToObject(json, "number", idea->number);
    cJSON_AddNumberToObject(json, "parent", idea->parent);
    cJSON_AddNumberToObject(json, "round", idea->round);
    cJSON_AddStringToObject(json, "category", idea->category);
    rung_json_add_text(json, "sentence", rung_text_of(idea->sentence));
    known_record = rung_journal_find(e->journal, "idea", key, &idea->seq);
    if (!known_record && rung_journal_append(e->journal, "idea", key, json, &idea->seq, &err))
        engine_give_up(e, &err);
    cJSON_Delete(known_record);
    cJSON_Delete(json);
}

static bool take_item(struct engine *e, const char *text, uint32_t parent)
{
    struct engine_state *s = &e->state;
    const char *category = take_category(s->arena, &text);
    size_t n = rung_utf8_cut(text, strlen(text), MAX_SENTENCE);
    char *sentence = rung_arena_strndup(s->arena, text, n);
    while (n > 0 && strchr(" *\t\r", sentence[n - 1]))
        sentence[--n] = 0;
    if (n < MIN_SENTENCE || known(s, sentence, parent))
        return false;
    struct engine_idea *idea = engine_idea_add(s);
    idea->parent = parent;
    idea->round = e->decisions;
    idea->sentence = sentence;
    idea->category = category;
    record(e, idea);
    return true;
}

uint32_t engine_ideas_take(struct engine *e, const char *reply, uint32_t count, uint32_t parent)
{
    uint32_t taken = 0;
    for (const char *line = reply; *line && taken < count;) {
        size_t n = strcspn(line, "\n");
        char *copy = rung_arena_strndup(e->state.arena, line, n < 4096 ? n : 4096);
        const char *text = item_text(copy);
        if (text)
            taken += take_item(e, text, parent);
        line += n + (line[n] == '\n');
    }
    return taken;
}
