#include "plugin/crash.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { N_FATAL = sizeof fatal / sizeof *fatal };

static _Thread_local struct rung_crash_frame current;
static struct sigaction previous[N_FATAL];

struct rung_crash_frame rung_crash_enter(const char *who, const char *path)
{
    struct rung_crash_frame outer = current;
    current = (struct rung_crash_frame){who, path};
    return outer;
}

void rung_crash_leave(struct rung_crash_frame outer)
{
    current = outer;
}

/* Only async-signal-safe calls: strlen and write. */
static void put(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
}

static const char *signal_name(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    default:
        return "SIGABRT";
    }
}

static void on_fatal(int number)
{
    if (current.who) {
        put("rung: fatal: the plugin ");
        put(current.who);
        put(" (");
        put(current.path);
        put(") crashed with ");
        put(signal_name(number));
        put("; leave it out of the pipeline, or have it mended\n");
    }
    for (int i = 0; i < N_FATAL; i++)
        if (fatal[i] == number)
            sigaction(number, &previous[i], NULL);
    raise(number);
}

void rung_crash_install(void)
{
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_NODEFER};
    for (int i = 0; i < N_FATAL; i++)
        sigaction(fatal[i], &action, &previous[i]);
}
