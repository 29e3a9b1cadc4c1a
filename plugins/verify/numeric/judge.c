/*
 * Runs the cases and decides. A fault, a changed input or a write outside a buffer ends the check
 * at once. The task's own fills come first; only when all of them pass do the structured fills
 * follow, so that a kernel of too low a precision is told so, and not of the overflow that large
 * inputs then cause. Within each stage the order is unwritten, nonfinite, precision, unstable,
 * mismatch.
 */
#include "numeric.h"

#include "../element.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int is_output(const struct rung_tensor_spec *t)
{
    return t->role == RUNG_ROLE_OUTPUT || t->role == RUNG_ROLE_INOUT;
}

static int failed(const struct numeric_check *k, const struct rung_comparison *c)
{
    if (c->n_unwritten || c->n_nan || c->n_inf || c->n_missing)
        return 1;
    return k->self->tolerance == 1 ? c->n_bad > 0 : c->worst > k->self->tolerance;
}

static enum numeric_kind kind_of(const struct numeric_check *k, const struct rung_comparison *c)
{
    if (c->n_unwritten)
        return UNWRITTEN;
    if (c->n_nan || c->n_inf)
        return NONFINITE;
    return c->worst_half <= k->self->tolerance ? HALF : WRONG;
}

/* ---- one run ---- */

int32_t numeric_start(struct numeric_check *k, const struct numeric_case *c, struct rung_run **run)
{
    const struct rung_task *task = k->session->task;
    struct rung_fill *fills = numeric_alloc(k, (task->n_tensors + 1) * sizeof *fills);
    if (!fills)
        return RUNG_ENOMEM;
    struct rung_run_request request = {.struct_size = sizeof request,
                                       .dims = c->dims,
                                       .seed = c->seed,
                                       .fills = c->exact,
                                       .n_fills = c->n_exact,
                                       .repeats = c->repeats};
    if (c->keeps_state)
        request.flags = RUNG_RUN_KEEP_STATE;
    if (!c->n_exact) {
        request.fills = fills;
        request.n_fills = numeric_fills(task, c, fills);
    }
    k->n_run++;
    *run = NULL;
    int32_t status = k->session->run(k->session, k->call, &request, run);
    if (!status)
        k->launch_ns = (*run)->host_ns / c->repeats;
    return status;
}

static uint32_t fault_status(const char *code)
{
    if (!strcmp(code, "device.unsupported") || !strcmp(code, "device.memory"))
        return RUNG_UNSUPPORTED;
    return !strcmp(code, "device.lost") || !strcmp(code, "internal") ? RUNG_ERROR : RUNG_FAIL;
}

static int32_t tell_fault(struct numeric_check *k, const struct numeric_case *c,
                          const struct rung_fault *f)
{
    struct numeric_text text = {.at = 0};
    numeric_say_where(k, c, &text);
    numeric_say(&text, ":");
    if (f->kernel[0])
        numeric_say(&text, " kernel %.120s", f->kernel);
    if (f->line)
        numeric_say(&text, " line %u", f->line);
    numeric_say(&text, "%s %s", f->kernel[0] || f->line ? ":" : "", f->message);
    return numeric_verdict(k, fault_status(f->code), f->code, text.buf, NULL);
}

/*
 * What ends the check whatever the values are: a fault, a write outside a buffer, a changed input.
 * *ended is set when the verdict is filled.
 */
static int32_t check_conduct(struct numeric_check *k, const struct numeric_case *c,
                             const struct rung_run *run, int *ended)
{
    const struct rung_task *task = k->session->task;
    struct numeric_text text = {.at = 0};
    *ended = 1;
    if (run->fault.code[0])
        return tell_fault(k, c, &run->fault);
    numeric_say_where(k, c, &text);
    if (run->guard_broken) {
        uint32_t i = run->guard_broken - 1;
        int gaps = i < task->n_tensors && task->tensors[i].stride[0];
        numeric_say(&text, ": memory just outside %s%s was overwritten",
                    gaps ? "or between the elements of " : "",
                    i < task->n_tensors ? task->tensors[i].name : "a temp of the plan");
        return numeric_verdict(k, RUNG_FAIL, "mem.out_of_bounds", text.buf, NULL);
    }
    if (run->modified_input) {
        uint32_t i = run->modified_input - 1;
        numeric_say(&text, ": the kernel changed its input %s, which must stay as it is",
                    i < task->n_tensors ? task->tensors[i].name : "");
        return numeric_verdict(k, RUNG_FAIL, "input.modified", text.buf, NULL);
    }
    *ended = 0;
    return RUNG_OK;
}

