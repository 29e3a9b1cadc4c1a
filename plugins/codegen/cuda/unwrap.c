/* Code inside of JSON, HTML or tags: see unwrap.h. */
#include "unwrap.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL "__global__"

/* A code point of \uXXXX as UTF-8; its bytes. */
static size_t utf8(unsigned c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)(c ? c : ' ');
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    out[0] = (char)(0xe0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 63));
    out[2] = (char)(0x80 | (c & 63));
    return 3;
}

/* The JSON string from..to without its escapes; malloc'ed. */
static char *unescape(const char *from, const char *to)
{
    static const char letters[] = "nrtbf", means[] = "\n\n\t  ";
    char *out = malloc((size_t)(to - from) + 1);
    size_t n = 0;
    for (const char *p = from; out && p < to; p++) {
        const char *letter;
        if (*p != '\\' || p + 1 >= to) {
            out[n++] = *p;
        } else if (*++p == 'u' && to - p > 4) {
            char hex[5] = {p[1], p[2], p[3], p[4], 0};
            unsigned c = (unsigned)strtoul(hex, NULL, 16);
            n += utf8(c >= 0xd800 && c < 0xe000 ? '?' : c, out + n);
            p += 4;
        } else if ((letter = strchr(letters, *p))) {
            out[n++] = means[letter - letters];
        } else {
            out[n++] = *p;
        }
    }
    if (out)
        out[n] = '\0';
    return out;
}

/* The JSON string that has the kernel: quotes without a line's end between them. */
static char *of_json(const char *text)
{
    const char *start = strchr(text, '{');
    for (const char *p = start; p && (p = strchr(p, '"'));) {
        const char *end = p + 1;
        while (*end && *end != '"' && *end != '\n')
            end += *end == '\\' && end[1] ? 2 : 1;
        if (*end == '"') {
            const char *kernel = memmem(p, (size_t)(end - p), KERNEL, strlen(KERNEL));
            if (kernel && memmem(p, (size_t)(end - p), "\\n", 2))
                return unescape(p + 1, end);
            end++;
        }
        p = *end ? end : NULL;
    }
    return NULL;
}

/* &lt; and its kin in from..to; malloc'ed. */
static char *without_entities(const char *from, const char *to)
{
    static const struct {
        const char *name;
        char c;
    } entities[] = {{"&lt;", '<'},   {"&gt;", '>'},   {"&amp;", '&'},
                    {"&quot;", '"'}, {"&#39;", '\''}, {"&nbsp;", ' '}};
    char *out = malloc((size_t)(to - from) + 1);
    size_t n = 0;
    while (out && from < to) {
        size_t k = 0;
        for (; k < sizeof(entities) / sizeof(*entities); k++)
            if (!strncmp(from, entities[k].name, strlen(entities[k].name)))
                break;
        bool known = k < sizeof(entities) / sizeof(*entities);
        out[n++] = known ? entities[k].c : *from;
        from += known ? strlen(entities[k].name) : 1;
    }
    if (out)
        out[n] = '\0';
    return out;
}

/* Whether a tag of letters stands at p; *behind is what follows its '>'. */
static bool is_tag(const char *p, const char **behind)
{
    size_t n = 1;
    while (isalpha((unsigned char)p[n]) || (n > 1 && (p[n] == '_' || p[n] == '-')))
        n++;
    size_t end = n + strcspn(p + n, "<>\n");
    *behind = p + end + 1;
    return n > 1 && p[end] == '>' && (p[n] == '>' || p[n] == ' ');
}

/* What stands between the tag before the first kernel and the next closing tag behind the last. */
static char *of_tags(const char *text)
{
    const char *kernel = strstr(text, KERNEL), *from = NULL, *last = kernel, *behind;
    for (const char *p = text; kernel && p < kernel && (p = strchr(p, '<')) && p < kernel; p++)
        if (is_tag(p, &behind) && behind <= kernel)
            from = behind;
    if (!from)
        return NULL;
    for (const char *p = kernel; (p = strstr(p, KERNEL)); p += strlen(KERNEL))
        last = p;
    const char *to = strstr(last, "</");
    while (to && !isalpha((unsigned char)to[2]))
        to = strstr(to + 2, "</");
    return to ? without_entities(from, to) : NULL;
}

char *cg_unwrap(const char *text)
{
    char *inside = of_json(text);
    return inside ? inside : of_tags(text);
}
