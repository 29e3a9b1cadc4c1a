/*
 * What a person sees while a run goes on: one line a verdict, and on a terminal a live line below
 * them. All on standard error; one lock of its own, so that lines never mix.
 */
#include "base/die.h"
#include "base/io.h"
#include "engine/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REDRAW_MS = 100 };

struct engine_progress {
    pthread_mutex_t lock;
    bool quiet, live;
    uint64_t drawn_ns;
    char doing[160];
};

struct engine_progress *engine_progress_new(struct engine *e)
{
    struct engine_progress *p = rung_xcalloc(1, sizeof *p);
    const char *term = getenv("TERM");
    pthread_mutex_init(&p->lock, NULL);
    p->quiet = e->options->quiet;
    p->live = !p->quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    return p;
}

void engine_progress_free(struct engine_progress *p)
{
    if (!p)
        return;
    if (p->live)
        fputs("\r\033[K", stderr);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Control characters of model or plugin text must not reach a terminal. */
static void print_clean(const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text >= 32 && *text != 127 ? *text : '?', stderr);
}

static void draw(struct engine *e, struct engine_progress *p)
{
    pthread_mutex_lock(&e->lock);
    const struct engine_candidate *best = engine_best(&e->state);
    double time_ns = best && best->time_kind ? best->time_ns : 0;
    bool modelled = best && best->time_kind == RUNG_TIME_MODELLED;
    unsigned candidates = e->state.n_candidates, ideas = e->state.n_ideas,
             number = best ? best->number : 0;
    unsigned long long judged = e->spent.evaluations;
    pthread_mutex_unlock(&e->lock);
    fprintf(stderr, "\r\033[K%4.0f s  %u ideas, %u candidates, %llu verdicts", engine_wall_s(e),
            ideas, candidates, judged);
    if (time_ns > 0)
        fprintf(stderr, ", best #%u %.4g us%s", number, time_ns / 1e3, modelled ? " modelled" : "");
    if (p->doing[0]) {
        fputs("  | ", stderr);
        print_clean(p->doing);
    }
    fflush(stderr);
    p->drawn_ns = rung_now_ns();
}

void engine_say(struct engine *e, const char *format, ...)
{
    struct engine_progress *p = e->progress;
    char text[1024];
    if (!p || p->quiet)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&p->lock);
    if (p->live)
        fputs("\r\033[K", stderr);
    print_clean(text);
    fputc('\n', stderr);
    if (p->live)
        draw(e, p);
    pthread_mutex_unlock(&p->lock);
}

void engine_doing(struct engine *e, const char *label, const char *text)
{
    struct engine_progress *p = e->progress;
    if (!p || !p->live)
        return;
    pthread_mutex_lock(&p->lock);
    snprintf(p->doing, sizeof p->doing, "%s: %s", label, text);
    if (rung_now_ns() - p->drawn_ns > REDRAW_MS * UINT64_C(1000000))
        draw(e, p);
    pthread_mutex_unlock(&p->lock);
}

/* The first line of a message, short enough for one line of a terminal. */
static void first_line(const char *message, char *out, size_t n)
{
    size_t len = strcspn(message, "\n");
    snprintf(out, n, "%.*s", (int)rung_utf8_cut(message, len, n - 1), message);
}

void engine_tell(struct engine *e, const struct engine_candidate *c, const struct rung_outcome *o)
{
    char why[100], time[64] = "";
    if (o->verdict == RUNG_ACCEPTED && o->time_kind)
        snprintf(time, sizeof time, "  %.4g us%s", o->time_ns / 1e3,
                 o->time_kind == RUNG_TIME_MODELLED ? " modelled" : "");
    first_line(o->message ? o->message : "", why, sizeof why);
    if (o->verdict == RUNG_ACCEPTED)
        engine_say(e, "  #%-3u accepted%s%s%s", c->number, time, o->point[0] ? "  " : "", o->point);
    else
        engine_say(e, "  #%-3u %s  %s", c->number, o->code[0] ? o->code : "not judged", why);
}
