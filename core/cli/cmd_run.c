#include "cli/cli.h"
#include "engine/run.h"

#include <stdio.h>

int cli_run(int argc, char **argv)
{
    struct rung_run_options o = {0};
    const char *sets[64], *args[1] = {NULL};
    int status = 0;
    const struct cli_option options[] = {
        {.name = "--task",
         .value = "FILE",
         .help = "task file; else the pipeline's",
         .texts = &o.task},
        {.name = "--set",
         .value = "PATH=VALUE",
         .help = "a setting of the pipeline, such as search.rounds=3",
         .repeat = true,
         .texts = sets,
         .count = &o.n_sets},
        {.name = "--out",
         .value = "DIR",
         .help = "run folder; else runs/<task>-<time>",
         .texts = &o.out},
        {.name = "--resume",
         .value = "DIR",
         .help = "go on with a run that was cut",
         .texts = &o.resume},
        {.name = "--json", .help = "one JSON object on standard output", .flag = &o.json},
        {.name = "--quiet", .help = "no progress", .flag = &o.quiet},
        {.name = "--allow-insecure-plugins",
         .help = "load plugin files that others may write",
         .flag = &o.insecure_plugins},
        {0}};
    const struct cli_command command = {
        .name = "run",
        .usage = "PIPELINE [options]  |  --resume DIR [options]",
        .summary =
            "Runs a pipeline on its task: asks the model for ideas and kernels, judges every one, "
            "keeps\n"
            "the best. Everything is in the run folder's journal; best.cu there is the winner.",
        .options = options,
        .max_args = 1};
    int n = cli_parse(&command, argc, argv, args, &status);
    if (n < 0)
        return status;
    if ((n == 1) == (o.resume != NULL)) {
        fprintf(stderr, "rung run: give a pipeline file or --resume DIR, and not both\n");
        return CLI_USAGE;
    }
    if (o.resume && (o.task || o.out)) {
        fprintf(stderr,
                "rung run: --task and --out do not go with --resume: the run has its own\n");
        return CLI_USAGE;
    }
    if ((o.out && !o.out[0]) || (o.resume && !o.resume[0])) {
        fprintf(stderr, "rung run: --out and --resume take a folder, not an empty text\n");
        return CLI_USAGE;
    }
    o.pipeline = args[0];
    o.sets = sets;
    return rung_run_main(&o);
}
