/* Joining the pieces of a reply; see llm_join.h. */
#include "engine/llm_join.h"

#include <ctype.h>
#include <string.h>

/* Shorter overlaps are chance: "    }\n" follows "    }\n" in many a kernel. */
enum { MIN_OVERLAP = 16, MAX_OVERLAP = 4096, MIN_RESTART = 64 };

/* Whether the text ends inside a block between ``` lines. */
static bool in_block(const char *text, size_t n)
{
    bool open = false;
    for (size_t i = 0; i + 3 <= n; i++)
        if ((i == 0 || text[i - 1] == '\n') && memcmp(text + i, "```", 3) == 0)
            open = !open;
    return open;
}

/* Bytes of a fence line, and of blank lines before it, that begin the piece; 0: none. */
static size_t fence_line(const char *piece, size_t n)
{
    size_t at = 0;
    while (at < n && isspace((unsigned char)piece[at]))
        at++;
    if (n - at < 4 || memcmp(piece + at, "```", 3) != 0)
        return 0;
    const char *end = memchr(piece + at, '\n', n - at);
    /* Three backticks alone close the block: they are the reply's own. */
    return end && end - (piece + at) > 3 ? (size_t)(end + 1 - piece) : 0;
}

/* The longest beginning of the piece that is an end of the text. */
static size_t overlap(const char *text, size_t n, const char *piece, size_t m)
{
    size_t most = n < m ? n : m;
    if (most > MAX_OVERLAP)
        most = MAX_OVERLAP;
    for (size_t k = most; k >= MIN_OVERLAP; k--)
        if (piece[0] == text[n - k] && memcmp(text + n - k, piece, k) == 0)
            return k;
    return 0;
}

/* A last line that is begun may be said again from its start, however short it is. */
static size_t line_overlap(const char *text, size_t n, const char *piece, size_t m)
{
    size_t k = 0;
    while (k < n && text[n - 1 - k] != '\n')
        k++;
    bool words = false;
    for (size_t i = n - k; i < n; i++)
        words |= isalnum((unsigned char)text[i]) != 0;
    return words && k >= 4 && k <= m && memcmp(text + n - k, piece, k) == 0 ? k : 0;
}

static bool restarts(const struct rung_buf *text, const char *piece, size_t n)
{
    return text->len >= MIN_RESTART && n >= MIN_RESTART &&
           memcmp(text->ptr, piece, MIN_RESTART) == 0;
}

void llm_join(struct rung_buf *text, const char *piece, size_t n)
{
    if (restarts(text, piece, n)) {
        rung_buf_drop(text, text->len);
        rung_buf_add(text, piece, n);
        return;
    }
    size_t skip = text->len && in_block(text->ptr, text->len) ? fence_line(piece, n) : 0;
    size_t again = text->len ? overlap(text->ptr, text->len, piece + skip, n - skip) : 0;
    if (!again && text->len)
        again = line_overlap(text->ptr, text->len, piece + skip, n - skip);
    rung_buf_add(text, piece + skip + again, n - skip - again);
}
