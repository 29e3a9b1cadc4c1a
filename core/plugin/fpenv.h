/*
 * The floating-point environment: rounding mode and, on x86, flush-to-zero and denormals-are-zero,
 * which fenv.h does not name. A verifier's arithmetic depends on it.
 */
#ifndef PLUGIN_FPENV_H
#define PLUGIN_FPENV_H

#include <fenv.h>
#include <stdbool.h>

struct rung_fpenv {
    int rounding;
    unsigned control; /* MXCSR without its status flags; 0 elsewhere */
};

static inline unsigned rung_fpenv_control(void)
{
#if defined(__SSE__)
    return __builtin_ia32_stmxcsr() & ~0x3fu;
#else
    return 0;
#endif
}

static inline struct rung_fpenv rung_fpenv_save(void)
{
    return (struct rung_fpenv){.rounding = fegetround(), .control = rung_fpenv_control()};
}

/* Puts the saved state back; true when it had changed. */
static inline bool rung_fpenv_restore(const struct rung_fpenv *saved)
{
    bool changed = fegetround() != saved->rounding || rung_fpenv_control() != saved->control;
    if (!changed)
        return false;
    fesetround(saved->rounding);
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr(saved->control | (__builtin_ia32_stmxcsr() & 0x3fu));
#endif
    return true;
}

#endif
