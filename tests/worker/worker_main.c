/* A stand-in for the rung executable that knows only what a worker needs. */
#include "plugin/crash.h"
#include "worker/pool.h"
#include "worker/process/helper.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    rung_crash_install();
    if (strcmp(word, "helper") == 0)
        return rung_helper_command(argc - 1, argv + 1);
    if (strcmp(word, "worker") != 0)
        return 2;
    if (argc == 4 && strcmp(argv[2], "--executor") == 0)
        return rung_executor_main(atoi(argv[3]));
    return rung_supervisor_main();
}