/* Whether a failure is there, with elements enough to show a pattern. */
static int told_enough(const struct numeric_failure *f)
{
    return f->detail && f->c.n >= 64;
}

static int32_t note_failure(struct numeric_check *k, const struct numeric_case *c,
                            const struct numeric_output *o, struct numeric_stage *s)
{
    struct numeric_failure *f = &s->first[kind_of(k, &o->c)];
    struct numeric_text text = {.at = 0};
    s->n_failed++;
    if (f->detail && (told_enough(f) || o->c.n <= f->c.n))
        return RUNG_OK;
    numeric_say_wrong(k, c, o, &text);
    f->detail = numeric_alloc(k, text.at + 1);
    if (!f->detail)
        return RUNG_ENOMEM;
    memcpy(f->detail, text.buf, text.at);
    f->at = c;
    f->c = o->c;
    return RUNG_OK;
}

static int informative(const struct numeric_case *c)
{
    const char *fill = c->fill;
    return c->repeats == 1 && !c->n_exact &&
           (!fill || !strcmp(fill, "offset") || !strcmp(fill, "large") || !strcmp(fill, "small"));
}

static void note_pass(const struct numeric_case *c, const struct rung_comparison *cmp,
                      struct numeric_stage *s)
{
    if (s->worst_at && cmp->worst <= s->worst.worst)
        return;
    s->worst_at = c;
    s->worst = *cmp;
}

static int32_t judge_looked(struct numeric_check *k, const struct numeric_case *c,
                            struct rung_run *run, uint32_t tensor, struct numeric_stage *s,
                            struct numeric_weak *weak)
{
    struct numeric_output o;
    int32_t status = numeric_look(k, c, run, tensor, &o);
    if (status)
        return status;
    if (failed(k, &o.c))
        status = note_failure(k, c, &o, s);
    else
        note_pass(c, &o.c, s);
    if (!status && weak && informative(c))
        status = numeric_weak_add(k, run, &o, &weak[tensor]);
    numeric_forget(&o);
    return status;
}

/* Compared whole and right: boxes only say what a constant could do, and two cases say that. */
static int32_t judge_right(struct numeric_check *k, const struct numeric_case *c,
                           struct rung_run *run, uint32_t tensor, struct numeric_weak *weak)
{
    struct numeric_output o;
    double share = k->share;
    if (!weak || !informative(c) || weak[tensor].n_cases >= 2)
        return RUNG_OK;
    int32_t status = numeric_look(k, c, run, tensor, &o);
    if (status)
        return status;
    k->share = share;
    status = numeric_weak_add(k, run, &o, &weak[tensor]);
    numeric_forget(&o);
    return status;
}

/* A dear output is compared whole where it lies; boxes around what is wrong then tell the rest. */
static int32_t judge_output(struct numeric_check *k, const struct numeric_case *c,
                            struct rung_run *run, uint32_t tensor, struct numeric_stage *s,
                            struct numeric_weak *weak)
{
    struct rung_comparison whole;
    int seen = 0;
    int32_t status = RUNG_OK;
    if (c->part && k->self->tolerance == 1)
        status = numeric_glance(k, run, tensor, &whole, &seen);
    if (status)
        return status;
    if (seen && !failed(k, &whole)) {
        note_pass(c, &whole, s);
        return judge_right(k, c, run, tensor, weak);
    }
    k->bad = seen ? whole.first_bad + 1 : 0;
    status = judge_looked(k, c, run, tensor, s, weak);
    k->bad = 0;
    return status;
}

int32_t numeric_judge_run(struct numeric_check *k, const struct numeric_case *c,
                          struct rung_run *run, struct numeric_stage *s, struct numeric_weak *weak,
                          int *ended)
{
    const struct rung_task *task = k->session->task;
    int32_t status = check_conduct(k, c, run, ended);
    for (uint32_t i = 0; i < task->n_tensors && !status && !*ended; i++)
        if (is_output(&task->tensors[i]))
            status = judge_output(k, c, run, i, s, weak);
    return status;
}

/* Runs one case; weak: one entry a tensor. */
static int32_t judge_case(struct numeric_check *k, const struct numeric_case *c,
                          struct numeric_stage *s, struct numeric_weak *weak, int *ended)
{
    struct rung_run *run;
    int32_t status = numeric_start(k, c, &run);
    if (!status)
        status = numeric_judge_run(k, c, run, s, weak, ended);
    k->session->end(k->session, run);
    return status;
}

