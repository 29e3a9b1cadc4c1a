#include "base/log.h"
#include "base/die.h"
#include "base/io.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEVEL_UNSET = 99 };

static _Atomic uint32_t level = LEVEL_UNSET;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char **secrets;
static size_t n_secrets;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static uint32_t level_now(void)
{
    uint32_t now = atomic_load(&level);
    if (now != LEVEL_UNSET)
        return now;
    const char *text = getenv("RUNG_LOG");
    now = RUNG_LOG_WARN;
    for (uint32_t i = 0; text && i < 4; i++)
        if (strcmp(text, level_names[i]) == 0)
            now = i;
    atomic_store(&level, now);
    return now;
}

void rung_log_level(uint32_t new_level)
{
    atomic_store(&level, new_level);
}

/* Called with the lock held. */
static bool secret_known(const char *secret)
{
    for (size_t i = 0; i < n_secrets; i++)
        if (strcmp(secrets[i], secret) == 0)
            return true;
    return false;
}

void rung_log_redact(const char *secret)
{
    if (strlen(secret) < 4)
        return;
    pthread_mutex_lock(&lock);
    if (!secret_known(secret)) {
        secrets = rung_xrealloc(secrets, (n_secrets + 1) * sizeof *secrets);
        secrets[n_secrets++] = rung_xstrdup(secret);
    }
    pthread_mutex_unlock(&lock);
}

/* Length of the secret that starts at text, or 0. Called with the lock held. */
static size_t secret_at(const char *text)
{
    for (size_t i = 0; i < n_secrets; i++)
        if (rung_starts_with(text, secrets[i]))
            return strlen(secrets[i]);
    return 0;
}

static void add_clean(struct rung_buf *line, const char *text)
{
    while (*text) {
        size_t hidden = secret_at(text);
        unsigned char c = (unsigned char)*text;
        if (hidden) {
            rung_buf_puts(line, "***");
            text += hidden;
            continue;
        }
        if (c < 32 || c == 127)
            rung_buf_printf(line, "\\x%02x", c);
        else
            rung_buf_putc(line, (char)c);
        text++;
    }
}

void rung_log(uint32_t at, const char *who, const char *format, ...)
{
    if (at < level_now() || at > RUNG_LOG_ERROR)
        return;
    struct rung_buf line = {0};
    char message[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    rung_buf_printf(&line, "rung: %s: [%s] ", level_names[at], who);
    add_clean(&line, message);
    rung_buf_putc(&line, '\n');
    rung_write_all(STDERR_FILENO, line.ptr, line.len);
    pthread_mutex_unlock(&lock);
    rung_buf_free(&line);
}
