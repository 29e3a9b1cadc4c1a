#include "plugin/options.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "plugin/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value {
    int64_t i;       /* INT, BOOL, BYTES */
    double f;        /* FLOAT, DURATION */
    const char *s;   /* STRING, ENUM, PATH (resolved), SECRET */
    const char *raw; /* PATH: as it travels; else s */
    const char **strings;
    int64_t *ints;
    uint32_t count;
    bool set;
};

struct rung_options {
    const struct rung_factory *factory;
    struct value *values; /* one an entry of the table */
    size_t n;
};

struct reader {
    struct rung_arena *arena;
    struct rung_diags *diags;
    const char *data_dir;
};

static bool in_range(const struct rung_option *o, double v)
{
    return o->min == o->max || (v >= o->min && v <= o->max);
}

static bool enum_known(const struct rung_option *o, const char *text)
{
    for (size_t i = 0; o->values[i]; i++)
        if (strcmp(o->values[i], text) == 0)
            return true;
    return false;
}

static void enum_fault(struct reader *r, const struct rung_option *o, const struct rung_node *node)
{
    struct rung_buf all = {0};
    for (size_t i = 0; o->values[i]; i++)
        rung_buf_printf(&all, "%s%s", i ? ", " : "", o->values[i]);
    RUNG_DIAG_AT(r->diags, node, "'%s' may be %s; not '%s'", o->name, all.ptr, node->s);
    rung_buf_free(&all);
}

static void range_fault(struct reader *r, const struct rung_option *o, const struct rung_node *node)
{
    RUNG_DIAG_AT(r->diags, node, "'%s' must lie in %.15g..%.15g%s%s", o->name, o->min, o->max,
                 o->unit ? " " : "", o->unit ? o->unit : "");
}

static void type_fault(struct reader *r, const struct rung_option *o, const struct rung_node *node,
                       const char *want)
{
    RUNG_DIAG_AT(r->diags, node, "'%s' must be %s, not %s", o->name, want,
                 rung_node_type_name(node->type));
}

static void set_path(struct reader *r, const struct rung_node *node, struct value *v)
{
    if (!node->s[0])
        return; /* "" is no path, not the file's folder */
    if (rung_starts_with(node->s, "data:")) {
        v->raw = node->s;
        v->s = rung_path_join(r->arena, r->data_dir, node->s + 5);
        return;
    }
    v->s = v->raw = rung_path_absolute(r->arena, rung_path_beside(r->arena, node->file, node->s));
}

static void set_string(struct reader *r, const struct rung_option *o, const struct rung_node *node,
                       struct value *v)
{
    if (node->type != RUNG_NODE_STRING) {
        type_fault(r, o, node, "a string");
        return;
    }
    v->s = v->raw = node->s;
    if (o->type == RUNG_OPT_PATH)
        set_path(r, node, v);
    else if (o->type == RUNG_OPT_ENUM && !enum_known(o, node->s))
        enum_fault(r, o, node);
    else if (o->type == RUNG_OPT_SECRET && !rung_starts_with(node->s, "env:") &&
             !rung_starts_with(node->s, "file:"))
        RUNG_DIAG_AT(
            r->diags, node,
            "'%s' must name where the secret is, as \"env:VARIABLE\" or \"file:PATH\"; never "
            "write the secret itself here",
            o->name);
    else if (o->type == RUNG_OPT_SECRET && rung_starts_with(node->s, "file:"))
        v->s = v->raw = rung_arena_printf(
            r->arena, "file:%s",
            rung_path_absolute(r->arena, rung_path_beside(r->arena, node->file, node->s + 5)));
}

static void set_number(struct reader *r, const struct rung_option *o, const struct rung_node *node,
                       struct value *v)
{
    bool whole = node->type == RUNG_NODE_INT;
    if (!whole && !(o->type == RUNG_OPT_FLOAT && node->type == RUNG_NODE_FLOAT)) {
        type_fault(r, o, node, o->type == RUNG_OPT_INT ? "an integer" : "a number");
        return;
    }
    v->i = node->i;
    v->f = whole ? (double)node->i : node->f;
    if (!in_range(o, v->f))
        range_fault(r, o, node);
}

