/*
 * rung.host.process/0 for executors: starts `rung helper` for an instance's plugin file and talks
 * to it. See rung/host.h for the contract of each function and helper.h for the other side.
 */
#ifndef PROCESS_SERVICE_H
#define PROCESS_SERVICE_H

#include <rung/host.h>

/*
 * The table. Offer it as a service:
 *   { RUNG_HOST_PROCESS, &rung_process_table, path }
 * path is the executable that knows the subcommand `helper`; NULL: the one that runs
 * (rung_exe_path). A helper stays in the process group of its opener, so killing the group ends it;
 * its children end with it. Its standard error comes out at the opener's.
 */
extern const struct rung_host_process rung_process_table;

#endif
