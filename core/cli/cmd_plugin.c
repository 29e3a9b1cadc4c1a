/*
 * `rung plugin list|info|try`. Files are opened in a child of their own, so that one which crashes
 * while it is loaded is named and the others are still told. The child prints what it finds as
 * JSON.
 */
#include "base/io.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/plugin_try.h"
#include "plugin/registry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCAN_S = 60 };

/* ---- The child: one file as JSON ---- */

static cJSON *option_json(const struct rung_option *o)
{
    static const char *const types[] = {"",     "bool",     "int",   "float",   "string", "enum",
                                        "path", "duration", "bytes", "strings", "ints",   "secret"};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", o->name);
    cJSON_AddStringToObject(json, "type", types[o->type]);
    cJSON_AddBoolToObject(json, "required", (o->flags & RUNG_OPT_REQUIRED) != 0);
    if (o->default_text)
        cJSON_AddStringToObject(json, "default", o->default_text);
    if (o->min != o->max) {
        rung_json_add_f64(json, "min", o->min);
        rung_json_add_f64(json, "max", o->max);
    }
    if (o->unit)
        cJSON_AddStringToObject(json, "unit", o->unit);
    for (size_t i = 0; o->type == RUNG_OPT_ENUM && o->values[i]; i++) {
        cJSON *values = cJSON_GetObjectItem(json, "values");
        cJSON_AddItemToArray(values ? values : cJSON_AddArrayToObject(json, "values"),
                             cJSON_CreateString(o->values[i]));
    }
    cJSON_AddStringToObject(json, "summary", o->summary);
    return json;
}

static cJSON *factory_json(const struct rung_factory *f)
{
    static const char *const models[] = {"serial-global", "serial-instance", "parallel"};
    cJSON *json = cJSON_CreateObject(), *options;
    cJSON_AddStringToObject(json, "kind", rung_kind_word(f->kind));
    cJSON_AddStringToObject(json, "name", f->name);
    cJSON_AddStringToObject(json, "summary", f->summary);
    if (f->doc)
        cJSON_AddStringToObject(json, "doc", f->doc);
    cJSON_AddStringToObject(json, "threads", models[f->thread_model]);
    options = cJSON_AddArrayToObject(json, "options");
    for (size_t i = 0; f->options && f->options[i]; i++)
        cJSON_AddItemToArray(options, option_json(f->options[i]));
    return json;
}

static int scan(const char *path, bool insecure)
{
    char sha[RUNG_SHA256_HEX];
    const struct rung_plugin *p = NULL;
    struct rung_error err = rung_error_init();
    struct rung_registry *registry = rung_registry_new();
    if (insecure)
        rung_registry_allow_insecure(registry);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "path", path);
    if (rung_registry_open(registry, path, &p, &err) || rung_sha256_file(path, sha, &err)) {
        cJSON_AddStringToObject(json, "error", err.message);
    } else {
        cJSON_AddStringToObject(json, "sha256", sha);
        cJSON_AddStringToObject(json, "id", p->id);
        cJSON_AddStringToObject(json, "version", p->version);
        cJSON_AddStringToObject(json, "vendor", p->vendor);
        cJSON_AddStringToObject(json, "licence", p->licence);
        cJSON *list = cJSON_AddArrayToObject(json, "factories");
        for (size_t i = 0; p->factories[i]; i++)
            cJSON_AddItemToArray(list, factory_json(p->factories[i]));
    }
    char *line = rung_json_line(json);
    puts(line ? line : "{}");
    free(line);
    cJSON_Delete(json);
    rung_registry_free(registry);
    return CLI_OK;
}

/* ---- The parent ---- */

static cJSON *scan_in_child(const char *path, bool insecure)
{
    const char *const args[] = {"plugin", "scan", path,
                                insecure ? "--allow-insecure-plugins" : NULL, NULL};
    cJSON *json = cli_child(args, path, SCAN_S, false);
    if (!rung_json_get(json, "path"))
        cJSON_AddStringToObject(json, "path", path);
    return json;
}

