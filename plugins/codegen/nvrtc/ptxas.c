/*
 * ptxas -v, as NVRTC 12 and 13 print it:
 *   ptxas info    : Compiling entry function 'SYMBOL' for 'sm_90'
 *   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *   ptxas info    : Used 14 registers, used 1 barriers, 1024 bytes smem
 */
#include "ptxas.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool reports(const char *line)
{
    return !strncmp(line, "ptxas info", 10) ||
           (!strncmp(line, "ptxas  ", 7) && line[6 + strspn(line + 6, " ")] == '.');
}

/* The number right before `unit` in the line, or 0. */
static uint32_t number_before(const char *line, size_t n, const char *unit)
{
    const char *at = memmem(line, n, unit, strlen(unit));
    if (!at)
        return 0;
    const char *p = at;
    while (p > line && p[-1] >= '0' && p[-1] <= '9')
        p--;
    unsigned long value = strtoul(p, NULL, 10);
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static struct rung_kernel *named(const char *line, size_t n, struct rung_kernel *kernels,
                                 uint32_t n_kernels)
{
    static const char before[] = "Compiling entry function '";
    const char *at = memmem(line, n, before, sizeof(before) - 1);
    if (!at)
        return NULL;
    at += sizeof(before) - 1;
    const char *end = memchr(at, '\'', n - (size_t)(at - line));
    for (uint32_t i = 0; end && i < n_kernels; i++)
        if (strlen(kernels[i].symbol) == (size_t)(end - at) &&
            !memcmp(at, kernels[i].symbol, (size_t)(end - at)))
            return &kernels[i];
    return NULL;
}

/* Two expressions may name one kernel: the facts of the first are copied to the rest at the end. */
void nv_ptxas_read(const char *log, struct rung_kernel *kernels, uint32_t n_kernels)
{
    struct rung_kernel *k = NULL;
    for (const char *line = log; *line;) {
        size_t n = strcspn(line, "\n");
        if (reports(line)) {
            if (memmem(line, n, "Compiling entry function", 24))
                k = named(line, n, kernels, n_kernels);
            if (k && memmem(line, n, "bytes stack frame", 17)) {
                k->local_bytes = number_before(line, n, " bytes stack frame");
                k->spill_bytes = number_before(line, n, " bytes spill stores") +
                                 number_before(line, n, " bytes spill loads");
            } else if (k && memmem(line, n, " registers", 10)) {
                k->registers = number_before(line, n, " registers");
                k->static_shared = number_before(line, n, " bytes smem");
            }
        }
        line += n + (line[n] == '\n');
    }
    for (uint32_t i = 0; i < n_kernels; i++)
        for (uint32_t j = 0; j < i; j++)
            if (!kernels[i].registers && !strcmp(kernels[i].symbol, kernels[j].symbol)) {
                kernels[i].registers = kernels[j].registers;
                kernels[i].static_shared = kernels[j].static_shared;
                kernels[i].local_bytes = kernels[j].local_bytes;
                kernels[i].spill_bytes = kernels[j].spill_bytes;
            }
}

uint32_t nv_ptxas_most_shared(const char *log)
{
    uint32_t most = 0;
    for (const char *line = log; *line;) {
        size_t n = strcspn(line, "\n");
        uint32_t bytes = reports(line) ? number_before(line, n, " bytes smem") : 0;
        most = bytes > most ? bytes : most;
        line += n + (line[n] == '\n');
    }
    return most;
}

void nv_ptxas_strip(char *log)
{
    char *to = log;
    for (char *line = log; *line;) {
        size_t n = strcspn(line, "\n");
        n += line[n] == '\n';
        if (!reports(line)) {
            memmove(to, line, n);
            to += n;
        }
        line += n;
    }
    *to = '\0';
}
