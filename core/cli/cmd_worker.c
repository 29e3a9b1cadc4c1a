/* `rung worker` and `rung helper`: processes of rung's own; people never type these. */
#include "cli/cli.h"
#include "base/text.h"
#include "worker/pool.h"
#include "worker/process/helper.h"

#include <stdio.h>
#include <string.h>

int cli_worker(int argc, char **argv)
{
    const char *executor = NULL;
    int64_t fd = 0;
    int status = 0;
    const struct cli_option options[] = {{.name = "--executor",
                                          .value = "FD",
                                          .help = "(internal) be the executor on this descriptor",
                                          .texts = &executor},
                                         {0}};
    const struct cli_command command = {
        .name = "worker",
        .usage = "",
        .summary =
            "Judges candidates for an orchestrator on standard input and output "
            "(docs/worker-protocol.md).\n"
            "A pipeline's workers may put a launch prefix before it: srun, ssh, docker run, ...",
        .options = options};
    if (cli_parse(&command, argc, argv, NULL, &status) < 0)
        return status;
    if (!executor)
        return rung_supervisor_main();
    if (!rung_parse_i64(executor, &fd) || fd < 3 || fd > 1024) {
        fprintf(stderr, "rung worker: --executor takes a descriptor\n");
        return CLI_USAGE;
    }
    return rung_executor_main((int)fd);
}

int cli_helper(int argc, char **argv)
{
    return rung_helper_command(argc, argv);
}
