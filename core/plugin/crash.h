/*
 * When a plugin crashes its process, the last words name it and its file. Each thread notes whose
 * code it is in; the handler of fatal signals writes that and lets the signal take its course.
 */
#ifndef PLUGIN_CRASH_H
#define PLUGIN_CRASH_H

struct rung_crash_frame {
    const char *who;  /* "search branching"; NULL: no plugin */
    const char *path; /* of its file */
};

/* Installs the handlers, once, at the start of a process. */
void rung_crash_install(void);
/* Notes that this thread enters a plugin; gives back what was noted before. */
struct rung_crash_frame rung_crash_enter(const char *who, const char *path);
void rung_crash_leave(struct rung_crash_frame outer);

#endif
