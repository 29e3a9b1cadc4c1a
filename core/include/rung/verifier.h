/*
 * rung/verifier.h - one rung of the ladder: judges a variant through a session.
 */
#ifndef RUNG_VERIFIER_H
#define RUNG_VERIFIER_H

#include <rung/session.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rung_verdict_status {
    RUNG_PASS = 1,
    RUNG_FAIL = 2,
    RUNG_NOTE = 3,        /* passes, with something worth knowing */
    RUNG_UNSUPPORTED = 4, /* can't be judged here; never "wrong" */
    RUNG_ERROR = 5,       /* the check itself broke */
    RUNG_SKIPPED = 6,
};

/*
 * code: "" or a stable code (docs/verdicts.md); required for FAIL and UNSUPPORTED. A plugin may add
 * codes of its own under its own first word.
 */
struct rung_verdict {
    uint32_t struct_size;
    uint32_t status; /* rung_verdict_status */
    char code[32];
    struct rung_text detail; /* for the model: what, where, how far, at which shape and fill */
    const struct rung_map *metrics; /* may be NULL */
};

struct rung_verifier_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /* [worker, started] A wrong kernel is a verdict, not an error. */
    int32_t (*check)(void *self, struct rung_call *, const struct rung_session *,
                     struct rung_verdict *out);
};

#ifdef __cplusplus
}
#endif
#endif