static void print_list_row(const cJSON *json)
{
    const char *error = rung_json_text(json, "error", NULL);
    const cJSON *f;
    if (error)
        printf("%-10s %-12s %s\n", "-", "REFUSED", error);
    cJSON_ArrayForEach(f, rung_json_get(json, "factories"))
        printf("%-10s %-12s %s\n", rung_json_text(f, "kind", ""), rung_json_text(f, "name", ""),
               rung_json_text(f, "summary", ""));
}

/* A limit in the words that a file would have it in. */
static void print_limit(const char *type, double v)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    bool bytes = strcmp(type, "bytes") == 0 && (v < 1e9 || fmod(v, 1 << 30) == 0);
    for (; bytes && unit < 4 && v >= 1024 && v / 1024 == (double)(int64_t)(v / 1024); unit++)
        v /= 1024;
    printf("%.16g%s", v, strcmp(type, "duration") == 0 ? "s" : units[unit]);
}

static void print_option(const cJSON *o)
{
    const char *fallback = rung_json_text(o, "default", NULL),
               *unit = rung_json_text(o, "unit", NULL);
    printf("    %-16s %-9s", rung_json_text(o, "name", ""), rung_json_text(o, "type", ""));
    if (rung_json_bool(o, "required", false))
        printf(" required");
    else
        printf(" default %s", fallback ? fallback : "none");
    double number;
    if (unit && fallback && rung_parse_f64(fallback, &number)) /* "1h" has its own */
        printf(" %s", unit);
    else if (unit && !fallback)
        printf(", in %s", unit);
    if (rung_json_get(o, "min")) {
        fputs(", ", stdout);
        print_limit(rung_json_text(o, "type", ""), rung_json_number(o, "min", 0));
        fputs(" to ", stdout);
        print_limit(rung_json_text(o, "type", ""), rung_json_number(o, "max", 0));
    }
    const cJSON *value;
    cJSON_ArrayForEach(value, rung_json_get(o, "values"))
        printf("%s%s", value->prev->next ? " | " : ": ", value->valuestring);
    printf("\n        %s\n", rung_json_text(o, "summary", ""));
}

static void print_info(const cJSON *json)
{
    const cJSON *f, *o;
    const char *error = rung_json_text(json, "error", NULL);
    if (error) {
        printf("refused: %s\n", error);
        return;
    }
    printf("%s\n  id %s, version %s, by %s, licence %s\n  sha256 %s\n  plugin ABI %u draft %u\n",
           rung_json_text(json, "path", ""), rung_json_text(json, "id", ""),
           rung_json_text(json, "version", ""), rung_json_text(json, "vendor", ""),
           rung_json_text(json, "licence", ""), rung_json_text(json, "sha256", ""), RUNG_ABI_MAJOR,
           RUNG_ABI_DRAFT);
    cJSON_ArrayForEach(f, rung_json_get(json, "factories"))
    {
        printf("\n  %s '%s' (%s): %s\n", rung_json_text(f, "kind", ""),
               rung_json_text(f, "name", ""), rung_json_text(f, "threads", ""),
               rung_json_text(f, "summary", ""));
        if (rung_json_get(f, "doc"))
            printf("\n%s\n", rung_json_text(f, "doc", ""));
        cJSON_ArrayForEach(o, rung_json_get(f, "options")) print_option(o);
    }
}

/* ---- Which files ---- */

static bool has_factory(const cJSON *json, const char *name)
{
    const cJSON *f;
    cJSON_ArrayForEach(f,
                       rung_json_get(json, "factories")) if (!strcmp(rung_json_text(f, "name", ""),
                                                                     name)) return true;
    return false;
}

