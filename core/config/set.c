/*
 * --set PATH=VALUE: one assignment into a settings tree.
 */
#include "config/config.h"
#include "config/load.h"

#include <string.h>

/* What stands for the file of nodes made here: no '/' in it, since paths are resolved beside files.
 */
static const char *origin_of(struct rung_arena *arena, const char *path)
{
    return strchr(path, '/') ? "--set" : rung_arena_printf(arena, "--set %s", path);
}

static void fault(struct rung_diags *diags, const char *assignment, const char *what,
                  const char *detail)
{
    rung_diag(diags, NULL, 0, "--set %s: %s%s", assignment, what, detail);
}

static bool is_key(const char *word)
{
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return *word && strspn(word, rest) == strlen(word) && !strchr("0123456789_-", *word);
}

/* The text of a group's key, or NULL. Looks without marking the key used. */
static const char *text_of(const struct rung_node *group, const char *key)
{
    for (const struct rung_node *c = group->first; c; c = c->next)
        if (c->name && c->type == RUNG_NODE_STRING && strcmp(c->name, key) == 0)
            return c->s;
    return NULL;
}

static bool item_is(const struct rung_node *item, const char *word)
{
    const char *name = text_of(item, "name"), *plugin = text_of(item, "plugin");
    return (name && strcmp(name, word) == 0) || (!name && plugin && strcmp(plugin, word) == 0);
}

/* Item of a list by index, or by its name (its plugin, when it has no name). */
static struct rung_node *find_item(struct rung_node *list, const char *word)
{
    int64_t index, i = 0;
    bool by_index = rung_parse_i64(word, &index);
    for (struct rung_node *c = list->first; c; c = c->next, i++)
        if (by_index ? i == index : item_is(c, word))
            return c;
    return NULL;
}

static char *item_names(struct rung_arena *arena, const struct rung_node *list)
{
    struct rung_buf buf = {0};
    size_t i = 0;
    for (const struct rung_node *c = list->first; c; c = c->next, i++) {
        const char *name = text_of(c, "name"), *plugin = text_of(c, "plugin");
        rung_buf_printf(&buf, "%s%zu", i ? ", " : "", i);
        if (name || plugin)
            rung_buf_printf(&buf, " (%s)", name ? name : plugin);
    }
    char *text = rung_arena_strdup(arena, rung_buf_text(&buf));
    rung_buf_free(&buf);
    return text;
}

/* The list lacks an item: what it has, and the nearest name. */
static void item_fault(struct rung_arena *arena, const struct rung_node *list, const char *word,
                       const char *assignment, struct rung_diags *diags)
{
    const char *names[64];
    size_t n = 0;
    for (const struct rung_node *c = list->first; c && n < 64; c = c->next) {
        const char *name = text_of(c, "name");
        names[n++] = name ? name : text_of(c, "plugin");
    }
    const char *near = rung_nearest(word, names, n), *has = item_names(arena, list);
    rung_diag(diags, NULL, 0, "--set %s: '%s' has no item '%s'%s%s%s; it has %s", assignment,
              list->name ? list->name : "the list", word, near ? "; did you mean '" : "",
              near ? near : "", near ? "'?" : "", *has ? has : "none");
}

static struct rung_node *find_child(struct rung_node *group, const char *name)
{
    for (struct rung_node *c = group->first; c; c = c->next)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

/*
 * The node that `word` names inside `at`; a key that a group lacks is made, as a group. NULL after
 * a fault.
 */
static struct rung_node *descend(struct rung_arena *arena, struct rung_node *at, const char *word,
                                 const char *origin, const char *assignment,
                                 struct rung_diags *diags)
{
    struct rung_node *next = NULL;
    int64_t index;
    if (at->type == RUNG_NODE_LIST) {
        next = find_item(at, word);
        if (!next)
            item_fault(arena, at, word, assignment, diags);
    } else if (at->type != RUNG_NODE_GROUP) {
        fault(diags, assignment, "there is nothing below ", rung_node_type_name(at->type));
    } else if (rung_parse_i64(word, &index)) {
        fault(diags, assignment,
              "there is no list to take an item of; set the whole list, such as ",
              "llm=( { plugin = \"catalog\"; } )");
    } else if (!is_key(word)) {
        fault(diags, assignment, "PATH is keys separated by '.', such as search.rounds; not ",
              word);
    } else if ((next = find_child(at, word)) == NULL) {
        next = rung_node_new(arena, RUNG_NODE_GROUP, word, origin, 0);
        rung_node_append(at, next);
    }
    return next;
}

/* No line of a file: the whole is on the command line. */
static void drop_lines(struct rung_node *node)
{
    node->line = 0;
    for (struct rung_node *c = node->first; c; c = c->next)
        drop_lines(c);
}

/* The value as it would stand in a file, else the text itself. NULL after a fault. */
static struct rung_node *read_value(struct rung_arena *arena, const char *name, const char *text,
                                    const char *origin, const char *assignment,
                                    struct rung_diags *diags)
{
    const char *setting = rung_arena_printf(arena, "v = %s;", text);
    struct rung_diags own = {0};
    struct rung_node *root = NULL, *value = NULL;
    if (!strchr(text, '@') && rung_config_well_formed(setting))
        root = rung_config_parse(arena, setting, origin, &own);
    if (root && root->first && !root->first->next)
        value = root->first;
    if (own.n) {
        own.text.ptr[own.text.len - 1] = 0; /* its line end */
        fault(diags, assignment, "the value is wrong: ", rung_buf_text(&own.text));
    }
    if (!own.n && !value) {
        value = rung_node_new(arena, RUNG_NODE_STRING, NULL, origin, 0);
        value->s = rung_arena_strdup(arena, text);
    }
    if (value) {
        value->name = name;
        drop_lines(value);
    }
    rung_diags_free(&own);
    return value;
}

bool rung_config_set(struct rung_arena *arena, struct rung_node *root, const char *assignment,
                     struct rung_diags *diags)
{
    const char *eq = strchr(assignment, '=');
    if (!eq || eq == assignment) {
        fault(diags, assignment, "write PATH=VALUE, such as search.rounds=3", "");
        return false;
    }
    char *path = rung_arena_strndup(arena, assignment, (size_t)(eq - assignment));
    const char *origin = origin_of(arena, path);
    struct rung_node *at = root;
    for (char *word = path, *end; at && word; word = end ? end + 1 : NULL) {
        end = strchr(word, '.');
        if (end)
            *end = 0;
        at = descend(arena, at, word, origin, assignment, diags);
    }
    struct rung_node *value =
        at ? read_value(arena, at->name, eq + 1, origin, assignment, diags) : NULL;
    if (!value)
        return false;
    rung_config_assign(arena, at, value);
    return true;
}