/* DURATION and BYTES: a number, or text with a unit. */
static void set_quantity(struct reader *r, const struct rung_option *o,
                         const struct rung_node *node, struct value *v)
{
    bool ok = node->type == RUNG_NODE_INT ||
              (node->type == RUNG_NODE_FLOAT && o->type == RUNG_OPT_DURATION);
    v->i = node->i;
    v->f = node->type == RUNG_NODE_INT ? (double)node->i : node->f;
    if (node->type == RUNG_NODE_STRING)
        ok = o->type == RUNG_OPT_BYTES ? rung_parse_bytes(node->s, &v->i)
                                       : rung_parse_duration(node->s, &v->f);
    if (o->type == RUNG_OPT_BYTES)
        v->f = (double)v->i;
    if (!ok || v->f < 0)
        RUNG_DIAG_AT(r->diags, node, "'%s' must be %s", o->name,
                     o->type == RUNG_OPT_BYTES ? "a size such as 4096 or \"64MiB\""
                                               : "a time such as 90 or \"2h\"");
    else if (!in_range(o, v->f))
        range_fault(r, o, node);
}

static void set_list(struct reader *r, const struct rung_option *o, const struct rung_node *node,
                     struct value *v)
{
    enum rung_node_type item = o->type == RUNG_OPT_INTS ? RUNG_NODE_INT : RUNG_NODE_STRING;
    if (node->type != RUNG_NODE_LIST) {
        type_fault(r, o, node, item == RUNG_NODE_INT ? "a list of integers" : "a list of strings");
        return;
    }
    size_t n = rung_node_count(node);
    v->strings = RUNG_ARENA_NEW(r->arena, const char *, n);
    v->ints = RUNG_ARENA_NEW(r->arena, int64_t, n);
    for (const struct rung_node *c = node->first; c; c = c->next) {
        if (c->type != item) {
            type_fault(r, o, c, item == RUNG_NODE_INT ? "a list of integers" : "a list of strings");
            return;
        }
        v->strings[v->count] = c->s;
        v->ints[v->count++] = c->i;
    }
}

static void set_value(struct reader *r, const struct rung_option *o, const struct rung_node *node,
                      struct value *v)
{
    v->set = true;
    switch (o->type) {
    case RUNG_OPT_BOOL:
        if (node->type != RUNG_NODE_BOOL)
            type_fault(r, o, node, "true or false");
        v->i = node->b;
        return;
    case RUNG_OPT_INT:
    case RUNG_OPT_FLOAT:
        set_number(r, o, node, v);
        return;
    case RUNG_OPT_DURATION:
    case RUNG_OPT_BYTES:
        set_quantity(r, o, node, v);
        return;
    case RUNG_OPT_STRINGS:
    case RUNG_OPT_INTS:
        set_list(r, o, node, v);
        return;
    default:
        set_string(r, o, node, v);
    }
}

static struct rung_node *scalar_of_text(struct reader *r, uint32_t type, const char *text)
{
    struct rung_node *node = rung_node_new(r->arena, RUNG_NODE_STRING, NULL, "default", 0);
    node->s = rung_arena_strdup(r->arena, text);
    if ((type == RUNG_OPT_INT || type == RUNG_OPT_INTS) && rung_parse_i64(text, &node->i))
        node->type = RUNG_NODE_INT;
    else if (type == RUNG_OPT_FLOAT && rung_parse_f64(text, &node->f))
        node->type = RUNG_NODE_FLOAT;
    else if (type == RUNG_OPT_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        node->type = RUNG_NODE_BOOL;
        node->b = text[0] == 't';
    }
    return node;
}

/* The default as the node that a user's text would have become: one code path for both. */
static struct rung_node *default_node(struct reader *r, const struct rung_option *o)
{
    if (o->type != RUNG_OPT_STRINGS && o->type != RUNG_OPT_INTS)
        return scalar_of_text(r, o->type, o->default_text);
    struct rung_node *list = rung_node_new(r->arena, RUNG_NODE_LIST, NULL, "default", 0);
    char *text = rung_arena_strdup(r->arena, o->default_text), *save = NULL;
    for (char *item = strtok_r(text, ", ", &save); item; item = strtok_r(NULL, ", ", &save))
        rung_node_append(list, scalar_of_text(r, o->type, item));
    return list;
}

static void read_option(struct reader *r, const struct rung_option *o,
                        const struct rung_node *group, struct value *v)
{
    *v = (struct value){.s = "", .raw = ""};
    const struct rung_node *node = rung_node_get(group, o->name);
    if (node) {
        set_value(r, o, node, v);
        return;
    }
    if (o->flags & RUNG_OPT_REQUIRED)
        rung_diag(r->diags, group ? group->file : NULL, group ? group->line : 0,
                  "the option '%s' is required: %s", o->name, o->summary);
    else if (o->default_text)
        set_value(r, o, default_node(r, o), v);
    v->set = false;
}

