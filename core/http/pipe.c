/* The queue is one buffer; the reader takes all of it in exchange for an empty one, so that both
 * work at once and a reader that lags is woken once for many pieces. */
#include "http/pipe.h"

#include <errno.h>
#include <string.h>
#include <time.h>

struct record {
    size_t n;
    enum rung_pipe_kind kind;
};

void rung_pipe_init(struct rung_pipe *pipe)
{
    *pipe = (struct rung_pipe){.result = CURLE_OK};
    pthread_mutex_init(&pipe->lock, NULL);
    sem_init(&pipe->news, 0, 0);
}

void rung_pipe_free(struct rung_pipe *pipe)
{
    if (pipe->queue.ptr)
        explicit_bzero(pipe->queue.ptr, pipe->queue.cap);
    rung_buf_free(&pipe->queue);
    sem_destroy(&pipe->news);
    pthread_mutex_destroy(&pipe->lock);
}

/* ---- The writer ---- */

/* Under the lock: whether the reader must be woken, which is then to be done once. */
static bool wakes(struct rung_pipe *pipe)
{
    bool waits = pipe->waits;
    pipe->waits = false;
    return waits;
}

bool rung_pipe_put(struct rung_pipe *pipe, enum rung_pipe_kind kind, const char *bytes, size_t n,
                   bool bounded)
{
    const struct record record = {n, kind};
    pthread_mutex_lock(&pipe->lock);
    bool fits = !pipe->queue.len || !bounded || pipe->queue.len + n <= RUNG_PIPE_BYTES;
    if (fits) {
        rung_buf_add(&pipe->queue, &record, sizeof record);
        rung_buf_add(&pipe->queue, bytes, n);
    }
    pipe->full = !fits;
    pthread_mutex_unlock(&pipe->lock);
    return fits;
}

void rung_pipe_wake(struct rung_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    bool wake = pipe->queue.len && wakes(pipe);
    pthread_mutex_unlock(&pipe->lock);
    if (wake)
        sem_post(&pipe->news);
}

/* Posts inside the lock: outside, the reader may have freed the pipe. */
void rung_pipe_end(struct rung_pipe *pipe, CURLcode result, bool dismissed)
{
    pthread_mutex_lock(&pipe->lock);
    pipe->result = result;
    pipe->dismissed = dismissed;
    pipe->over = true;
    if (wakes(pipe))
        sem_post(&pipe->news);
    pthread_mutex_unlock(&pipe->lock);
}

void rung_pipe_nudge(struct rung_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    pipe->nudged = true;
    bool wake = wakes(pipe);
    pthread_mutex_unlock(&pipe->lock);
    if (wake)
        sem_post(&pipe->news);
}

/* ---- The reader ---- */

/* Takes what there is; IDLE: nothing, and `waits` is set. */
static enum rung_pipe_news look(struct rung_pipe *pipe, struct rung_buf *records)
{
    enum rung_pipe_news news = RUNG_PIPE_IDLE;
    pthread_mutex_lock(&pipe->lock);
    pipe->waits = false;
    if (pipe->queue.len) {
        struct rung_buf empty = *records;
        *records = pipe->queue;
        pipe->queue = empty;
        news = pipe->full ? RUNG_PIPE_ROOM : RUNG_PIPE_MORE;
        pipe->full = false;
    } else if (pipe->over) {
        news = RUNG_PIPE_OVER;
    } else if (pipe->nudged) {
        news = RUNG_PIPE_NUDGED;
    } else {
        pipe->waits = true;
    }
    pthread_mutex_unlock(&pipe->lock);
    return news;
}

enum rung_pipe_news rung_pipe_take(struct rung_pipe *pipe, struct rung_buf *records,
                                   uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    bool late = false;
    records->len = 0;
    for (;;) {
        enum rung_pipe_news news = look(pipe, records);
        if (news != RUNG_PIPE_IDLE || late)
            return news;
        late = sem_clockwait(&pipe->news, CLOCK_MONOTONIC, &until) != 0 && errno == ETIMEDOUT;
    }
}

void rung_pipe_wait_end(struct rung_pipe *pipe)
{
    for (;;) {
        pthread_mutex_lock(&pipe->lock);
        bool over = pipe->over;
        pipe->waits = !over;
        pthread_mutex_unlock(&pipe->lock);
        if (over)
            return;
        sem_wait(&pipe->news);
    }
}

bool rung_pipe_next(const struct rung_buf *records, size_t *at, enum rung_pipe_kind *kind,
                    char **bytes, size_t *n)
{
    struct record record;
    if (*at >= records->len)
        return false;
    memcpy(&record, records->ptr + *at, sizeof record);
    *kind = record.kind;
    *bytes = records->ptr + *at + sizeof record;
    *n = record.n;
    *at += sizeof record + record.n;
    return true;
}
