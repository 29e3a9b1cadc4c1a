/*
 * `rung helper`: the process in which untrusted work that needs a fork runs (compiling). It has one
 * thread and never loads a GPU driver. See rung/host.h, rung.host.process/0.
 */
#ifndef PROCESS_HELPER_H
#define PROCESS_HELPER_H

/*
 * Loads the plugin file, takes the extension RUNG_HELPER of its factory, and serves the socket at
 * descriptor 3 until that closes. kind is RUNG_KIND_*. Returns the exit status: 0 after the socket
 * closed, 3 when the plugin could not be started (the opener has been told why). Only as the whole
 * work of a process: it points descriptor 1 at 2, closes every other one, and ignores SIGPIPE.
 */
int rung_helper_main(const char *plugin_path, const char *factory_name, const char *kind);

/*
 * The same from the words of the command: [helper] --plugin PATH --factory NAME --kind KIND. 2 when
 * they are not these or descriptor 3 is not open. [helper] --program WORD... is the keeper of a
 * program (program.h).
 */
int rung_helper_command(int argc, char **argv);

#endif
