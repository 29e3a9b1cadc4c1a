/*
 * The keys of directives: "grid=(rows, 2) shared=4 cooperative" into texts, and their lists of
 * expressions. The text is hostile; results live in the reader's arena.
 */
#include "task/plan_reader.h"

#include <ctype.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Length of "key" when s starts with `key =` (and not `key ==`), else 0. */
static size_t key_length(const char *s)
{
    size_t n = 0;
    if (isdigit((unsigned char)*s))
        return 0;
    while (is_word(s[n]))
        n++;
    size_t eq = n + strspn(s + n, " \t");
    return n && s[eq] == '=' && s[eq + 1] != '=' ? n : 0;
}

/* Length of the word that may stand alone when s starts with it, else 0. */
static size_t lone_length(const struct plan_keys *keys, const char *s)
{
    if (keys->word >= keys->n)
        return 0;
    size_t n = strlen(keys->names[keys->word]);
    return strncmp(s, keys->names[keys->word], n) == 0 && !is_word(s[n]) ? n : 0;
}

const char *rung_plan_first_key(const struct plan_keys *keys, const char *s)
{
    int depth = 0;
    for (const char *from = s; *s; s++) {
        depth += (strchr("([{", *s) != NULL) - (strchr(")]}", *s) != NULL);
        bool starts = depth == 0 && s > from && !is_word(s[-1]) && is_word(*s);
        if (starts && (key_length(s) || lone_length(keys, s)))
            return s;
    }
    return s;
}

static char *trimmed(struct rung_arena *arena, const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && (isspace((unsigned char)to[-1]) || to[-1] == ','))
        to--;
    return rung_arena_strndup(arena, from, (size_t)(to - from));
}

/* Number of the key, or n after a fault. */
static uint32_t find_key(struct plan_reader *r, const struct plan_keys *keys, const char *name)
{
    uint32_t k = 0;
    while (k < keys->n && strcmp(keys->names[k], name) != 0)
        k++;
    if (k < keys->n)
        return k;
    const char *near = rung_nearest(name, keys->names, keys->n);
    rung_plan_fault(r, "%s: unknown key '%.64s='%s%s%s; the keys are %s", keys->directive, name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "='?" : "",
                    keys->list);
    return k;
}

bool rung_plan_take_keys(struct plan_reader *r, const struct plan_keys *keys, const char *s,
                         const char **values)
{
    bool good = true;
    for (uint32_t k = 0; k < keys->n; k++)
        values[k] = NULL;
    for (s += strspn(s, " \t,"); *s; s += strspn(s, " \t,")) {
        size_t n = key_length(s), lone = lone_length(keys, s);
        if (n == 0 && lone) {
            values[keys->word] = "1";
            s += lone;
            continue;
        }
        if (n == 0) {
            rung_plan_fault(r, "%s: expected a key such as %s=(...) at \"%.40s\"", keys->directive,
                            keys->names[0], s);
            return false;
        }
        uint32_t k = find_key(r, keys, rung_arena_strndup(r->arena, s, n));
        s = strchr(s + n, '=') + 1;
        const char *end = rung_plan_first_key(keys, s);
        if (k < keys->n && values[k])
            rung_plan_fault(r, "%s: '%s=' stands twice", keys->directive, keys->names[k]);
        else if (k < keys->n)
            values[k] = trimmed(r->arena, s, end);
        good &= k < keys->n;
        s = end;
    }
    return good;
}

const char *rung_plan_unwrap(struct rung_arena *arena, const char *text)
{
    int depth = 0;
    if (*text != '(')
        return text;
    for (const char *s = text; *s; s++) {
        depth += (*s == '(') - (*s == ')');
        if (depth == 0)
            return s[1] ? text : rung_arena_strndup(arena, text + 1, (size_t)(s - text - 1));
    }
    return text;
}

uint32_t rung_plan_take_list(struct plan_reader *r, const char *directive, const char *key,
                             const char *text, uint32_t most, struct rung_expr_text *out)
{
    static const char *const counts[] = {"no",           "one",         "one or two",
                                         "one to three", "one to four", "one to five"};
    const char **items;
    size_t n;
    if (!rung_expr_split(r->arena, rung_plan_unwrap(r->arena, text), &items, &n) || n == 0 ||
        n > most) {
        rung_plan_fault(r, "%s: %s=%.200s must be %s expressions, such as (rows, 4)", directive,
                        key, text, counts[most]);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        rung_plan_take_expr(r, key, items[i], NULL, &out[i]);
    return (uint32_t)n;
}
