#include "http/secret.h"
#include "base/die.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAST_BYTES = 4 }; /* what rung_log_redact hides */

/*
 * The log keeps every word that it is given, so each value is given once. Few in number (a key a
 * provider and its renewals), never freed.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char **hidden;
static size_t n_hidden;

static void hide(const char *value)
{
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < n_hidden && strcmp(hidden[i], value) != 0)
        i++;
    if (i == n_hidden) {
        hidden = rung_xrealloc(hidden, (n_hidden + 1) * sizeof *hidden);
        hidden[n_hidden++] = rung_xstrdup(value);
        rung_log_redact(value);
    }
    pthread_mutex_unlock(&lock);
}

static int32_t bad(struct rung_error *err, const char *reference, const char *what)
{
    return rung_fail(err, RUNG_ECONFIG, "http.secret", "the secret %s %s", reference, what);
}

/* Reads at most cap bytes of an open file; the number, or -1 with errno set. */
static ssize_t read_all(int fd, char *buffer, size_t cap)
{
    size_t n = 0;
    while (n < cap) {
        ssize_t got = read(fd, buffer + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

/* The rules for the open file and its bytes: buffer has room for one byte more than allowed. */
static int32_t read_open(int fd, const char *reference, char *buffer, size_t *n,
                         struct rung_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return bad(err, reference, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return bad(err, reference, "is no regular file");
    mode_t mode = st.st_mode & 07777;
    if (mode != 0600 && mode != 0400)
        return rung_fail(err, RUNG_ECONFIG, "http.secret",
                         "the secret %s has mode %04o, so that others may read it: chmod 600 it",
                         reference, (unsigned)mode);
    ssize_t got = read_all(fd, buffer, RUNG_SECRET_MAX_BYTES + 1);
    if (got < 0)
        return bad(err, reference, strerror(errno));
    if (got > RUNG_SECRET_MAX_BYTES)
        return bad(err, reference, "is longer than 16 KiB, which no key is");
    *n = (size_t)got;
    return RUNG_OK;
}

static int32_t read_file(const char *reference, char *buffer, size_t *n, struct rung_error *err)
{
    const char *path = reference + strlen("file:");
    if (path[0] != '/')
        return bad(err, reference, "must be an absolute path");
    /* Not blocking, so that a FIFO there can't hold the call. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return rung_fail(err, RUNG_ECONFIG, "http.secret", "the secret %s can't be opened: %s",
                         reference, strerror(errno));
    int32_t status = read_open(fd, reference, buffer, n, err);
    close(fd);
    return status;
}

static int32_t read_variable(const char *reference, char *buffer, size_t *n, struct rung_error *err)
{
    const char *name = reference + strlen("env:");
    const char *value = getenv(name);
    if (!value)
        return rung_fail(err, RUNG_ECONFIG, "http.secret", "the environment variable %s is not set",
                         name);
    *n = strlen(value);
    if (*n > RUNG_SECRET_MAX_BYTES)
        return bad(err, reference, "is longer than 16 KiB, which no key is");
    memcpy(buffer, value, *n);
    return RUNG_OK;
}

/* Cuts blanks off the end; false unless the rest may stand in a header. */
static int32_t check(const char *reference, const char *value, size_t *n, struct rung_error *err)
{
    while (*n && strchr(" \t\r\n", value[*n - 1]) && value[*n - 1])
        (*n)--;
    if (*n == 0)
        return bad(err, reference, "is empty");
    if (*n < LEAST_BYTES)
        return bad(err, reference, "is shorter than 4 characters, too short to be hidden in logs");
    for (size_t i = 0; i < *n; i++)
        if (value[i] < 32 || value[i] > 126)
            return bad(err, reference,
                       "holds a line break or another character that no header may hold");
    return RUNG_OK;
}

char *rung_secret_read(const char *reference, struct rung_error *err)
{
    char buffer[RUNG_SECRET_MAX_BYTES + 1];
    size_t n = 0;
    int32_t status;
    char *value = NULL;
    if (rung_starts_with(reference, "env:"))
        status = read_variable(reference, buffer, &n, err);
    else if (rung_starts_with(reference, "file:"))
        status = read_file(reference, buffer, &n, err);
    else /* not shown: somebody may have written the secret itself */
        status = rung_fail(err, RUNG_ECONFIG, "http.secret",
                           "a secret must be named as \"env:VARIABLE\" or \"file:PATH\"");
    if (status == RUNG_OK && check(reference, buffer, &n, err) == RUNG_OK) {
        value = rung_xcalloc(1, n + 1);
        memcpy(value, buffer, n);
        hide(value);
    }
    explicit_bzero(buffer, sizeof buffer);
    return value;
}

void rung_secret_free(char *value)
{
    if (value)
        explicit_bzero(value, strlen(value));
    free(value);
}
