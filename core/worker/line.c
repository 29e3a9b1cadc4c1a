/* Bounded line reading and the write queue of the worker protocol. */
#include "worker/line.h"
#include "worker/job.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 1 << 16, KEEP_CAPACITY = 1 << 18 };

enum rung_line_status rung_line_read(struct rung_line_in *in)
{
    char bytes[READ_SIZE];
    rung_buf_drop(&in->buf, in->pos);
    in->scanned -= in->pos;
    in->pos = 0;
    ssize_t n = read(in->fd, bytes, sizeof bytes);
    if (n > 0) {
        rung_buf_add(&in->buf, bytes, (size_t)n);
        return RUNG_LINE_OK;
    }
    if (n == 0 || errno == ECONNRESET)
        return RUNG_LINE_EOF;
    return errno == EAGAIN || errno == EINTR ? RUNG_LINE_AGAIN : RUNG_LINE_FAULT;
}

enum rung_line_status rung_line_next(struct rung_line_in *in, const char **line, size_t *n)
{
    size_t left = in->buf.len - in->scanned;
    char *end = left ? memchr(in->buf.ptr + in->scanned, '\n', left) : NULL;
    size_t length = (end ? (size_t)(end - in->buf.ptr) : in->buf.len) - in->pos;
    if (length > RUNG_LINE_MAX)
        return RUNG_LINE_FAULT;
    if (!end) {
        in->scanned = in->buf.len;
        return RUNG_LINE_AGAIN;
    }
    *end = 0;
    *line = in->buf.ptr + in->pos;
    *n = length;
    in->pos += length + 1;
    in->scanned = in->pos;
    return RUNG_LINE_OK;
}

void rung_line_in_free(struct rung_line_in *in)
{
    rung_buf_free(&in->buf);
    in->pos = in->scanned = 0;
}

void rung_line_push(struct rung_line_out *out, const char *line, size_t n)
{
    rung_buf_add(&out->buf, line, n);
    rung_buf_putc(&out->buf, '\n');
}

size_t rung_line_waiting(const struct rung_line_out *out)
{
    return out->buf.len - out->pos;
}

bool rung_line_flush(struct rung_line_out *out)
{
    while (rung_line_waiting(out)) {
        ssize_t n = write(out->fd, out->buf.ptr + out->pos, rung_line_waiting(out));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        out->pos += (size_t)n;
    }
    out->pos = out->buf.len = 0;
    if (out->buf.cap > KEEP_CAPACITY) /* a large bundle passed by: its memory goes back */
        rung_line_out_free(out);
    return true;
}

void rung_line_out_free(struct rung_line_out *out)
{
    rung_buf_free(&out->buf);
    out->pos = 0;
}