static int32_t cancelled(struct numeric_check *k)
{
    const struct rung_host *host = k->self->host;
    if (!k->call->cancel || !host->is_cancelled(host, k->call->cancel))
        return RUNG_OK;
    k->call->error->code = RUNG_ECANCELLED;
    snprintf(k->call->error->message, sizeof k->call->error->message, "numeric: cancelled");
    return RUNG_ECANCELLED;
}

/* Once something failed only cheap cases follow: they may show a code that comes first. */
static int32_t judge_cases(struct numeric_check *k, const struct numeric_case *cases, uint32_t n,
                           struct numeric_stage *s, struct numeric_weak *weak, int *ended)
{
    int32_t status = RUNG_OK;
    for (uint32_t i = 0; i < n && !status && !*ended; i++) {
        if (told_enough(&s->first[UNWRITTEN]) || (s->n_failed && cases[i].cost > 65536))
            break;
        status = cancelled(k);
        if (!status)
            status = judge_case(k, &cases[i], s, weak, ended);
    }
    return status;
}

/* ---- twice ---- */

/* Elements of an output in which two runs differ by more than honest arithmetic explains. */
static int32_t count_apart(struct numeric_check *k, const struct numeric_case *c,
                           struct rung_run *a, struct rung_run *b, uint32_t tensor, uint64_t *n,
                           double *largest)
{
    struct numeric_output x;
    struct rung_tensor_view other = {.struct_size = sizeof other};
    int32_t status = numeric_look(k, c, a, tensor, &x);
    if (status)
        return status;
    status = k->session->map(k->session, k->call, b, tensor, &other);
    for (uint64_t i = 0; !status && i < x.c.n; i++) {
        double p = numeric_got(&x, i),
               q = verify_element(other.dtype, other.data, x.at ? x.at[i] : i);
        if (p == q || (isnan(p) && isnan(q)))
            continue;
        double apart = isfinite(p) && isfinite(q) ? fabs(p - q) : INFINITY;
        *largest = fmax(*largest, apart);
        *n += !(apart <= 2 * k->self->tolerance * x.want.bound[i]);
    }
    numeric_forget(&x);
    return status;
}

static int32_t compare_twice(struct numeric_check *k, const struct numeric_case *c,
                             struct rung_run *a, struct rung_run *b, int *ended)
{
    const struct rung_task *task = k->session->task;
    struct numeric_text text = {.at = 0};
    uint64_t apart = 0;
    double largest = 0;
    uint32_t same = 1;
    int32_t status = k->session->same_bits(k->session, k->call, a, b, &same);
    for (uint32_t i = 0; i < task->n_tensors && !status && !same; i++)
        if (is_output(&task->tensors[i]))
            status = count_apart(k, c, a, b, i, &apart, &largest);
    if (status || same)
        return status;
    numeric_say_where(k, c, &text);
    numeric_say(&text, ": two runs on the same inputs differ, by up to %.3g", largest);
    if (apart || task->precision == RUNG_PRECISION_EXACT) {
        numeric_say(
            &text,
            ", %llu elements by more than the order of operations explains: a race, or memory "
            "that was never written is read",
            (unsigned long long)apart);
        *ended = 1;
        return numeric_verdict(k, RUNG_FAIL, "run.nondeterministic", text.buf, NULL);
    }
    numeric_say(&text, ", within what another order of summation explains");
    numeric_say(&k->note, "%s", text.buf);
    return RUNG_OK;
}

/* The same case twice, both runs alive at once. */
static int32_t judge_twice(struct numeric_check *k, const struct numeric_case *c, int *ended)
{
    struct rung_run *a = NULL, *b = NULL;
    int32_t status = numeric_start(k, c, &a);
    if (!status)
        status = check_conduct(k, c, a, ended);
    if (!status && !*ended)
        status = numeric_start(k, c, &b);
    if (!status && !*ended)
        status = check_conduct(k, c, b, ended);
    if (!status && !*ended)
        status = compare_twice(k, c, a, b, ended);
    k->session->end(k->session, a);
    k->session->end(k->session, b);
    return status;
}

/* ---- verdict ---- */

int32_t numeric_fail(struct numeric_check *k, const struct numeric_failure *f, const char *code,
                     const char *why)
{
    struct numeric_text text = {.at = 0};
    numeric_say(&text, "%s%s", f->detail, why);
    return numeric_verdict(k, RUNG_FAIL, code, text.buf, numeric_metrics(k, f->at, &f->c));
}

static const char low_precision[] = " All errors are of the size that half-precision or tf32 "
                                    "arithmetic, or an approximate formula, "
                                    "makes; the task asks for more.";
