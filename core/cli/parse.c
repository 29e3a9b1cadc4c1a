#include "base/text.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static void help(const struct cli_command *c)
{
    printf("rung %s %s\n\n%s\n", c->name, c->usage, c->summary);
    if (c->options[0].name)
        puts("\noptions:");
    for (const struct cli_option *o = c->options; o->name; o++) {
        if (!o->help) /* rung's own */
            continue;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        printf("  %-26s %s\n", left, o->help);
    }
}

static int usage_error(const struct cli_command *c, int *status, const char *what,
                       const char *which)
{
    fprintf(stderr, "rung %s: %s%s\nusage: rung %s %s\n", c->name, what, which, c->name, c->usage);
    *status = CLI_USAGE;
    return -1;
}

static const struct cli_option *find(const struct cli_command *c, const char *arg, size_t n)
{
    for (const struct cli_option *o = c->options; o->name; o++)
        if (strlen(o->name) == n && memcmp(o->name, arg, n) == 0)
            return o;
    return NULL;
}

static int unknown_option(const struct cli_command *c, const char *arg, int *status)
{
    const char *names[32];
    size_t n = 0;
    while (n < 32 && c->options[n].name) {
        names[n] = c->options[n].name;
        n++;
    }
    const char *near = rung_nearest(arg, names, n);
    fprintf(stderr, "rung %s: unknown option %s%s%s%s\n", c->name, arg,
            near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return usage_error(c, status, "see rung --help for ", c->name);
}

/* One option at argv[*i]; false after an error. */
static bool take_option(const struct cli_command *c, int argc, char **argv, int *i, int *status)
{
    const char *arg = argv[*i], *equals = strchr(arg, '=');
    const struct cli_option *o = find(c, arg, equals ? (size_t)(equals - arg) : strlen(arg));
    if (!o) {
        unknown_option(c, arg, status);
        return false;
    }
    if (!o->value) {
        if (equals)
            usage_error(c, status, "this option takes no value: ", o->name);
        *o->flag = true;
        return !equals;
    }
    const char *value = equals ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
    if (!value) {
        usage_error(c, status, "this option needs a value: ", o->name);
        return false;
    }
    if (o->repeat && *o->count >= 64) {
        usage_error(c, status, "too many of ", o->name);
        return false;
    }
    if (o->repeat)
        o->texts[(*o->count)++] = value;
    else
        *o->texts = value;
    return true;
}

int cli_parse(const struct cli_command *c, int argc, char **argv, const char **args, int *status)
{
    size_t n = 0;
    bool only_args = false;
    for (int i = 0; i < argc; i++) {
        if (!only_args && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            help(c);
            *status = CLI_OK;
            return -1;
        }
        if (!only_args && strcmp(argv[i], "--") == 0) {
            only_args = true;
        } else if (!only_args && argv[i][0] == '-' && argv[i][1]) {
            if (!take_option(c, argc, argv, &i, status))
                return -1;
        } else if (n == c->max_args) {
            return usage_error(c, status, "one argument too many: ", argv[i]);
        } else {
            args[n++] = argv[i];
        }
    }
    if (n < c->min_args)
        return usage_error(c, status, "an argument is missing", "");
    return (int)n;
}

int cli_fail(const struct rung_error *err)
{
    fprintf(stderr, "rung: %s\n", err->message);
    switch (err->code) {
    case RUNG_EINVAL:
    case RUNG_ECONFIG:
    case RUNG_ENOTFOUND:
    case RUNG_EMISUSE:
        return CLI_USAGE;
    default:
        return CLI_ENVIRONMENT;
    }
}
