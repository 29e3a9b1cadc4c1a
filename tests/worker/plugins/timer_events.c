/* A timer that needs real events, which the null device lacks: it must be passed over. */
#include "fake.h"
#include <rung/timer.h>

static int32_t measure(void *self, struct rung_call *call, const struct rung_session *session,
                       const struct rung_timing_recipe *recipe, struct rung_timing *out)
{
    (void)self, (void)session, (void)recipe, (void)out;
    return fake_fail(call, RUNG_EINTERNAL, "the wrong timer was taken");
}

static const struct rung_timer_ops ops = {.struct_size = sizeof ops, .measure = measure};
FAKE_PLUGIN(RUNG_KIND_TIMER, "events", RUNG_TIMER_MEASURES, NULL, ops)
