/*
 * rung.host.program/0: programs of the user's that answer lines, such as Python with torch. See
 * rung/host.h for the contract of each function.
 *
 * Between this process and the program stands a keeper, `rung helper --program`: it leads the
 * process group that the program runs in, and kills that group as soon as this process is gone, in
 * whatever way it went. Should the keeper itself be killed, the program ends with it.
 */
#ifndef PROCESS_PROGRAM_H
#define PROCESS_PROGRAM_H

#include <rung/host.h>

/*
 * The table. Offer it as a service:
 *   { RUNG_HOST_PROGRAM, &rung_program_table, path }
 * path is the executable that knows the subcommand `helper`; NULL: the one that runs
 * (rung_exe_path). Any thread; one call at a time a program.
 */
extern const struct rung_host_program rung_program_table;

/*
 * The keeper: starts argv[0] (NULL-terminated words) with descriptors 0, 1 and 2 as they are, says
 * on the socket at descriptor 3 how that went (an int32_t errno, 0 when it runs), and waits.
 * Returns the exit status: the program's own, or 128 + the signal that ended it. Only as the whole
 * work of a process that leads its group.
 */
int process_keeper_main(char **argv);

#endif
