/* Choosing the blocks that are the candidate: see choose.h. */
#include "choose.h"
#include "source.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NONE ((size_t)-1)

enum { MAX_LAUNCHES = 64 }; /* of a plan */

/* Whether source has #include "path", or the path's last part. */
static bool includes(const char *source, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    for (const char *p = source; (p = strstr(p, "include")); p += 7) {
        const char *name = p + 7 + strspn(p + 7, " \t");
        if (*name != '"' && *name != '<')
            continue;
        size_t n = strcspn(++name, "\">\n");
        if ((n == strlen(path) && !memcmp(name, path, n)) ||
            (n == strlen(base) && !memcmp(name, base, n)))
            return true;
    }
    return false;
}

static bool is_part(const struct cg_choice *c, size_t block)
{
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->parts[i] == block)
            return true;
    return false;
}

static bool is_header(const struct cg_choice *c, size_t block)
{
    for (size_t i = 0; i < c->n_headers; i++)
        if (c->headers[i] == block)
            return true;
    return false;
}

/* Keeps the parts in the order of the text. */
static void add_part(struct cg_choice *c, size_t block)
{
    size_t at = c->n_parts;
    while (at > 0 && c->parts[at - 1] > block) {
        c->parts[at] = c->parts[at - 1];
        at--;
    }
    c->parts[at] = block;
    c->n_parts++;
}

