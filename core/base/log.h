/*
 * The log: lines on standard error. Any thread; a line is written with one write.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <rung/plugin.h>

/* Least level that is shown; RUNG_LOG_WARN at start, or what RUNG_LOG names (debug info warn
 * error). */
void rung_log_level(uint32_t level);
/* Words that never reach a log: every occurrence of `secret` (4 bytes or more) becomes "***". */
void rung_log_redact(const char *secret);
/* who: "engine", "verifier numeric". Control characters in the text are shown as \xNN. */
void rung_log(uint32_t level, const char *who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
