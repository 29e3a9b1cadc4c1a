/*
 * Simulated measurements on the shared clock: 10 us a launch, with noise and drift. Markers in the
 * candidate's source change that; a session without an artifact is a baseline's, of 15 us.
 */
#include "fake.h"
#include <rung/timer.h>

#include <signal.h>
#include <stdbool.h>

enum { MOST = 64 };

static double base_of(const char *text)
{
    static unsigned asked;
    if (!text)
        return 15000;
    if (fake_marked(text, "clock-rising")) /* an idle GPU */
        return ++asked > 3 ? 10000 : 13000 - 1000 * asked;
    if (fake_marked(text, "clock-bluff")) /* fast as long as it is alone */
        return ++asked <= 2 ? 9950 : 10500;
    if (fake_marked(text, "clock-slow"))
        return 10500;
    return fake_marked(text, "clock-near") ? 10010 : 10000;
}

/* What the timed launches of a wrong kernel do: nothing until the outputs are looked at. */
static void fault(const char *text, const struct rung_timing_recipe *recipe, unsigned looks,
                  struct rung_timing *out)
{
    unsigned due = fake_marked(text, "clock-wrong-late") ? 4 : 1;
    bool wrong = fake_marked(text, "clock-wrong") || fake_marked(text, "clock-wrong-late");
    if (wrong && recipe->verify && looks >= due) {
        strcpy(out->fault.code, "numeric.mismatch");
        strcpy(out->fault.message, "wrong in a timed launch");
    }
}

/* A baseline's session runs the baseline, whatever its time is said to be. */
static int32_t run_baseline(const struct rung_session *session, struct rung_call *call,
                            const struct rung_timing_recipe *recipe, struct rung_timing *out)
{
    const struct rung_run_request request = {
        .struct_size = sizeof request, .dims = recipe->dims, .seed = recipe->seed};
    struct rung_run *run = NULL;
    int32_t status = session->run(session, call, &request, &run);
    if (status == RUNG_OK)
        out->fault = run->fault;
    session->end(session, run);
    return status;
}

static void fill(const char *text, double *samples, uint32_t n)
{
    double drift = text && fake_marked(text, "clock-drift") ? 1e-4 : 0, base = base_of(text);
    for (uint32_t i = 0; i < n; i++)
        samples[i] = base * fake_clock(drift) *
                     (text && fake_marked(text, "clock-unstable") && i % 2 ? 1.5 : 1);
}

static void measured_of(const char *text, const struct rung_timing_recipe *recipe,
                        struct rung_measured *out)
{
    bool tiny = text && fake_marked(text, "clock-tiny");
    out->floor_ns = tiny ? 9000 : 500;
    out->launch_bound = tiny;
    out->sets = recipe->sets ? recipe->sets : 3;
    out->batch = recipe->batch ? recipe->batch : 1;
    out->cold = recipe->sets ? RUNG_COLD_ROTATE : RUNG_COLD_FLUSH; /* later blocks differ */
    out->n_verified = recipe->verify;
    out->before = (struct rung_device_condition){
        .struct_size = sizeof out->before, .sm_mhz = 1700, .sm_mhz_max = 1980, .known = 1};
    out->after = out->before;
    out->after.throttle = RUNG_THROTTLE_POWER;
}

static int32_t measure(void *self, struct rung_call *call, const struct rung_session *session,
                       const struct rung_timing_recipe *recipe, struct rung_timing *out)
{
    const struct rung_host *host = self;
    static unsigned looks;
    const char *text = session->artifact ? session->artifact->codes[0].bytes : NULL;
    uint32_t n = recipe->samples < MOST ? recipe->samples : MOST;
    double *samples = host->alloc(host, call->arena, MOST * sizeof *samples, 8);
    int32_t status = text ? RUNG_OK : run_baseline(session, call, recipe, out);
    if (status != RUNG_OK)
        return status;
    fill(text, samples, n);
    looks += recipe->verify && text;
    out->kind = RUNG_TIME_MEASURED;
    out->advice = (struct rung_text){"measured", 8};
    out->physical_floor_ns = 5000;
    measured_of(text, recipe, &out->measured);
    out->measured.n_samples = n;
    out->measured.samples_ns = samples;
    if (text && fake_marked(text, "clock-crash") && looks > 3)
        raise(SIGSEGV);
    if (text)
        fault(text, recipe, looks, out);
    return RUNG_OK;
}

static const struct rung_timer_ops ops = {.struct_size = sizeof ops, .measure = measure};
FAKE_PLUGIN(RUNG_KIND_TIMER, "clock", RUNG_TIMER_MEASURES, NULL, ops)
