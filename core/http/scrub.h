/*
 * Replaces secrets in bytes that come back from a server by "***", across any split of the bytes.
 * One thread a scrub; it borrows the secrets.
 */
#ifndef HTTP_SCRUB_H
#define HTTP_SCRUB_H

#include "base/text.h"

enum { RUNG_SCRUB_MAX = 8 };

/* {0} is a valid one without secrets. */
struct rung_scrub {
    const char *secrets[RUNG_SCRUB_MAX]; /* none empty */
    size_t n;
    struct rung_buf held; /* the last bytes, when they may be the begin of a secret */
};

/* Appends to out what can be told of the bytes so far; less than a secret's length is held back. */
void rung_scrub_feed(struct rung_scrub *scrub, const char *bytes, size_t n, struct rung_buf *out);
/* No more bytes follow: appends what was held back. */
void rung_scrub_end(struct rung_scrub *scrub, struct rung_buf *out);
/* One whole text at once; does not touch what is held back. */
void rung_scrub_text(const struct rung_scrub *scrub, const char *text, size_t n,
                     struct rung_buf *out);
/* Forgets and wipes what is held back. */
void rung_scrub_free(struct rung_scrub *scrub);

#endif
