/* Reading CUDA source: see source.h. */
#include "source.h"
#include "text.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static size_t blank(char *out, const char *in, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        out[i] = in[i] == '\n' ? '\n' : ' ';
    return to;
}

/* End of the literal whose quote stands at `at`; unterminated ones end with their line. */
static size_t literal_end(const char *s, size_t at)
{
    char quote = s[at++];
    while (s[at] && s[at] != quote && s[at] != '\n')
        at += s[at] == '\\' && s[at + 1] ? 2 : 1;
    return s[at] == quote ? at + 1 : at;
}

/* End of the raw string R"delimiter( ... )delimiter" whose quote stands at `at`. */
static size_t raw_end(const char *s, size_t at)
{
    char closing[20];
    size_t n = strcspn(s + at + 1, "(\n\"\\ )");
    if (n > 16 || s[at + 1 + n] != '(')
        return literal_end(s, at);
    closing[0] = ')';
    memcpy(closing + 1, s + at + 1, n);
    closing[n + 1] = '"';
    closing[n + 2] = '\0';
    const char *end = strstr(s + at + n + 2, closing);
    return end ? (size_t)(end - s) + n + 2 : strlen(s);
}

static size_t comment_end(const char *s, size_t at)
{
    if (s[at + 1] == '/')
        return at + strcspn(s + at, "\n");
    const char *end = strstr(s + at + 2, "*/");
    return end ? (size_t)(end - s) + 2 : strlen(s);
}

char *cg_mask(const char *s)
{
    char *mask = strdup(s);
    for (size_t i = 0; mask && s[i];) {
        bool in_word = i > 0 && (isalnum((unsigned char)s[i - 1]) || s[i - 1] == '_');
        if (s[i] == '/' && (s[i + 1] == '/' || s[i + 1] == '*'))
            i = blank(mask, s, i, comment_end(s, i));
        else if (s[i] == '"' && i > 0 && s[i - 1] == 'R')
            i = blank(mask, s, i, raw_end(s, i));
        else if (s[i] == '"' || (s[i] == '\'' && !in_word)) /* 1'000 is a number */
            i = blank(mask, s, i, literal_end(s, i));
        else
            i++;
    }
    return mask;
}

/* ---- Kernels -------------------------------------------------------------------------------- */

static size_t skip_space(const char *s, size_t at)
{
    return at + strspn(s + at, " \t\n\r\f\v");
}

/* Parameters and heads of templates are no longer: hostile texts must not cost squares. */
enum { MAX_HEAD = 16384 };

/* Behind the bracket that closes the one at `at`; where the search was given up when none does. */
static size_t close_bracket(const char *s, size_t at)
{
    int depth = 0;
    for (size_t end = at + MAX_HEAD; s[at] && at < end; at++) {
        depth += (s[at] == '(') - (s[at] == ')');
        if (!depth)
            return at + 1;
    }
    return at;
}

static bool is_templated(const char *mask, size_t at)
{
    size_t from = at;
    while (from > 0 && at - from < MAX_HEAD && !strchr(";{}", mask[from - 1]))
        from--;
    for (; from + 8 < at; from++)
        if (!memcmp(mask + from, "template", 8))
            return true;
    return false;
}

bool cg_next_kernel(const char *mask, size_t *at, struct cg_kernel *kernel)
{
    const char *found;
    while ((found = strstr(mask + *at, "__global__"))) {
        size_t start = (size_t)(found - mask), p = start + 10;
        *at = p;
        /* The name is the word before a parenthesis; attributes such as __launch_bounds__ have
         * their own. */
        for (int words = 0; words < 24; words++) {
            p = skip_space(mask, p);
            size_t n = cg_word(mask + p), after = skip_space(mask, p + n);
            if (!n)
                break;
            if (mask[after] != '(') {
                p = after;
                continue;
            }
            size_t end = close_bracket(mask, after);
            if (n > 2 && mask[p] == '_' && mask[p + 1] == '_') {
                p = end;
                continue;
            }
            if (mask[end - 1] != ')') {
                *at = end - after < MAX_HEAD ? *at : end;
                break;
            }
            *kernel =
                (struct cg_kernel){p, n, after + 1, end - after - 2, is_templated(mask, start)};
            *at = end;
            return true;
        }
    }
    return false;
}

bool cg_defines(const char *mask, const char *source, const char *name, size_t name_len)
{
    struct cg_kernel k;
    for (size_t at = 0; cg_next_kernel(mask, &at, &k);)
        if (k.name_len == name_len && !memcmp(source + k.name, name, name_len))
            return true;
    return false;
}

