#include "cli/cli.h"
#include "engine/eval.h"

#include <stdio.h>
#include <string.h>

int cli_eval(int argc, char **argv)
{
    struct rung_eval_options o = {0};
    const char *sets[64], *args[2] = {NULL, NULL};
    int status = 0;
    const struct cli_option options[] = {
        {.name = "--device",
         .value = "NAME",
         .help = "device plugin, such as ptx or cuda; else auto",
         .texts = &o.device},
        {.name = "--only", .value = "STAGE", .help = "compile, check or bench", .texts = &o.only},
        {.name = "--point",
         .value = "POINT",
         .help = "tune point, such as \"TPB=256\"; else the first",
         .texts = &o.point},
        {.name = "--pipeline",
         .value = "FILE",
         .help = "pipeline whose plugins and options to use",
         .texts = &o.pipeline},
        {.name = "--set",
         .value = "PATH=VALUE",
         .help = "a setting of the pipeline",
         .repeat = true,
         .texts = sets,
         .count = &o.n_sets},
        {.name = "--save",
         .value = "DIR",
         .help = "keep PTX, CUBIN and the raw time samples there",
         .texts = &o.save},
        {.name = "--no-baselines",
         .help = "time the kernel alone, without what it is compared with",
         .flag = &o.no_baselines},
        {.name = "--json", .help = "one JSON object on standard output", .flag = &o.json},
        {.name = "--allow-insecure-plugins",
         .help = "load plugin files that others may write",
         .flag = &o.insecure_plugins},
        {0}};
    const struct cli_command command = {
        .name = "eval",
        .usage = "TASK KERNEL.cu [options]",
        .summary = "Judges one kernel file as a candidate: compiles it, checks it against the "
                   "task's reference on\n"
                   "shapes and inputs of the verifier's choice, and times it.",
        .options = options,
        .min_args = 2,
        .max_args = 2};
    if (cli_parse(&command, argc, argv, args, &status) < 0)
        return status;
    if (o.only && strcmp(o.only, "compile") && strcmp(o.only, "check") && strcmp(o.only, "bench")) {
        fprintf(stderr, "rung eval: --only takes compile, check or bench, not '%s'\n", o.only);
        return CLI_USAGE;
    }
    o.task = args[0];
    o.kernel = args[1];
    o.sets = sets;
    return rung_eval_main(&o);
}
