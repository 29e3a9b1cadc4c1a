/* `rung doctor`: what rung can use here, and what is missing with the command that brings it. */
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "plugin/instance.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIST_S = 120 };

void doctor_say(const struct doctor *d, const char *format, ...)
{
    va_list args;
    if (d->json)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void doctor_row(const struct doctor *d, const char *word, const char *format, ...)
{
    va_list args;
    if (d->json)
        return;
    printf("  %-14s ", word);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* An array comes wrapped, since a child answers with one object. */
static void list_plugins(struct doctor *d)
{
    const char *const args[] = {
        "plugin", "list", "--json", "--wrapped", d->insecure ? "--allow-insecure-plugins" : NULL,
        NULL};
    cJSON *answer = cli_child(args, "plugin list", LIST_S, true);
    d->plugins = cJSON_DetachItemFromObject(answer, "plugins");
    cJSON_Delete(answer);
    doctor_say(d, "rung " RUNG_VERSION "\n  data           %s\n  plugins        %d files",
               rung_data_dir(), cJSON_GetArraySize(d->plugins));
}

static void print_report(struct doctor *d)
{
    char *line = d->json ? rung_json_line(d->report) : NULL;
    if (line)
        puts(line);
    free(line);
    cJSON_Delete(d->report);
}

static int examine(struct doctor *d)
{
    list_plugins(d);
    doctor_plugins(d);
    doctor_rates(d);
    doctor_baselines(d);
    doctor_system(d);
    cJSON_AddBoolToObject(d->report, "usable", d->faults == 0);
    doctor_say(d, d->faults ? "\nsomething that a run needs is missing: see above"
                            : "\nready: `rung run` works here");
    print_report(d);
    cJSON_Delete(d->plugins);
    return d->faults ? CLI_ENVIRONMENT : CLI_OK;
}

int cli_doctor(int argc, char **argv)
{
    struct doctor d = {0};
    const char *llm = NULL, *sets[64];
    size_t n_sets = 0;
    int status = 0;
    const struct cli_option options[] = {
        {.name = "--quick", .help = "time no kernels", .flag = &d.quick},
        {.name = "--llm",
         .value = "PIPELINE",
         .help = "ask each model of the pipeline one tiny thing, and nothing else",
         .texts = &llm},
        {.name = "--set",
         .value = "PATH=VALUE",
         .help = "with --llm: a setting of the pipeline",
         .repeat = true,
         .texts = sets,
         .count = &n_sets},
        {.name = "--json", .help = "one JSON object on standard output", .flag = &d.json},
        {.name = "--allow-insecure-plugins",
         .help = "load plugin files that others may write",
         .flag = &d.insecure},
        {0}};
    const struct cli_command command = {
        .name = "doctor",
        .usage = "[options]",
        .summary = "Starts every installed plugin in a process of its own, measures each GPU's "
                   "bandwidth and peaks, tries\n"
                   "every baseline, and tells what is missing with the command that brings it. "
                   "Exit status 3 when a run\n"
                   "can't work here. With --llm: whether the models answer, how fast, and at "
                   "what price; 3 when one does not.",
        .options = options,
        .max_args = 0};
    if (cli_parse(&command, argc, argv, NULL, &status) < 0)
        return status;
    if (n_sets && !llm) {
        fprintf(stderr, "rung doctor: --set goes with --llm PIPELINE\n");
        return CLI_USAGE;
    }
    d.report = cJSON_CreateObject();
    cJSON_AddStringToObject(d.report, "version", RUNG_VERSION);
    if (!llm)
        return examine(&d);
    status = doctor_llms(&d, llm, sets, n_sets);
    print_report(&d);
    return status;
}
