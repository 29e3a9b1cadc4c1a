/* A block in numbers and in words. */
#include "events.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double events_median(double *values, uint32_t n)
{
    return events_summarise(values, n).median;
}

struct events_summary events_summarise(double *v, uint32_t n)
{
    qsort(v, n, sizeof *v, ascending);
    double middle = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    return (struct events_summary){v[0], v[n / 4], middle, v[n - 1 - n / 4]};
}

static const char *cold_word(uint32_t cold)
{
    return cold == RUNG_COLD_ROTATE ? "rotate" : cold == RUNG_COLD_FLUSH ? "flush" : "warm";
}

/* What holds the clock down, in words. */
static const char *throttle_words(uint32_t bits, char out[96])
{
    snprintf(out, 96, "%s%s%s%s", bits & RUNG_THROTTLE_POWER ? "power cap, " : "",
             bits & RUNG_THROTTLE_THERMAL ? "heat, " : "",
             bits & RUNG_THROTTLE_HARDWARE ? "hardware slowdown, " : "",
             bits & RUNG_THROTTLE_SETTING ? "clocks set by someone, " : "");
    size_t n = strlen(out);
    if (n)
        out[n - 2] = 0;
    return n ? out : "nothing";
}

static void add_condition(const struct events_block *b, struct rung_map *map)
{
    const struct rung_host *host = b->self->host;
    const struct rung_device_condition *c = &b->timing->measured.after;
    char words[96];
    if (!c->known)
        return;
    host->map_set_int(map, "sm_mhz", c->sm_mhz);
    host->map_set_int(map, "sm_mhz_max", c->sm_mhz_max);
    host->map_set_int(map, "memory_mhz", c->memory_mhz);
    host->map_set_int(map, "celsius", c->celsius);
    host->map_set_float(map, "watt", c->milliwatt / 1e3);
    host->map_set_float(map, "watt_cap", c->milliwatt_cap / 1e3);
    host->map_set_string(map, "throttle", throttle_words(c->throttle, words));
    host->map_set_int(map, "other_processes", c->other_processes);
}

const struct rung_map *events_metrics(const struct events_block *b, struct rung_call *call)
{
    const struct rung_host *host = b->self->host;
    const struct rung_measured *m = &b->timing->measured;
    struct rung_map *map = host->map_new(host, call->arena);
    if (!map)
        return NULL;
    host->map_set_int(map, "samples", m->n_samples);
    host->map_set_float(map, "min_us", b->times.min / 1e3);
    host->map_set_float(map, "q1_us", b->times.q1 / 1e3);
    host->map_set_float(map, "median_us", b->times.median / 1e3);
    host->map_set_float(map, "q3_us", b->times.q3 / 1e3);
    host->map_set_float(map, "event_floor_us", m->floor_ns / 1e3);
    host->map_set_float(map, "roofline_us", events_roofline(&b->peaks, &b->work) / 1e3);
    host->map_set_int(map, "sets", m->sets);
    host->map_set_int(map, "batch", m->batch);
    host->map_set_int(map, "set_bytes", (int64_t)b->set_bytes);
    host->map_set_string(map, "cold", cold_word(m->cold));
    host->map_set_int(map, "dropped", m->n_dropped);
    host->map_set_int(map, "verified", m->n_verified);
    add_condition(b, map);
    return map;
}

/* ---- Advice ---- */

struct text {
    char *at;
    size_t n;
};

static void say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at + t->n, EVENTS_ADVICE_BYTES - t->n, format, args);
    va_end(args);
    if (n > 0)
        t->n += (size_t)n;
    if (t->n >= EVENTS_ADVICE_BYTES)
        t->n = EVENTS_ADVICE_BYTES - 1;
}

static void say_mode(const struct events_block *b, struct text *t)
{
    const struct rung_measured *m = &b->timing->measured;
    say(t, "Measured on %s, %s caches: median %.4g us (quartiles %.4g to %.4g, least %.4g, n = %u",
        b->session->device->name, m->cold ? "cold" : "warm", b->times.median / 1e3,
        b->times.q1 / 1e3, b->times.q3 / 1e3, b->times.min / 1e3, m->n_samples);
    if (m->batch > 1)
        say(t, ", each the mean of %u executions in a graph, on buffers of their own", m->batch);
    say(t, ").\n");
}

static void say_roofline(const struct events_block *b, struct text *t)
{
    const struct rung_work *w = &b->work;
    const struct events_peaks *p = &b->peaks;
    double ns = b->times.median;
    if (w->min_bytes > 0 && ns > 0) {
        say(t, "The task's least traffic of %.4g MB in that time is %.3g TB/s", w->min_bytes / 1e6,
            w->min_bytes / ns / 1e3);
        if (b->timing->physical_floor_ns > 0)
            say(t, " of %.3g; its floor is %.4g us", p->bytes_per_s / 1e12,
                b->timing->physical_floor_ns / 1e3);
        say(t, ".\n");
    }
    if (w->flops > 0 && p->flops > 0 && ns > 0)
        say(t, "Its %.4g GFLOP in that time are %.3g TFLOP/s of %.3g.\n", w->flops / 1e9,
            w->flops / ns / 1e3, p->flops / 1e12);
    double roofline = events_roofline(p, w);
    if (roofline > 0 && ns > 0 && p->flops > 0)
        say(t, "By the roofline %s bounds it, at %.4g us; you are at %.3g %% of that.\n",
            roofline > 1e9 * w->min_bytes / p->bytes_per_s ? "arithmetic" : "device memory",
            roofline / 1e3, 100 * roofline / ns);
}

static void say_trouble(const struct events_block *b, struct text *t)
{
    const struct rung_measured *m = &b->timing->measured;
    char words[96];
    if (m->launch_bound)
        say(t,
            "Launch-bound: an empty measurement reads %.4g us already; fewer launches matter more "
            "than faster kernels.\n",
            m->floor_ns / 1e3);
    if (m->after.known && m->after.throttle)
        say(t, "The clock was held at %u of %u MHz by: %s.\n", m->after.sm_mhz, m->after.sm_mhz_max,
            throttle_words(m->after.throttle, words));
}

void events_advise(const struct events_block *b, char *out)
{
    struct text t = {.at = out};
    *out = 0;
    say_mode(b, &t);
    say_roofline(b, &t);
    say_trouble(b, &t);
}
