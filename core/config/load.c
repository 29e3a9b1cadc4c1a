/*
 * One configuration file: libconfig's tree to ours, with the place of every setting. Only calls of
 * libconfig 1.5 are used.
 */
#include "config/config.h"
#include "config/load.h"
#include "config/scan.h"
#include "base/io.h"
#include "base/status.h"

#include <libconfig.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 20, MAX_INCLUDED = 64, MAX_INCLUDE_DEPTH = 8 };

struct loader {
    struct rung_arena *arena;
    struct rung_diags *diags;
    const char *file;   /* of what no @include brought in */
    const char *folder; /* that @include paths start from */
    const char *scanning;
    int depth;
    size_t n_included;
};

static struct rung_node *convert(struct loader *l, const config_setting_t *s, int depth);

/*
 * Checks a file before libconfig opens it: its scanner ends the process on what it can't read, such
 * as a folder.
 */
static void check_included(void *ctx, const char *path, size_t n, int line)
{
    struct loader *l = ctx;
    const char *outer = l->scanning, *name = rung_arena_strndup(l->arena, path, n);
    struct rung_error err = rung_error_init();
    struct rung_text text;
    if (l->depth == MAX_INCLUDE_DEPTH || l->n_included == MAX_INCLUDED) {
        rung_diag(l->diags, outer, line,
                  "@include goes more than %d deep or takes more than %d files", MAX_INCLUDE_DEPTH,
                  MAX_INCLUDED);
        return;
    }
    l->n_included++;
    if (*name == '/' || strchr(name, '\\')) {
        rung_diag(l->diags, outer, line, "@include \"%s\": the path must be relative to %s/", name,
                  l->folder);
        return;
    }
    const char *file = rung_path_join(l->arena, l->folder, name);
    if (rung_read_file(l->arena, file, MAX_FILE, &text, &err) != RUNG_OK) {
        rung_diag(l->diags, outer, line, "@include: %s", err.message);
        return;
    }
    l->scanning = file;
    l->depth++;
    rung_config_scan(text.ptr, file, l->diags, check_included, l);
    l->depth--;
    l->scanning = outer;
}

/* libconfig 1.5 names an included file as @include does, later ones by its whole path. */
static const char *place_of(const struct loader *l, const char *file)
{
    if (!file)
        return l->file;
    const char *joined = rung_path_join(l->arena, l->folder, file);
    return access(joined, F_OK) == 0 ? joined : rung_arena_strdup(l->arena, file);
}

static void convert_children(struct loader *l, const config_setting_t *s, struct rung_node *node,
                             int depth)
{
    struct rung_node **end = &node->first;
    for (int i = 0; i < config_setting_length(s); i++) {
        struct rung_node *child = convert(l, config_setting_get_elem(s, (unsigned)i), depth + 1);
        if (!child)
            return;
        *end = child;
        end = &child->next;
    }
}

static struct rung_node *convert(struct loader *l, const config_setting_t *s, int depth)
{
    struct rung_node *node =
        rung_node_new(l->arena, RUNG_NODE_GROUP, config_setting_name(s),
                      place_of(l, config_setting_source_file(s)), config_setting_source_line(s));
    if (depth > RUNG_CONFIG_DEPTH) {
        RUNG_DIAG_AT(l->diags, node, "groups and lists are nested more than %d deep",
                     RUNG_CONFIG_DEPTH);
        return NULL;
    }
    switch (config_setting_type(s)) {
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        node->type = RUNG_NODE_INT;
        node->i = config_setting_get_int64(s);
        node->f = (double)node->i;
        break;
    case CONFIG_TYPE_FLOAT:
        node->type = RUNG_NODE_FLOAT;
        node->f = config_setting_get_float(s);
        if (!isfinite(node->f))
            RUNG_DIAG_AT(l->diags, node, "the number is too large");
        break;
    case CONFIG_TYPE_BOOL:
        node->type = RUNG_NODE_BOOL;
        node->b = config_setting_get_bool(s) != 0;
        break;
    case CONFIG_TYPE_STRING:
        node->type = RUNG_NODE_STRING;
        node->s = rung_arena_strdup(l->arena, config_setting_get_string(s));
        break;
    case CONFIG_TYPE_GROUP:
        convert_children(l, s, node, depth);
        break;
    default: /* arrays and lists are the same to every reader */
        node->type = RUNG_NODE_LIST;
        convert_children(l, s, node, depth);
    }
    return node;
}

/* Directory of a path, for @include; "." for a bare name. */
static char *folder_of(struct rung_arena *arena, const char *file)
{
    const char *slash = strrchr(file, '/');
    if (!slash)
        return rung_arena_strdup(arena, ".");
    return rung_arena_strndup(arena, file, slash == file ? 1 : (size_t)(slash - file));
}

bool rung_config_well_formed(const char *text)
{
    config_t config;
    config_init(&config);
    bool good = config_read_string(&config, text);
    config_destroy(&config);
    return good;
}

/* Line number `line` of a text without its indent, 60 bytes at most, for a message. */
static const char *line_of(struct rung_arena *arena, const char *text, int line)
{
    for (; line > 1 && (text = strchr(text, '\n')); line--)
        text++;
    if (!text)
        return "";
    text += strspn(text, " \t");
    size_t n = strcspn(text, "\r\n");
    char *copy = rung_arena_strndup(arena, text, rung_utf8_cut(text, n, 60));
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return copy;
}

static void syntax_fault(const struct loader *l, const config_t *config, const char *text)
{
    const char *what = config_error_text(config), *included = config_error_file(config);
    int line = config_error_line(config);
    const char *near = included ? "" : line_of(l->arena, text, line);
    rung_diag(l->diags, place_of(l, included), line, "%s%s%s", what ? what : "can't be read",
              *near ? ", at or before: " : "", near);
}

struct rung_node *rung_config_parse(struct rung_arena *arena, const char *text, const char *file,
                                    struct rung_diags *diags)
{
    struct loader l = {.arena = arena, .diags = diags, .file = rung_arena_strdup(arena, file)};
    struct rung_node *root = NULL;
    size_t before = diags->n;
    l.scanning = l.file;
    l.folder = folder_of(arena, file);
    rung_config_scan(text, l.file, diags, check_included, &l);
    if (diags->n != before)
        return NULL;
    config_t config;
    config_init(&config);
    config_set_include_dir(&config, l.folder);
    if (config_read_string(&config, text)) {
        root = convert(&l, config_root_setting(&config), 0);
        root->line = 0;
    } else {
        syntax_fault(&l, &config, text);
    }
    config_destroy(&config);
    return diags->n == before ? root : NULL;
}

struct rung_node *rung_config_load(struct rung_arena *arena, const char *path,
                                   struct rung_diags *diags)
{
    struct rung_error err = rung_error_init();
    struct rung_text text;
    if (rung_read_file(arena, path, MAX_FILE, &text, &err) != RUNG_OK) {
        rung_diag(diags, NULL, 0, "%s", err.message);
        return NULL;
    }
    bool whole = strlen(text.ptr) == text.len;
    if (!whole || !rung_utf8_valid(text.ptr, text.len)) {
        rung_diag(diags, path, 0, "is not a text in UTF-8%s", whole ? "" : ": it holds a NUL byte");
        return NULL;
    }
    bool marked = rung_starts_with(text.ptr, "\xef\xbb\xbf"); /* some editors put it first */
    return rung_config_parse(arena, text.ptr + (marked ? 3 : 0), path, diags);
}