static void unknown_faults(struct reader *r, const struct rung_factory *factory,
                           const struct rung_node *group, const char *const *ignore)
{
    const char *known[320];
    size_t n = 0;
    for (size_t i = 0; ignore && ignore[i] && n < 60; i++) {
        rung_node_get(group, ignore[i]);
        known[n++] = ignore[i];
    }
    for (size_t i = 0; factory->options && factory->options[i]; i++)
        known[n++] = factory->options[i]->name;
    known[n] = NULL;
    char what[160];
    snprintf(what, sizeof what, "%s '%s'", rung_kind_word(factory->kind), factory->name);
    rung_diag_unknown(r->diags, group, what, known);
}

struct rung_options *rung_options_read(struct rung_arena *arena, const struct rung_factory *factory,
                                       const struct rung_node *group, const char *const *ignore,
                                       const char *data_dir, struct rung_diags *diags)
{
    struct reader r = {arena, diags, data_dir};
    size_t before = diags->n, n = 0;
    while (factory->options && factory->options[n])
        n++;
    struct rung_options *options = RUNG_ARENA_NEW(arena, struct rung_options, 1);
    *options = (struct rung_options){factory, RUNG_ARENA_NEW(arena, struct value, n), n};
    for (size_t i = 0; i < n; i++)
        read_option(&r, factory->options[i], group, &options->values[i]);
    if (group)
        unknown_faults(&r, factory, group, ignore);
    return diags->n == before ? options : NULL;
}

/* All digits: cJSON's own numbers are doubles. */
static cJSON *whole_json(int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return cJSON_CreateRaw(text);
}

static void add_json(cJSON *json, const struct rung_option *o, const struct value *v)
{
    switch (o->type) {
    case RUNG_OPT_BOOL:
        cJSON_AddBoolToObject(json, o->name, v->i != 0);
        return;
    case RUNG_OPT_INT:
    case RUNG_OPT_BYTES:
        rung_json_add_i64(json, o->name, v->i);
        return;
    case RUNG_OPT_FLOAT:
    case RUNG_OPT_DURATION:
        rung_json_add_f64(json, o->name, v->f);
        return;
    case RUNG_OPT_STRINGS:
    case RUNG_OPT_INTS: {
        cJSON *list = cJSON_AddArrayToObject(json, o->name);
        for (uint32_t i = 0; i < v->count; i++)
            cJSON_AddItemToArray(list, o->type == RUNG_OPT_INTS
                                           ? whole_json(v->ints[i])
                                           : cJSON_CreateString(v->strings[i]));
        return;
    }
    default:
        cJSON_AddStringToObject(json, o->name, v->raw);
    }
}

cJSON *rung_options_to_json(const struct rung_options *options)
{
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < options->n; i++)
        if (options->values[i].set)
            add_json(json, options->factory->options[i], &options->values[i]);
    return json;
}

/* The value of an option of one of two types; asking for anything else is the plugin's mistake. */
static const struct value *find(const struct rung_options *options, const char *name,
                                uint64_t types)
{
    static const struct value none = {.s = "", .raw = ""};
    for (size_t i = 0; i < options->n; i++) {
        const struct rung_option *o = options->factory->options[i];
        if (strcmp(o->name, name) == 0 && (types >> o->type & 1))
            return &options->values[i];
    }
    rung_log(RUNG_LOG_ERROR, options->factory->name,
             "API MISUSE: option '%s' is not one of mine, or has another type", name);
    return &none;
}

#define TYPE(t) (UINT64_C(1) << (t))

int64_t rung_options_int(const struct rung_options *options, const char *name)
{
    return find(options, name, TYPE(RUNG_OPT_INT) | TYPE(RUNG_OPT_BOOL) | TYPE(RUNG_OPT_BYTES))->i;
}

double rung_options_float(const struct rung_options *options, const char *name)
{
    return find(options, name, TYPE(RUNG_OPT_FLOAT) | TYPE(RUNG_OPT_DURATION))->f;
}

const char *rung_options_string(const struct rung_options *options, const char *name)
{
    return find(options, name,
                TYPE(RUNG_OPT_STRING) | TYPE(RUNG_OPT_ENUM) | TYPE(RUNG_OPT_PATH) |
                    TYPE(RUNG_OPT_SECRET))
        ->s;
}

uint32_t rung_options_count(const struct rung_options *options, const char *name)
{
    return find(options, name, TYPE(RUNG_OPT_STRINGS) | TYPE(RUNG_OPT_INTS))->count;
}

const char *rung_options_string_at(const struct rung_options *options, const char *name,
                                   uint32_t index)
{
    const struct value *v = find(options, name, TYPE(RUNG_OPT_STRINGS));
    return index < v->count ? v->strings[index] : NULL;
}

int64_t rung_options_int_at(const struct rung_options *options, const char *name, uint32_t index)
{
    const struct value *v = find(options, name, TYPE(RUNG_OPT_INTS));
    return index < v->count ? v->ints[index] : 0;
}
