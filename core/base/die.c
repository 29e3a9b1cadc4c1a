#include "base/die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rung_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("rung: fatal: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _Exit(3);
}

static void *checked(void *p, unsigned long size)
{
    if (!p)
        rung_die("out of memory (%lu bytes)", size);
    return p;
}

void *rung_xmalloc(unsigned long size)
{
    return checked(malloc(size ? size : 1), size);
}

void *rung_xcalloc(unsigned long n, unsigned long size)
{
    return checked(calloc(n ? n : 1, size ? size : 1), size);
}

void *rung_xrealloc(void *p, unsigned long size)
{
    return checked(realloc(p, size ? size : 1), size);
}

char *rung_xstrdup(const char *text)
{
    return checked(strdup(text), strlen(text));
}
