/* Frames: see wire.h. */
#include "worker/process/wire.h"
#include "base/status.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC 0x48474e52u /* "RNGH" */

struct process_frame process_frame_of(uint32_t type, int32_t status)
{
    return (struct process_frame){.magic = MAGIC, .type = type, .status = status};
}

static ssize_t write_some(int fd, const char *bytes, size_t n)
{
    ssize_t done = send(fd, bytes, n, MSG_NOSIGNAL);
    return done < 0 && errno == ENOTSOCK ? write(fd, bytes, n) : done;
}

static bool write_fully(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = write_some(fd, bytes, n);
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        } else if (done < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (done < 0 && errno != EINTR) {
            return false;
        }
    }
    return true;
}

bool process_send(int fd, struct process_frame frame, const void *body, size_t n)
{
    frame.length = n;
    return write_fully(fd, (const char *)&frame, sizeof(frame)) && write_fully(fd, body, n);
}

static int whole(const struct rung_buf *in, uint64_t limit, struct process_frame *frame)
{
    if (in->len < sizeof(*frame))
        return 0;
    memcpy(frame, in->ptr, sizeof(*frame));
    if (frame->magic != MAGIC) {
        errno = EPROTO;
        return -1;
    }
    if (frame->length > limit) {
        errno = EMSGSIZE;
        return -1;
    }
    return in->len - sizeof(*frame) >= frame->length;
}

int process_receive(int fd, struct rung_buf *in, uint64_t limit, struct process_frame *frame)
{
    char block[1 << 16];
    int ready = whole(in, limit, frame);
    if (ready)
        return ready;
    ssize_t n = read(fd, block, sizeof(block));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        if (n == 0)
            errno = EPIPE;
        return -1;
    }
    rung_buf_add(in, block, (size_t)n);
    return whole(in, limit, frame);
}

void process_error_write(struct rung_buf *out, const struct rung_error *err)
{
    rung_buf_add(out, err->symbol, strnlen(err->symbol, sizeof(err->symbol) - 1));
    rung_buf_putc(out, '\0');
    rung_buf_add(out, err->message, strnlen(err->message, sizeof(err->message) - 1));
}

void process_error_read(const struct process_frame *frame, const char *body, struct rung_error *err)
{
    size_t n = frame->length;
    const char *end = n ? memchr(body, '\0', n) : NULL;
    if (!end) {
        rung_fail(err, frame->status, "", "the helper gave no reason");
        return;
    }
    size_t left = n - (size_t)(end + 1 - body);
    rung_fail(err, frame->status, body, "%.*s", (int)(left < 1023 ? left : 1023), end + 1);
}
