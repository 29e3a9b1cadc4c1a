#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct rung_error rung_error_init(void)
{
    struct rung_error err = {.struct_size = sizeof err};
    return err;
}

int32_t rung_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format, ...)
{
    if (!err)
        return code;
    err->code = code;
    snprintf(err->symbol, sizeof err->symbol, "%s", symbol);
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

const char *rung_status_name(int32_t code)
{
    static const char *const names[] = {
        [RUNG_OK] = "ok",
        [RUNG_EINVAL] = "invalid argument",
        [RUNG_ECONFIG] = "configuration",
        [RUNG_ENOTFOUND] = "not found",
        [RUNG_EUNSUPPORTED] = "unsupported",
        [RUNG_ENOMEM] = "out of memory",
        [RUNG_EIO] = "input/output",
        [RUNG_ETIMEOUT] = "timeout",
        [RUNG_ECANCELLED] = "cancelled",
        [RUNG_ERATELIMIT] = "rate limit",
        [RUNG_EUNAVAILABLE] = "unavailable",
        [RUNG_EBUDGET] = "budget",
        [RUNG_EMISUSE] = "misuse",
        [RUNG_EINTERNAL] = "internal",
    };
    if (code < 0 || (size_t)code >= sizeof names / sizeof *names)
        return "unknown status";
    return names[code];
}