static size_t best_block(const struct cg_blocks *blocks, size_t *n_candidates)
{
    size_t best = NONE;
    int best_score = -1;
    *n_candidates = 0;
    for (size_t i = 0; i < blocks->n; i++) {
        const struct cg_block *b = &blocks->list[i];
        if (!b->kernels || !b->device_language)
            continue;
        int score = 2 * b->plan + b->closed;
        ++*n_candidates;
        if (score >= best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

/* //@ lines in blocks without a kernel, when the chosen one has none. */
static void add_plan_blocks(const struct cg_blocks *blocks, struct cg_choice *c, FILE *note)
{
    size_t main = c->parts[0];
    if (blocks->list[main].plan)
        return;
    for (size_t i = 0; i < blocks->n; i++) {
        const struct cg_block *b = &blocks->list[i];
        if (i == main || !b->plan || b->kernels)
            continue;
        if (blocks->list[main].path[0] && includes(b->code, blocks->list[main].path)) {
            c->parts[0] = i; /* the other becomes a header below */
            fprintf(note,
                    "Took block %zu, which includes %s and has the //@ lines, as the entry file. ",
                    i + 1, blocks->list[main].path);
            return;
        }
        add_part(c, i);
        fprintf(note, "Joined the //@ lines of block %zu with the kernel of block %zu. ", i + 1,
                main + 1);
    }
}

/* The block that defines a kernel and is neither a part nor included; NONE when there is none. */
static size_t missing_kernel(const struct cg_blocks *blocks, const struct cg_choice *c,
                             const char *including, const char *name, size_t n)
{
    size_t found = NONE;
    for (size_t i = 0; i < blocks->n; i++) {
        const struct cg_block *b = &blocks->list[i];
        if (!b->kernels || !cg_defines(b->mask, b->code, name, n))
            continue;
        if (is_part(c, i) || (b->path[0] && includes(including, b->path)))
            return NONE;
        if (b->device_language)
            found = i;
    }
    return found;
}

/* Kernels that //@ lines launch and that stand in other blocks. */
static void add_kernel_blocks(const struct cg_blocks *blocks, struct cg_choice *c, FILE *note)
{
    const struct cg_choice first = *c;
    for (size_t part = 0; part < first.n_parts; part++) {
        const char *code = blocks->list[first.parts[part]].code;
        size_t name, n, launches = 0;
        for (size_t at = 0; launches++ < MAX_LAUNCHES && cg_next_launch(code, &at, &name, &n);) {
            size_t found = missing_kernel(blocks, c, code, code + name, n);
            if (found == NONE)
                continue;
            add_part(c, found);
            fprintf(note, "Joined block %zu, which defines %.*s. ", found + 1, (int)n, code + name);
        }
    }
}

/* Whether the word stands in the mask. */
static bool has_word(const char *mask, const char *word, size_t n)
{
    for (const char *p = mask; (p = strstr(p, word)); p += n) {
        bool starts = p == mask || (!isalnum((unsigned char)p[-1]) && p[-1] != '_');
        if (starts && !isalnum((unsigned char)p[n]) && p[n] != '_')
            return true;
    }
    return false;
}

/* The next name that a block without kernels defines: a device function or a macro. */
static bool next_definition(const char *mask, size_t *at, char *name, size_t room)
{
    for (const char *p = mask + *at; *p; p++) {
        bool device = !strncmp(p, "__device__", 10), macro = !strncmp(p, "#define", 7);
        if (!device && !macro)
            continue;
        const char *word = p + (device ? 10 : 7);
        size_t n = 0;
        for (int words = 0; words < 12; words++) {
            word += strspn(word, " \t\n*&");
            n = cg_word(word);
            if (!n || macro || word[n + strspn(word + n, " \t\n")] == '(')
                break;
            word += n;
        }
        *at = (size_t)(word + n - mask);
        p = mask + *at - 1;
        if (n && n < room) {
            memcpy(name, word, n);
            name[n] = '\0';
            return true;
        }
    }
    return false;
}

/* Blocks of helpers that the kernels use and that stand before them without a name. */
static void add_helper_blocks(const struct cg_blocks *blocks, struct cg_choice *c, FILE *note)
{
    const struct cg_block *main = &blocks->list[c->parts[0]];
    char name[64];
    for (size_t i = 0; i < blocks->n; i++) {
        const struct cg_block *b = &blocks->list[i];
        bool used = false;
        if (b->kernels || b->plan || b->path[0] || !b->device_language || is_part(c, i))
            continue;
        for (size_t at = 0, k = 0; !used && k < 64 && next_definition(b->mask, &at, name, 64);
             k++) {
            size_t n = strlen(name), own = 0;
            char defined[64];
            used = has_word(main->mask, name, n);
            for (size_t m = 0; used && m < 64 && next_definition(main->mask, &own, defined, 64);
                 m++)
                used = strcmp(defined, name) != 0;
        }
        if (!used)
            continue;
        add_part(c, i);
        fprintf(note, "Joined block %zu, which defines %s. ", i + 1, name);
    }
}

static bool mentioned(const struct cg_blocks *blocks, const struct cg_choice *c, const char *path)
{
    for (size_t i = 0; i < c->n_parts; i++)
        if (includes(blocks->list[c->parts[i]].code, path))
            return true;
    for (size_t i = 0; i < c->n_headers; i++)
        if (includes(blocks->list[c->headers[i]].code, path))
            return true;
    return false;
}

/* A later block of one name replaces an earlier one. */
static void drop_same_path(const struct cg_blocks *blocks, struct cg_choice *c, size_t block)
{
    for (size_t i = 0; i < c->n_headers; i++)
        if (!strcmp(blocks->list[c->headers[i]].path, blocks->list[block].path)) {
            c->headers[i] = block;
            return;
        }
    c->headers[c->n_headers++] = block;
}

static void add_headers(const struct cg_blocks *blocks, struct cg_choice *c, FILE *note)
{
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < blocks->n; i++) {
            const struct cg_block *b = &blocks->list[i];
            if (!b->path[0] || !b->device_language || is_part(c, i) || is_header(c, i) ||
                !mentioned(blocks, c, b->path))
                continue;
            size_t before = c->n_headers;
            drop_same_path(blocks, c, i);
            more |= c->n_headers > before;
            if (c->n_headers > before)
                fprintf(note, "Took block %zu as file %s. ", i + 1, b->path);
        }
    }
}

/* Whether the last line is code that was cut, and not a sentence. */
static bool ends_in_code(const char *mask)
{
    size_t n = strlen(mask), words = 0;
    while (n > 0 && strchr(" \t\n", mask[n - 1]))
        n--;
    size_t from = n;
    while (from > 0 && mask[from - 1] != '\n')
        from--;
    for (size_t i = from; i < n; i++) {
        if (strchr("{};=()[]<>*", mask[i]))
            return true;
        words += mask[i] == ' ';
    }
    return words < 2;
}

/* Cuts what follows the last line that ends a declaration, when all before it is whole. */
static bool cut_prose(struct cg_block *b, FILE *note)
{
    size_t n = strlen(b->mask);
    for (int tries = 0; n > 0 && tries < 64; tries++) {
        while (n > 0 && !(b->mask[n - 1] == '\n' && n > 1 && strchr("};", b->mask[n - 2])))
            n--;
        if (!n)
            return false;
        char old = b->mask[n];
        b->mask[n] = '\0';
        if (cg_is_whole(b->mask)) {
            b->code[n] = '\0';
            fprintf(note, "Left the text behind the code. ");
            return true;
        }
        b->mask[n--] = old;
    }
    return false;
}

static void look_at_ends(struct cg_blocks *blocks, struct cg_choice *c, FILE *note)
{
    c->whole = true;
    for (size_t i = 0; i < c->n_parts + c->n_headers; i++) {
        size_t block = i < c->n_parts ? c->parts[i] : c->headers[i - c->n_parts];
        if (blocks->list[block].closed)
            continue;
        struct cg_block *b = &blocks->list[block];
        c->unclosed = true;
        c->whole &= cg_is_whole(b->mask) || (!ends_in_code(b->mask) && cut_prose(b, note));
    }
}

bool cg_choose(struct cg_blocks *blocks, struct cg_choice *c, FILE *note)
{
    size_t candidates;
    size_t best = best_block(blocks, &candidates);
    *c = (struct cg_choice){0};
    if (best == NONE)
        return false;
    add_part(c, best);
    if (candidates > 1)
        fprintf(note, "Took block %zu of %zu with kernels%s. ", best + 1, candidates,
                blocks->list[best].plan ? ", which has //@ lines" : "");
    add_plan_blocks(blocks, c, note);
    add_kernel_blocks(blocks, c, note);
    add_helper_blocks(blocks, c, note);
    add_headers(blocks, c, note);
    look_at_ends(blocks, c, note);
    return true;
}

/* Whether two blocks define a kernel of one name. */
static bool share_kernel(const struct cg_block *a, const struct cg_block *b)
{
    struct cg_kernel k;
    for (size_t at = 0; cg_next_kernel(a->mask, &at, &k);)
        if (cg_defines(b->mask, b->code, a->code + k.name, k.name_len))
            return true;
    return false;
}

bool cg_choose_all(struct cg_blocks *blocks, struct cg_choice *c, FILE *note)
{
    *c = (struct cg_choice){0};
    for (size_t i = 0; i < blocks->n; i++) {
        const struct cg_block *b = &blocks->list[i];
        if ((!b->kernels && !b->plan) || !b->device_language)
            continue;
        for (size_t k = 0; k < c->n_parts; k++)
            if (share_kernel(b, &blocks->list[c->parts[k]]))
                return false;
        add_part(c, i);
    }
    if (c->n_parts < 2)
        return false;
    fprintf(note, "Joined %zu blocks. ", c->n_parts);
    add_headers(blocks, c, note);
    look_at_ends(blocks, c, note);
    return !c->unclosed || c->whole;
}

char *cg_join(const struct cg_blocks *blocks, const struct cg_choice *c)
{
    struct cg_writer w;
    if (!cg_open(&w))
        return NULL;
    for (size_t i = 0; i < c->n_parts; i++)
        fprintf(w.file, "%s%s", i ? "\n" : "", blocks->list[c->parts[i]].code);
    if (cg_close(&w))
        return w.ptr;
    free(w.ptr);
    return NULL;
}

const char *cg_entry_path(const struct cg_blocks *blocks, const struct cg_choice *c)
{
    for (size_t i = 0; i < c->n_parts; i++) {
        const char *path = blocks->list[c->parts[i]].path;
        size_t n = strlen(path);
        if (n > 3 && !strcmp(path + n - 3, ".cu"))
            return path;
    }
    return "kernel.cu";
}
