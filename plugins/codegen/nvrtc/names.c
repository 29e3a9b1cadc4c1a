/* Names in CUDA C++ by a look at the words: see names.h. */
#include "names.h"
#include <ctype.h>
#include <string.h>

enum { MAX_NAME = 200 };

static size_t identifier(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return isdigit((unsigned char)p[0]) ? 0 : n;
}

static const char *skip_parentheses(const char *p)
{
    int depth = 0;
    for (; *p; p++) {
        depth += *p == '(';
        depth -= *p == ')';
        if (!depth)
            return p + 1;
    }
    return p;
}

/*
 * The name in a declaration behind __global__: the last identifier before a parenthesis, where
 * __launch_bounds__ and its like have parentheses of their own. Length 0 when there is none.
 */
static const char *kernel_name(const char *p, size_t *length)
{
    *length = 0;
    for (int words = 0; words < 16; words++) {
        p = nv_skip_blank(p);
        size_t n = identifier(p);
        if (!n)
            return p;
        const char *after = nv_skip_blank(p + n);
        if (*after == '(' && p[0] == '_' && p[1] == '_') {
            p = skip_parentheses(after);
        } else if (*after == '(') {
            *length = n;
            return p;
        } else {
            p = after;
        }
    }
    return p;
}

void nv_list_kernels(const char *source, struct nv_buffer *out, int *count)
{
    for (const char *p = source; (p = strstr(p, "__global__")) && *count < NV_MAX_NAMES; p += 10) {
        size_t n;
        const char *name = kernel_name(p + 10, &n);
        if (!n || n > MAX_NAME)
            continue;
        const char *before = p;
        while (before > source && before[-1] != ';' && before[-1] != '}' && before[-1] != '{')
            before--;
        bool templated = memmem(before, (size_t)(p - before), "template", 8) != NULL;
        nv_printf(out, "%s%.*s%s", *count ? ", " : "", (int)n, name, templated ? "<...>" : "");
        ++*count;
    }
}

/* ---- Variables ------------------------------------------------------------------------------ */

/*
 * The name that the declaration behind __constant__ or __device__ introduces: the last identifier
 * before an initialiser, an array's length or the end. Length 0 for a function.
 */
static const char *variable_name(const char *p, size_t *length)
{
    const char *name = p;
    *length = 0;
    for (int words = 0; words < 32; words++) {
        p = nv_skip_blank(p);
        size_t n = identifier(p);
        if (n) {
            name = p;
            *length = n;
            p += n;
        } else if (*p && strchr("<>:,*&0123456789", *p)) {
            p++;
        } else {
            break;
        }
    }
    if (!*p || !strchr("[=;{", *p))
        *length = 0;
    return name;
}

bool nv_is_variable(const char *expression)
{
    int depth = 0;
    for (const char *p = expression; *p; p++) {
        depth += (*p == '<') - (*p == '>');
        if (depth < 0 || (!depth && !isalnum((unsigned char)*p) && !strchr("_: >", *p)))
            return false;
    }
    return !depth;
}

/* Edits that turn a into b: Levenshtein's distance, row by row. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t row[MAX_NAME + 1];
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 0; i < n_a; i++) {
        size_t corner = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n_b; j++) {
            size_t swap = corner + (a[i] != b[j]);
            size_t edit = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            corner = row[j + 1];
            row[j + 1] = swap < edit ? swap : edit;
        }
    }
    return row[n_b];
}

static void list_marked(const char *source, const char *mark, struct nv_names *names)
{
    for (const char *p = source; (p = strstr(p, mark)) && names->n < NV_MAX_NAMES;) {
        size_t length;
        p += strlen(mark);
        const char *name = variable_name(p, &length);
        if (length && length <= MAX_NAME)
            names->items[names->n++] = (struct rung_text){name, length};
    }
}

void nv_list_variables(const char *source, struct nv_names *names)
{
    list_marked(source, "__constant__", names);
    list_marked(source, "__device__", names);
}

const struct rung_text *nv_nearest(const struct nv_names *names, const char *wanted)
{
    const struct rung_text *nearest = NULL;
    const char *colon = strrchr(wanted, ':');
    const char *last = colon ? colon + 1 : wanted;
    size_t n = strlen(last), least = n < 4 ? 2 : n / 2 + 1; /* farther ones are other names */
    for (uint32_t i = 0; i < names->n && n <= MAX_NAME; i++) {
        size_t d = distance(last, n, names->items[i].ptr, names->items[i].len);
        if (d < least) {
            least = d;
            nearest = &names->items[i];
        }
    }
    return nearest;
}
