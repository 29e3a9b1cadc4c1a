#include "http/scrub.h"

#include <string.h>

/*
 * Length of the longest secret that the text (n > 0 bytes) begins with, or 0. *open: the text may
 * be the begin of a longer one, which only more bytes can tell.
 */
static size_t match_at(const struct rung_scrub *scrub, const char *text, size_t n, bool *open)
{
    size_t longest = 0;
    *open = false;
    for (size_t i = 0; i < scrub->n; i++) {
        const char *secret = scrub->secrets[i];
        if (*text != *secret)
            continue;
        size_t size = strlen(secret);
        if (memcmp(text, secret, size < n ? size : n) != 0)
            continue;
        if (size > n)
            *open = true;
        else if (size > longest)
            longest = size;
    }
    return longest;
}

/* Moves bytes from held to out; at the data's end the begin of a secret is ordinary text. */
static void drain(struct rung_scrub *scrub, bool end, struct rung_buf *out)
{
    const char *text = scrub->held.ptr;
    size_t n = scrub->held.len, done = 0, copied = 0;
    while (done < n) {
        bool open;
        size_t length = match_at(scrub, text + done, n - done, &open);
        if (open && !end)
            break;
        if (length == 0) {
            done++;
            continue;
        }
        rung_buf_add(out, text + copied, done - copied);
        rung_buf_puts(out, "***");
        done += length;
        copied = done;
    }
    rung_buf_add(out, text + copied, done - copied);
    rung_buf_drop(&scrub->held, done);
}

void rung_scrub_feed(struct rung_scrub *scrub, const char *bytes, size_t n, struct rung_buf *out)
{
    if (scrub->n == 0) {
        rung_buf_add(out, bytes, n);
        return;
    }
    rung_buf_add(&scrub->held, bytes, n);
    if (scrub->held.len)
        drain(scrub, false, out);
}

void rung_scrub_end(struct rung_scrub *scrub, struct rung_buf *out)
{
    if (scrub->held.len)
        drain(scrub, true, out);
}

void rung_scrub_text(const struct rung_scrub *scrub, const char *text, size_t n,
                     struct rung_buf *out)
{
    struct rung_scrub once = *scrub;
    once.held = (struct rung_buf){0};
    rung_scrub_feed(&once, text, n, out);
    rung_scrub_end(&once, out);
    rung_scrub_free(&once);
}

void rung_scrub_free(struct rung_scrub *scrub)
{
    if (scrub->held.ptr)
        explicit_bzero(scrub->held.ptr, scrub->held.cap);
    rung_buf_free(&scrub->held);
}
