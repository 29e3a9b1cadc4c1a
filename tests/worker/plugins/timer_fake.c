/* Modelled time = rows in microseconds; measured samples when the source asks for them. */
#include "fake.h"
#include <rung/timer.h>
#include <signal.h>

static const double samples[] = {1500, 1100, 1000, 1300, 1200};

static int32_t measure(void *self, struct rung_call *call, const struct rung_session *session,
                       const struct rung_timing_recipe *recipe, struct rung_timing *out)
{
    (void)self;
    const char *text = session->artifact->codes[0].bytes;
    if (fake_marked(text, "time-crash"))
        raise(SIGBUS);
    if (fake_marked(text, "time-broken"))
        return fake_fail(call, RUNG_EINTERNAL, "the clock broke");
    if (fake_marked(text, "time-fault")) {
        strcpy(out->fault.code, "mem.out_of_bounds");
        strcpy(out->fault.message, "in the timed run");
        return RUNG_OK;
    }
    out->advice = (struct rung_text){"dram limits", 11};
    out->kind = RUNG_TIME_MODELLED;
    out->modelled.time_ns = 1000.0 * (double)recipe->dims[0];
    out->modelled.tie_band = 0.3;
    out->modelled.gpu = "fake gpu";
    out->modelled.limiter = "dram";
    out->physical_floor_ns = fake_marked(text, "time-floor") ? 2000 : 100;
    if (fake_marked(text, "time-measured") || fake_marked(text, "time-floor")) {
        out->kind = RUNG_TIME_MEASURED;
        out->measured.n_samples = 5;
        out->measured.samples_ns = samples;
    }
    return RUNG_OK;
}

static const struct rung_timer_ops ops = {.struct_size = sizeof ops, .measure = measure};
FAKE_PLUGIN(RUNG_KIND_TIMER, "fake", RUNG_TIMER_COUNTERS, NULL, ops)