/* NAME is a path, <kind>_<name>, or a plugin's name, which several kinds may share. */
static bool wanted(const cJSON *json, const char *path, const char *name)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t n = strlen(name);
    return (strncmp(base, name, n) == 0 && strcmp(base + n, ".so") == 0) || has_factory(json, name);
}

/* wrapped: JSON as an object, for a parent that reads one (cli_child) */
static int tell(bool list, bool as_json, bool wrapped, const char *name, bool insecure)
{
    struct rung_arena *arena = rung_arena_new();
    struct rung_registry *registry = rung_registry_new();
    cJSON *all = cJSON_CreateArray();
    size_t n = 1, shown = 0, refused = 0;
    const char *const one[] = {name};
    bool is_path = name && strchr(name, '/');
    const char *const *files = is_path ? one : rung_registry_files(registry, arena, &n);
    for (size_t i = 0; i < n; i++) {
        cJSON *json = scan_in_child(files[i], insecure);
        if (name && !is_path && !wanted(json, files[i], name)) {
            cJSON_Delete(json);
            continue;
        }
        shown++;
        refused += rung_json_get(json, "error") != NULL;
        if (!as_json && list)
            print_list_row(json);
        else if (!as_json)
            print_info(json);
        cJSON_AddItemToArray(all, json);
    }
    char *line = as_json ? rung_json_line(all) : NULL;
    if (line && wrapped)
        printf("{\"plugins\":%s}\n", line);
    else if (line)
        puts(line);
    if (!shown && name)
        fprintf(stderr, "rung plugin: no plugin '%s'; `rung plugin list` shows all\n", name);
    free(line);
    cJSON_Delete(all);
    rung_registry_free(registry);
    rung_arena_free(arena);
    return name && (!shown || refused) ? CLI_USAGE : CLI_OK;
}

static int cli_plugin_usage(void)
{
    fputs("rung plugin: use `rung plugin list`, `rung plugin info NAME` or "
          "`rung plugin try KIND NAME`\n",
          stderr);
    return CLI_USAGE;
}

int cli_plugin(int argc, char **argv)
{
    bool json = false, wrapped = false, insecure = false;
    const char *args[3] = {NULL, NULL, NULL}, *sets[64];
    size_t n_sets = 0;
    int status = 0;
    const struct cli_option options[] = {
        {.name = "--set",
         .value = "OPTION=VALUE",
         .help = "try: an option of the plugin",
         .repeat = true,
         .texts = sets,
         .count = &n_sets},
        {.name = "--wrapped", .flag = &wrapped},
        {.name = "--json", .help = "JSON on standard output", .flag = &json},
        {.name = "--allow-insecure-plugins",
         .help = "load plugin files that others may write",
         .flag = &insecure},
        {0}};
    const struct cli_command command = {
        .name = "plugin",
        .usage = "list | info NAME|FILE.so | try KIND NAME [options]",
        .summary = "Lists the plugins of the search path, or tells one's version, hash, thread "
                   "model and options,\n"
                   "all from its own tables. Each file is loaded in a process of its own. `try` "
                   "starts one with its\n"
                   "options, as a run would, and tells what it found or what it lacks.",
        .options = options,
        .min_args = 1,
        .max_args = 3};
    if (cli_parse(&command, argc, argv, args, &status) < 0)
        return status;
    if (strcmp(args[0], "try") == 0 && args[2])
        return cli_plugin_try(&(struct cli_plugin_try){.kind = args[1],
                                                       .name = args[2],
                                                       .sets = sets,
                                                       .n_sets = n_sets,
                                                       .json = json,
                                                       .insecure = insecure});
    if (args[2] || n_sets)
        return cli_plugin_usage();
    if (strcmp(args[0], "list") == 0 && !args[1])
        return tell(true, json, wrapped, NULL, insecure);
    if (strcmp(args[0], "info") == 0 && args[1])
        return tell(false, json, false, args[1], insecure);
    if (strcmp(args[0], "scan") == 0 && args[1])
        return scan(args[1], insecure);
    return cli_plugin_usage();
}
