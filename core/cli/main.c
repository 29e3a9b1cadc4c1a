#include "base/text.h"
#include "cli/cli.h"
#include "plugin/crash.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary; /* NULL: for rung itself, not shown */
};

static const struct subcommand subcommands[] = {
    {"run", cli_run, "run a pipeline on a task: search for a faster kernel"},
    {"eval", cli_eval, "judge one kernel file against a task: compile, check, time"},
    {"check", cli_check, "tell all that is wrong with task and pipeline files"},
    {"show", cli_show, "what a run did; one candidate with its source and verdicts"},
    {"export", cli_export, "a run's winner, or its replies as a cassette for llm/replay"},
    {"plugin", cli_plugin, "list plugins; tell one's options; start one"},
    {"doctor", cli_doctor, "what rung can use on this machine, and what is missing"},
    {"worker", cli_worker, "what `rung run` starts on each machine; speaks on its pipes"},
    {"helper", cli_helper, NULL},
};
enum { N_SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static void help(FILE *to)
{
    fputs("rung " RUNG_VERSION
          ": lets language models write CUDA kernels, and believes nothing that they say\n\n"
          "usage: rung COMMAND [arguments]   (rung COMMAND --help tells more)\n\n",
          to);
    for (size_t i = 0; i < N_SUBCOMMANDS; i++)
        if (subcommands[i].summary)
            fprintf(to, "  %-8s %s\n", subcommands[i].name, subcommands[i].summary);
    fputs("\nexit status: 0 accepted or done; 1 rejected, inconclusive or nothing found; 2 bad "
          "usage or\n"
          "configuration; 3 the environment (no device, no key, unsupported)\n"
          "environment: RUNG_LOG=debug|info|warn|error, RUNG_PLUGIN_PATH, RUNG_DATA_DIR, "
          "RUNG_CUDA_HOME\n",
          to);
}

static int unknown(const char *name)
{
    const char *names[N_SUBCOMMANDS];
    for (size_t i = 0; i < N_SUBCOMMANDS; i++)
        names[i] = subcommands[i].name;
    const char *near = rung_nearest(name, names, N_SUBCOMMANDS);
    fprintf(stderr, "rung: there is no command '%s'", name);
    if (near)
        fprintf(stderr, "; did you mean '%s'?", near);
    fputs("\n", stderr);
    help(stderr);
    return CLI_USAGE;
}

/* Output that could not be written is no success. */
static int flushed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fputs("rung: standard output can't be written\n", stderr);
    return status ? status : CLI_ENVIRONMENT;
}

int main(int argc, char **argv)
{
    rung_crash_install();
    signal(SIGPIPE, SIG_IGN); /* a worker that is gone is an error code, not the end */
    if (argc < 2) {
        help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("rung " RUNG_VERSION);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        help(stdout);
        return CLI_OK;
    }
    for (size_t i = 0; i < N_SUBCOMMANDS; i++)
        if (strcmp(subcommands[i].name, argv[1]) == 0)
            return flushed(subcommands[i].run(argc - 2, argv + 2));
    return unknown(argv[1]);
}
