/*
 * The command line: one file a subcommand, all thin. Each takes its arguments without the command's
 * name and returns the exit status of DESIGN section 12: 0 accepted or done, 1 rejected or nothing
 * found, 2 bad usage or configuration, 3 the environment.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <rung/plugin.h>
#include <stdbool.h>

enum { CLI_OK = 0, CLI_REJECTED = 1, CLI_USAGE = 2, CLI_ENVIRONMENT = 3 };

int cli_run(int argc, char **argv);
int cli_eval(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_show(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_plugin(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_worker(int argc, char **argv);
int cli_helper(int argc, char **argv);

/* One option of a subcommand. */
struct cli_option {
    const char *name;  /* "--json" */
    const char *value; /* name of its value for the help, or NULL: a switch */
    const char *help;  /* NULL: for rung itself, not shown */
    bool repeat;
    const char **texts; /* where values go (an array for repeat) */
    size_t *count;      /* repeat: how many there are */
    bool *flag;         /* switches */
};

struct cli_command {
    const char *name;
    const char *usage;                /* arguments after the name */
    const char *summary;              /* paragraphs for --help */
    const struct cli_option *options; /* ended by a NULL name */
    size_t min_args, max_args;
};

/*
 * Reads options into their places and gives the other arguments in args (room for max_args).
 * Returns their number, or -1 when the command is over: *status is then 0 after --help, 2 after an
 * error, which has been told.
 */
int cli_parse(const struct cli_command *command, int argc, char **argv, const char **args,
              int *status);

/* Prints "rung: message" of an error and returns its exit status. */
int cli_fail(const struct rung_error *err);

#endif