static const char only_hard[] = " The task's own inputs pass: the arithmetic is unstable "
                                "(cancellation, overflow or underflow).";

/* Failures of the task's own fills. A wrong result that is another one each time is told as that.
 */
static int32_t conclude_own(struct numeric_check *k, const struct numeric_stage *s)
{
    const struct numeric_failure *wrong = &s->first[WRONG], *half = &s->first[HALF];
    int ended = 0;
    if (s->first[UNWRITTEN].detail)
        return numeric_fail(k, &s->first[UNWRITTEN], "output.unwritten", "");
    if (s->first[NONFINITE].detail)
        return numeric_fail(k, &s->first[NONFINITE], "output.nonfinite", "");
    int32_t status = judge_twice(k, wrong->detail ? wrong->at : half->at, &ended);
    if (status || ended)
        return status;
    if (!wrong->detail)
        return numeric_fail(k, half, "numeric.precision", low_precision);
    return numeric_fail(k, wrong, "numeric.mismatch", "");
}

static int32_t conclude_hard(struct numeric_check *k, const struct numeric_stage *s)
{
    if (s->first[UNWRITTEN].detail)
        return numeric_fail(k, &s->first[UNWRITTEN], "output.unwritten", "");
    if (s->first[NONFINITE].detail)
        return numeric_fail(k, &s->first[NONFINITE], "output.nonfinite", only_hard);
    return numeric_fail(k, s->first[WRONG].detail ? &s->first[WRONG] : &s->first[HALF],
                        "numeric.unstable", only_hard);
}

static int32_t conclude_pass(struct numeric_check *k, const struct numeric_stage *s,
                             uint32_t n_shapes)
{
    struct numeric_text text = {.at = 0};
    numeric_say(&text, "%u runs at %u shapes", k->n_run, n_shapes);
    if (s->worst_at) {
        numeric_say(&text, "; the largest error is %.3g of what honest arithmetic explains, ",
                    s->worst.worst);
        numeric_say_where(k, s->worst_at, &text);
    }
    if (k->share < 1)
        numeric_say(&text,
                    "; of the dearest outputs %.2g %% were compared, as rows and tiles of all "
                    "parts, and the rest was looked through for elements that were never written "
                    "or are not finite",
                    100 * k->share);
    if (k->note.at)
        numeric_say(&text, ". Note: %s", k->note.buf);
    numeric_say(&text, ".");
    return numeric_verdict(k, k->note.at ? RUNG_NOTE : RUNG_PASS,
                           k->note.at ? "run.nondeterministic" : "", text.buf,
                           s->worst_at ? numeric_metrics(k, s->worst_at, &s->worst) : NULL);
}

/* The task's weakness, when all cases of some output show it. */
static int32_t judge_task(struct numeric_check *k, const struct numeric_weak *weak, int *ended)
{
    for (uint32_t i = 0; i < k->session->task->n_tensors && !*ended; i++) {
        const char *says = weak[i].n_cases ? numeric_weak_says(k, i, &weak[i]) : NULL;
        if (says) {
            *ended = 1;
            return numeric_verdict(k, RUNG_FAIL, "task.weak", says, NULL);
        }
    }
    return RUNG_OK;
}

int32_t numeric_judge(struct numeric_check *k)
{
    struct numeric_cases cases;
    struct numeric_stage own = {0}, hard = {0};
    int ended = 0;
    struct numeric_weak *weak = numeric_alloc(k, (k->session->task->n_tensors + 1) * sizeof *weak);
    int32_t status = weak ? numeric_choose(k, &cases) : RUNG_ENOMEM;
    if (status)
        return status;
    if (!cases.n_own)
        return numeric_verdict(k, RUNG_UNSUPPORTED, "device.memory",
                               "no shape of the task can be run here", NULL);
    status = judge_cases(k, cases.own, cases.n_own, &own, weak, &ended);
    if (!status && !ended && !own.n_failed)
        status = numeric_probe(k, &cases, &ended);
    if (!status && !ended && !own.n_failed)
        status = judge_cases(k, cases.hard, cases.n_hard, &hard, weak, &ended);
    if (!status && !ended)
        status = judge_task(k, weak, &ended);
    if (status || ended)
        return status;
    if (own.n_failed)
        return conclude_own(k, &own);
    if (hard.n_failed)
        return conclude_hard(k, &hard);
    status = judge_twice(k, cases.twice, &ended);
    if (!status && !ended)
        status = numeric_state(k, &cases, &ended);
    if (hard.worst_at && hard.worst.worst > own.worst.worst)
        own = hard;
    return status || ended ? status : conclude_pass(k, &own, cases.n_shapes);
}
