/*
 * A walk over the text of a configuration file that sees only comments, strings, names and numbers.
 */
#include "config/scan.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MAX_WHOLE = INT64_C(1) << 53;

/* Where the text that begins at s ends: its closing quote, or the end of all. */
static const char *string_end(const char *s, int *line)
{
    for (s++; *s && *s != '"'; s++) {
        if (*s == '\\' && s[1])
            s++;
        *line += *s == '\n';
    }
    return s;
}

static const char *comment_end(const char *s, int *line)
{
    for (s += 2; *s && !(s[0] == '*' && s[1] == '/'); s++)
        *line += *s == '\n';
    return s;
}

static bool is_name_part(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '*';
}

/* The suffix L or LL at the end of [s, s + n). */
static size_t suffix_length(const char *s, size_t n)
{
    size_t k = 0;
    while (k < 2 && k < n && s[n - 1 - k] == 'L')
        k++;
    return k;
}

/* Checks the literal [s, s + n): sign, digits or 0x digits, suffix. Floats are libconfig's to read.
 */
static void check_literal(const char *s, size_t n, const char *file, int line,
                          struct rung_diags *diags)
{
    size_t sign = *s == '-' || *s == '+', suffix = suffix_length(s, n), len = n - suffix;
    bool hex = len > sign + 2 && s[sign] == '0' && (s[sign + 1] == 'x' || s[sign + 1] == 'X');
    const char *digits = hex ? "0123456789abcdefABCDEF" : "0123456789";
    size_t from = sign + (hex ? 2 : 0);
    char copy[40];
    if (len == from || strspn(s + from, digits) < len - from)
        return;
    bool fits = len < sizeof copy;
    memcpy(copy, s, fits ? len : 0);
    copy[fits ? len : 0] = 0;
    errno = 0;
    long long v = strtoll(copy, NULL, hex ? 16 : 10);
    fits &= errno == 0 && v <= MAX_WHOLE && v >= -MAX_WHOLE;
    if (!fits)
        rung_diag(diags, file, line,
                  "the integer %.*s is too large; integers lie within -2^53 .. 2^53",
                  (int)(n < 60 ? n : 60), s);
    else if (suffix == 0 && (v > INT32_MAX || v < INT32_MIN))
        rung_diag(diags, file, line, "the integer %s does not fit 32 bits; write %sL", copy, copy);
}

/* Length of what starts like a number at s. */
static size_t literal_length(const char *s)
{
    size_t n = *s == '-' || *s == '+';
    while (isalnum((unsigned char)s[n]) || s[n] == '.' ||
           ((s[n] == '-' || s[n] == '+') && (s[n - 1] == 'e' || s[n - 1] == 'E')))
        n++;
    return n;
}

/* The text after `@include "` at s, or NULL. */
static const char *include_path(const char *s)
{
    if (!rung_starts_with(s, "@include"))
        return NULL;
    s += 8;
    s += strspn(s, " \t");
    return *s == '"' ? s + 1 : NULL;
}

/* What follows the text or comment that begins at s; one that never ends is a fault. */
static const char *skip_closed(const char *s, const char *file, int *line, struct rung_diags *diags)
{
    int begin = *line;
    bool text = *s == '"';
    const char *end = text ? string_end(s, line) : comment_end(s, line);
    if (*end)
        return end + (text ? 1 : 2);
    rung_diag(diags, file, begin, "the %s that begins here is never closed",
              text ? "text" : "comment");
    return end;
}

/* Steps over c in *depth; false once, where it passes what is allowed. */
static bool nest(char c, int *depth)
{
    *depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    return *depth <= RUNG_CONFIG_DEPTH;
}

void rung_config_scan(const char *text, const char *file, struct rung_diags *diags,
                      void (*include)(void *ctx, const char *path, size_t n, int line), void *ctx)
{
    int line = 1, depth = 0;
    for (const char *s = text; *s;) {
        const char *path = include_path(s);
        bool number = isdigit((unsigned char)*s) || *s == '.' ||
                      ((*s == '-' || *s == '+') && (isdigit((unsigned char)s[1]) || s[1] == '.'));
        if (path && include)
            include(ctx, path, strcspn(path, "\"\n"), line);
        if (*s == '"' || (s[0] == '/' && s[1] == '*')) {
            s = skip_closed(s, file, &line, diags);
        } else if (*s == '#' || (s[0] == '/' && s[1] == '/')) {
            s += strcspn(s, "\n");
        } else if (number) {
            size_t n = literal_length(s);
            check_literal(s, n, file, line, diags);
            s += n;
        } else if (is_name_part(*s)) {
            while (is_name_part(*s))
                s++;
        } else if (!nest(*s, &depth)) {
            rung_diag(diags, file, line, "groups and lists are nested more than %d deep",
                      RUNG_CONFIG_DEPTH);
            return;
        } else {
            line += *s++ == '\n';
        }
    }
}
