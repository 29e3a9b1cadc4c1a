/* Finding plan lines: see planlines.h. */
#include "planlines.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const directives[] = {"launch", "tune",   "temp",     "zero",
                                         "where",  "symbol", "tensormap"};
enum { N_DIRECTIVES = sizeof(directives) / sizeof(*directives), MAX_PLAN = 64 * 1024 };

struct text {
    char *s;
    size_t n;
};

static void add(struct text *t, const char *from, size_t n)
{
    memcpy(t->s + t->n, from, n);
    t->n += n;
}

/* The directive word at p, blanks before it; its length, or 0. */
static size_t directive_at(const char *p, const char *end, const char **word)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    *word = p;
    for (size_t i = 0; i < N_DIRECTIVES; i++) {
        size_t n = strlen(directives[i]);
        bool fits = (size_t)(end - p) > n && !strncasecmp(p, directives[i], n) &&
                    !isalnum((unsigned char)p[n]) && p[n] != '_';
        if (fits)
            return n;
    }
    return 0;
}

/* Where a directive starts in [line, end): its word, or NULL. *exact: it stands behind //@. */
static const char *find_directive(const char *line, const char *end, bool in_code, bool *exact)
{
    const char *word, *p = line;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (end - p > 3 && !strncmp(p, "//@", 3) && directive_at(p + 3, end, &word)) {
        *exact = p + 3 < word && islower((unsigned char)*word);
        return word;
    }
    *exact = false;
    for (const char *at = memchr(line, '@', (size_t)(end - line)); at;
         at = memchr(at + 1, '@', (size_t)(end - at - 1))) {
        const char *before = at;
        while (before > line && (before[-1] == ' ' || before[-1] == '\t'))
            before--;
        bool comment = before > line && (before[-1] == '/' || before[-1] == '*' ||
                                         before[-1] == '#' || (!in_code && before[-1] == '`'));
        bool first = before == line;
        const char *head = line;
        while (in_code && head < before && strchr(" \t/*#", *head))
            head++;
        if (in_code && head < before)
            continue;
        if ((comment || first) && directive_at(at + 1, end, &word))
            return word;
    }
    return NULL;
}

/*
 * `//@ grid: (n)` behind a launch: a key in a line of its own. Its start, or NULL. bare: the launch
 * stood behind other marks, so that its keys may too.
 */
static const char *find_key(const char *line, const char *end, bool bare)
{
    static const char *const keys[] = {"grid", "block", "args", "shared", "when", "cluster"};
    while (line < end && strchr(bare ? " \t/*#@" : " \t", *line))
        line++;
    if (!bare && (end - line < 4 || strncmp(line, "//@", 3) != 0))
        return NULL;
    for (line += bare ? 0 : 3; line < end && (*line == ' ' || *line == '\t');)
        line++;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        size_t n = strlen(keys[i]);
        const char *p = line + n;
        if ((size_t)(end - line) <= n || strncasecmp(line, keys[i], n) != 0)
            continue;
        while (p < end && *p == ' ')
            p++;
        if (p < end && (*p == ':' || *p == '='))
            return line;
    }
    return NULL;
}

/* The directive's text ends before a closing backtick or comment. */
static const char *trim(const char *from, const char *end)
{
    const char *tick = memchr(from, '`', (size_t)(end - from));
    end = tick ? tick : end;
    for (const char *p = from; p + 1 < end; p++)
        if (p[0] == '*' && p[1] == '/')
            end = p;
    while (end > from && strchr(" \t;", end[-1]))
        end--;
    return end;
}

/* The text of a continuation without its comment marks. */
static const char *continuation(const char *line, const char *end)
{
    while (line < end && strchr(" \t", *line))
        line++;
    if (end - line >= 2 && line[0] == '/' && line[1] == '/')
        line += line + 2 < end && line[2] == '@' ? 3 : 2;
    return line;
}

struct cg_found_plan cg_find_plan(struct cg_pool *pool, const char *text, bool in_code)
{
    size_t len = strlen(text);
    struct text plan = {cg_take(pool, MAX_PLAN + 1), 0}, rest = {cg_take(pool, len + 1), 0};
    struct cg_found_plan out = {0};
    bool open = false; /* the last plan line goes on */
    bool bare = false; /* and was no //@ line */
    for (const char *line = text; *line;) {
        const char *nl = strchr(line, '\n'), *end = nl ? nl : line + strlen(line);
        bool exact = true;
        const char *from =
            open ? continuation(line, end) : find_directive(line, end, in_code, &exact);
        const char *key = from || open || !plan.n ? NULL : find_key(line, end, bare);
        bare = from ? !exact : key && bare;
        if (key) {
            plan.n--; /* goes on in this line */
            add(&plan, " ", 1);
            from = key;
            open = true;
            exact = false;
        }
        size_t room = from ? (size_t)(end - from) + 8 : 0;
        cg_step(pool);
        if (from && plan.n + room < MAX_PLAN) {
            const char *stop = trim(from, end);
            out.slips |= !exact || (open && strncmp(line, "//@", 3) != 0);
            out.launches |= !open && !strncasecmp(from, "launch", 6);
            if (!open)
                add(&plan, "//@ ", 4);
            open = stop > from && stop[-1] == '\\';
            add(&plan, from, (size_t)(stop - from) - open);
            add(&plan, open ? " " : "\n", 1);
        } else {
            add(&rest, line, (size_t)(end - line) + (nl != NULL));
            if (open)
                add(&plan, "\n", 1);
            open = false;
        }
        line = end + (nl != NULL);
    }
    if (open)
        add(&plan, "\n", 1);
    out.plan = plan.s;
    out.rest = rest.s;
    return out;
}
