/*
 * print.c - the device's printf: formats what a lane gives and sends it to the host's log, a
 * bounded number of lines a launch. Format and arguments are hostile.
 */
#include "exec.h"

#include <stdio.h>
#include <string.h>

struct printer {
    struct ptx_warp *w;
    uint32_t lane;
    uint64_t args; /* device address of the next argument */
    char text[512];
    size_t n;
};

static void put_text(struct printer *p, const char *text)
{
    while (*text && p->n + 1 < sizeof p->text) {
        unsigned char c = (unsigned char)*text++;

        p->text[p->n++] = c == '\n' || c == '\t' ? ' ' : c < ' ' || c > 126 ? '?' : (char)c;
    }
    p->text[p->n] = 0;
}

/* Arguments stand one behind the other, each aligned to its size. */
static uint64_t next_argument(struct printer *p, uint32_t bytes)
{
    uint64_t value = 0;
    const uint8_t *from;

    p->args = (p->args + bytes - 1) & ~(uint64_t)(bytes - 1);
    from = ptx_resolve(p->w, p->lane, p->args, bytes, 0);
    if (from)
        memcpy(&value, from, bytes);
    p->args += bytes;
    return value;
}

static void put_device_text(struct printer *p, uint64_t address)
{
    char c[2] = "";

    for (uint32_t k = 0; k < sizeof p->text; k++) {
        const uint8_t *from = ptx_resolve(p->w, p->lane, address + k, 1, 0);

        if (!from || !*from)
            return;
        c[0] = (char)*from;
        put_text(p, c);
    }
}

/* One conversion: flags is "%-08.3" without length; longs counts l; c is the letter. */
static void convert(struct printer *p, const char *flags, int longs, char c)
{
    char format[48], out[128] = "";

    snprintf(format, sizeof format, "%s%s%c", flags, strchr("dioxXu", c) ? "ll" : "", c);
    if (strchr("di", c)) {
        long long v =
            longs ? (long long)next_argument(p, 8) : (long long)(int32_t)next_argument(p, 4);
        snprintf(out, sizeof out, format, v);
    } else if (strchr("uoxX", c)) {
        unsigned long long v = longs ? next_argument(p, 8) : next_argument(p, 4);
        snprintf(out, sizeof out, format, v);
    } else if (c == 'c') {
        snprintf(out, sizeof out, "%c", (int)(next_argument(p, 4) & 127));
    } else if (strchr("eEfFgGaA", c)) {
        uint64_t bits = next_argument(p, 8);
        double v;

        memcpy(&v, &bits, sizeof v);
        snprintf(out, sizeof out, format, v);
    } else if (c == 'p') {
        snprintf(out, sizeof out, "0x%llx", (unsigned long long)next_argument(p, 8));
    } else if (c == 's') {
        put_device_text(p, next_argument(p, 8));
    }
    put_text(p, out);
}

/* Reads one "%..." behind the percent sign; returns how many characters it took. */
static uint32_t directive(struct printer *p, const char *f)
{
    char flags[24] = "%";
    uint32_t k = 0, n = 1;
    int longs = 0;

    while (f[k] && strchr("-+ #0123456789.", f[k]) && n + 1 < sizeof flags && k < 12)
        flags[n++] = f[k++];
    flags[n] = 0;
    while (f[k] && strchr("lhzjt", f[k]))
        longs |= f[k] == 'l' || f[k] == 'z' || f[k] == 'j' || f[k] == 't', k++;
    if (f[k] == '%')
        put_text(p, "%");
    else if (f[k] && strlen(flags) < 12 && strchr("dioxXucspeEfFgGaA", f[k]))
        convert(p, flags, longs, f[k]);
    return f[k] ? k + 1 : k;
}

static void print_lane(struct printer *p, const char *format)
{
    char c[2] = "";

    for (uint32_t k = 0; format[k];) {
        if (format[k] == '%') {
            k += 1 + directive(p, format + k + 1);
        } else {
            c[0] = format[k++];
            put_text(p, c);
        }
    }
    while (p->n && p->text[p->n - 1] == ' ')
        p->text[--p->n] = 0;
}

static int read_format(struct ptx_warp *w, uint32_t lane, uint64_t address, char *out, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const uint8_t *from = ptx_resolve(w, lane, address + k, 1, 0);

        if (!from)
            return -1;
        out[k] = (char)*from;
        if (!*from)
            return 0;
    }
    out[n - 1] = 0;
    return 0;
}

const struct ptx_insn *ptx_print(struct ptx_warp *w, const struct ptx_insn *in)
{
    const uint64_t *formats = (const uint64_t *)(const void *)(w->frame + in->r[1]);
    const uint64_t *args = (const uint64_t *)(const void *)(w->frame + in->r[2]);
    uint32_t *to = (uint32_t *)(void *)(w->frame + in->r[0]);
    struct ptx_exec *x = w->x;
    char format[512];

    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        struct printer p = {.w = w, .lane = i, .args = args[i]};

        to[i] = 0;
        if (!x->prints || read_format(w, i, formats[i], format, sizeof format))
            continue;
        print_lane(&p, format);
        x->host->log(x->host, RUNG_LOG_INFO, p.text);
        if (!--x->prints)
            x->host->log(x->host, RUNG_LOG_WARN,
                         "printf: further lines of this launch are dropped");
    }
    return in + 1;
}
