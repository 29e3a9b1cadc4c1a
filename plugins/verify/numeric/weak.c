/*
 * Whether the task can be passed without computing anything: a constant (zero among them) that lies
 * within the bound of every element, or a copy of an input. Seen from the reference's values and
 * bounds alone, so it says nothing about the candidate.
 */
#include "numeric.h"

#include "../element.h"

#include <math.h>

enum { WIDE = 8 }; /* elements from which a constant of its own says something about a case */

/* Constants that pass all elements: the intersection of [v - b, v + b]; empty as low > high. */
static void constants(const struct rung_reference_output *want, double *low, double *high)
{
    *low = -INFINITY;
    *high = INFINITY;
    for (uint64_t i = 0; i < want->n; i++) {
        double v = want->value[i], b = want->bound[i];
        if (!isfinite(v)) {
            *low = INFINITY;
            *high = -INFINITY;
            return;
        }
        *low = fmax(*low, v - b);
        *high = fmin(*high, v + b);
    }
}

static uint64_t elements(const struct rung_tensor_view *view)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < view->n_dims; d++)
        n *= (uint64_t)view->dims[d];
    return n;
}

/* Whether input `tensor` has the size of the output and lies within its bounds, some bound above 0:
 * where nothing may be off, a copy is the task itself. */
static int32_t copy_passes(const struct numeric_check *k, struct rung_run *run, uint32_t tensor,
                           const struct numeric_output *o, int *passes)
{
    const struct rung_reference_output *want = &o->want;
    struct rung_tensor_view view = {.struct_size = sizeof view};
    int loose = 0;
    *passes = 0;
    int32_t status = k->session->map(k->session, k->call, run, tensor, &view);
    if (status)
        return status;
    if (elements(&view) != elements(&o->got))
        return RUNG_OK;
    for (uint64_t i = 0; i < want->n; i++) {
        double x = verify_element(view.dtype, view.data, o->at ? o->at[i] : i);
        if (!(fabs(x - want->value[i]) <= want->bound[i]))
            return RUNG_OK;
        loose |= want->bound[i] > 0;
    }
    *passes = loose;
    return RUNG_OK;
}

static int32_t add_copies(const struct numeric_check *k, struct rung_run *run,
                          const struct numeric_output *o, struct numeric_weak *w)
{
    const struct rung_task *task = k->session->task;
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        int passes, first = w->n_cases == 0 && !w->copied;
        if (task->tensors[i].role == RUNG_ROLE_OUTPUT || task->tensors[i].role == RUNG_ROLE_INOUT ||
            (!first && w->copied != i + 1))
            continue;
        int32_t status = copy_passes(k, run, i, o, &passes);
        if (status)
            return status;
        if (passes) {
            w->copied = i + 1;
            w->n_copy++;
        }
    }
    return RUNG_OK;
}

int32_t numeric_weak_add(const struct numeric_check *k, struct rung_run *run,
                         const struct numeric_output *o, struct numeric_weak *w)
{
    double low, high;
    constants(&o->want, &low, &high);
    if (w->n_cases == 0) {
        w->low = -INFINITY;
        w->high = INFINITY;
    }
    int32_t status = add_copies(k, run, o, w);
    w->low = fmax(w->low, low);
    w->high = fmin(w->high, high);
    w->n_wide += o->want.n >= WIDE;
    w->n_each += o->want.n >= WIDE && low <= high;
    w->n_cases++;
    return status;
}

const char *numeric_weak_says(const struct numeric_check *k, uint32_t tensor,
                              const struct numeric_weak *w)
{
    const char *name = k->session->task->tensors[tensor].name;
    struct numeric_text text = {.at = 0};
    if (w->n_cases < 2)
        return NULL;
    if (w->low <= 0 && w->high >= 0)
        numeric_say(&text, "%s = 0 everywhere", name);
    else if (w->low <= w->high)
        numeric_say(&text, "%s = %.9g everywhere", name, w->low / 2 + w->high / 2);
    else if (w->n_wide >= 2 && w->n_each == w->n_wide)
        numeric_say(&text, "a constant in %s, one a shape and draw,", name);
    else if (w->copied && w->n_copy == w->n_cases)
        numeric_say(&text, "%s = a copy of %s", name,
                    k->session->task->tensors[w->copied - 1].name);
    else
        return NULL;
    numeric_say(&text,
                " passes all %u cases: the task can't tell a kernel from one that computes "
                "nothing. This is a "
                "property of the task, not of the candidate: draw its inputs on another scale, or "
                "change the task.",
                w->n_cases);
    char *copy = numeric_alloc(k, text.at + 1);
    for (size_t i = 0; copy && i < text.at; i++)
        copy[i] = text.buf[i];
    return copy;
}