bool cg_next_param(const char *mask, const struct cg_kernel *kernel, size_t *at, size_t *name,
                   size_t *name_len)
{
    size_t end = kernel->params + kernel->params_len, p = *at;
    int depth = 0;
    *name_len = 0;
    bool in_default = false;
    while (p < end) {
        size_t n = cg_word(mask + p);
        if (n && !in_default) { /* the last word before the comma */
            *name = p;
            *name_len = n;
        }
        if (n) {
            p += n;
            continue;
        }
        char c = mask[p++];
        in_default |= c == '=' || c == '[';
        depth += (c == '(' || c == '<' || c == '{') - (c == ')' || c == '>' || c == '}');
        if (c == ',' && depth <= 0)
            break;
    }
    *at = p;
    return *name_len > 0;
}

/* ---- Signatures ----------------------------------------------------------------------------- */

static bool find_kernel(const char *mask, const char *source, const char *name, size_t n,
                        struct cg_kernel *k)
{
    bool found = false;
    struct cg_kernel next;
    for (size_t at = 0; cg_next_kernel(mask, &at, &next);)
        if (next.name_len == n && !memcmp(source + next.name, name, n)) {
            *k = next;
            found = true;
        }
    return found;
}

/* The types of a parameter list, without blanks, names and defaults; malloc'ed. */
static char *types_of(const char *mask, const struct cg_kernel *k)
{
    char *out = malloc(2 * k->params_len + 2);
    size_t at = k->params, end = k->params + k->params_len, n = 0, name, len;
    while (out && at < end) {
        size_t from = at;
        if (!cg_next_param(mask, k, &at, &name, &len))
            break;
        for (size_t p = from; p < name; p++) {
            size_t w = cg_word(mask + p);
            bool dropped =
                w > 2 && mask[p] == '_' && mask[p + 1] == '_' && strchr("r", mask[p + 2]);
            if (w && !dropped) {
                memcpy(out + n, mask + p, w);
                n += w;
                out[n++] = ' ';
            } else if (!w && !isspace((unsigned char)mask[p])) {
                out[n++] = mask[p];
            }
            p += w ? w - 1 : 0;
        }
        out[n++] = ';';
    }
    if (out)
        out[n] = '\0';
    return out;
}

bool cg_same_signatures(const char *old, const char *source)
{
    char *a = cg_mask(old), *b = cg_mask(source);
    size_t at = 0, name, n, launches = 0;
    bool same = a && b;
    struct cg_kernel before, now;
    while (same && cg_next_launch(old, &at, &name, &n) && launches++ < 64) {
        same = find_kernel(a, old, old + name, n, &before) &&
               find_kernel(b, source, old + name, n, &now) && before.templated == now.templated;
        char *x = same ? types_of(a, &before) : NULL, *y = same ? types_of(b, &now) : NULL;
        same = x && y && !strcmp(x, y);
        free(x);
        free(y);
    }
    free(a);
    free(b);
    return same && launches > 0;
}

/* ---- Plan lines ----------------------------------------------------------------------------- */

static bool plan_line(const char *line)
{
    line += strspn(line, " \t");
    return !strncmp(line, "//@", 3);
}

bool cg_has_plan(const char *source)
{
    for (const char *line = source; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (plan_line(line))
            return true;
        if (!*line)
            break;
    }
    return false;
}

bool cg_next_launch(const char *source, size_t *at, size_t *name, size_t *name_len)
{
    const char *found;
    while ((found = strstr(source + *at, "//@"))) {
        size_t p = (size_t)(found - source) + 3;
        size_t start = p - 3;
        *at = p;
        while (start > 0 && (source[start - 1] == ' ' || source[start - 1] == '\t'))
            start--;
        if (start > 0 && source[start - 1] != '\n')
            continue;
        p += strspn(source + p, " \t");
        if (strncmp(source + p, "launch", 6) || cg_word(source + p) != 6)
            continue;
        p += 6;
        p += strspn(source + p, " \t");
        const char *colon;
        size_t n = cg_word(source + p);
        while (n && (colon = source + p + n) && colon[0] == ':' && colon[1] == ':' &&
               cg_word(colon + 2)) {
            p += n + 2;
            n = cg_word(source + p);
        }
        *name = p;
        *name_len = n;
        *at = p;
        return true;
    }
    return false;
}

bool cg_is_whole(const char *mask)
{
    long braces = 0, round = 0;
    char last = 0;
    for (const char *p = mask; *p; p++) {
        braces += (*p == '{') - (*p == '}');
        round += (*p == '(') - (*p == ')');
        if (braces < 0 || round < 0)
            return false;
        if (!isspace((unsigned char)*p))
            last = *p;
    }
    return !braces && !round && (last == '}' || last == ';');
}
