/*
 * Texts and numbers of a verdict. Texts are for a model that will repair its kernel: what, where,
 * how far, at which shape and inputs, and what the pattern suggests.
 */
#include "numeric.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int32_t numeric_out_of_memory(const struct numeric_check *k)
{
    k->call->error->code = RUNG_ENOMEM;
    snprintf(k->call->error->message, sizeof k->call->error->message, "numeric: out of memory");
    return RUNG_ENOMEM;
}

void *numeric_alloc(const struct numeric_check *k, uint64_t size)
{
    void *block = k->self->host->alloc(k->self->host, k->call->arena, size ? size : 1, 8);
    if (!block)
        numeric_out_of_memory(k);
    return block;
}

void numeric_say(struct numeric_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text->buf + text->at, sizeof text->buf - text->at, format, args);
    va_end(args);
    if (n > 0)
        text->at += (size_t)n;
    if (text->at >= sizeof text->buf)
        text->at = sizeof text->buf - 1;
}

void numeric_say_where(const struct numeric_check *k, const struct numeric_case *c,
                       struct numeric_text *text)
{
    const struct rung_task *task = k->session->task;
    numeric_say(text, "at");
    for (uint32_t i = 0; i < task->n_dims && i < 12; i++)
        if (!task->dims[i].derived)
            numeric_say(text, " %s=%lld", task->dims[i].name, (long long)c->dims[i]);
    if (c->fill)
        numeric_say(text, " with fill %s", c->fill);
    if (c->says)
        numeric_say(text, "%s", c->says);
    uint32_t in_a_row = c->repeats > 1 ? c->repeats : c->in_a_row;
    if (in_a_row == 2)
        numeric_say(text, ", the second launch in a row");
    else if (in_a_row > 2)
        numeric_say(text, ", launch %u in a row", in_a_row);
}

/* "[3,17]" */
static void say_element(const struct rung_tensor_view *view, uint64_t at, struct numeric_text *text)
{
    uint64_t index[RUNG_MAX_DIMS] = {0};
    for (uint32_t d = view->n_dims; d-- > 0;) {
        uint64_t extent = view->dims[d] > 0 ? (uint64_t)view->dims[d] : 1;
        index[d] = at % extent;
        at /= extent;
    }
    numeric_say(text, "[");
    for (uint32_t d = 0; d < view->n_dims; d++)
        numeric_say(text, "%s%llu", d ? "," : "", (unsigned long long)index[d]);
    numeric_say(text, "]");
}

/* NaN has no sign worth telling. */
static void say_number(struct numeric_text *text, const char *before, double value)
{
    if (isnan(value))
        numeric_say(text, "%sNaN", before);
    else
        numeric_say(text, "%s%.9g", before, value);
}

void numeric_say_wrong(const struct numeric_check *k, const struct numeric_case *c,
                       const struct numeric_output *o, struct numeric_text *text)
{
    const struct rung_task *task = k->session->task;
    const struct rung_comparison *cmp = &o->c;
    numeric_say_where(k, c, text);
    numeric_say(text, ": %s", task->tensors[cmp->tensor].name);
    if (cmp->n_unwritten) {
        numeric_say(text, " has %llu of %llu %selements that were never written, the first at ",
                    (unsigned long long)cmp->n_unwritten, (unsigned long long)cmp->n,
                    o->at ? "compared " : "");
        say_element(&o->got, cmp->first_bad, text);
    } else if (cmp->n_bad) {
        say_element(&o->got, cmp->first_bad, text);
        say_number(text, " = ", cmp->first_got);
        say_number(text, ", expected ", cmp->first_want);
        numeric_say(text, " +- %.2g; %llu of %llu %selements out", cmp->first_bound,
                    (unsigned long long)cmp->n_bad, (unsigned long long)cmp->n,
                    o->at ? "compared " : "");
    }
    if (cmp->n_nan)
        numeric_say(text, ", %llu of them NaN", (unsigned long long)cmp->n_nan);
    if (cmp->n_inf)
        numeric_say(text, ", %llu of them infinite", (unsigned long long)cmp->n_inf);
    if (cmp->n_missing)
        numeric_say(text, ", %llu where the reference has NaN or inf",
                    (unsigned long long)cmp->n_missing);
    if (isfinite(cmp->worst) && cmp->n_bad)
        numeric_say(text, "; the largest error is %.3g times what honest arithmetic explains",
                    cmp->worst);
    numeric_say(text, ".");
    numeric_hint(o, text);
}

/* JSON has no infinities: what is not finite is left out. */
static void set(const struct numeric_check *k, struct rung_map *map, const char *key, double value)
{
    if (isfinite(value))
        k->self->host->map_set_float(map, key, value);
}

struct rung_map *numeric_metrics(const struct numeric_check *k, const struct numeric_case *c,
                                 const struct rung_comparison *cmp)
{
    const struct rung_host *host = k->self->host;
    struct rung_map *map = host->map_new(host, k->call->arena);
    struct numeric_text where = {.at = 0};
    if (!map)
        return NULL;
    numeric_say_where(k, c, &where);
    host->map_set_int(map, "cases", k->n_run);
    host->map_set_string(map, "tensor", k->session->task->tensors[cmp->tensor].name);
    host->map_set_string(map, "case", where.buf);
    host->map_set_int(map, "elements", (int64_t)cmp->n);
    host->map_set_int(map, "n_bad", (int64_t)cmp->n_bad);
    set(k, map, "share", k->share);
    set(k, map, "max_abs", cmp->max_abs);
    set(k, map, "max_rel", cmp->max_rel);
    set(k, map, "rmse", cmp->rmse);
    set(k, map, "psnr", cmp->psnr);
    set(k, map, "cosine", cmp->cosine);
    set(k, map, "fraction_out", cmp->fraction_out);
    set(k, map, "worst", cmp->worst);
    set(k, map, "worst_half", cmp->worst_half);
    if (cmp->n_bad) {
        host->map_set_int(map, "first_bad", (int64_t)cmp->first_bad);
        set(k, map, "first_got", cmp->first_got);
        set(k, map, "first_want", cmp->first_want);
        set(k, map, "first_bound", cmp->first_bound);
    }
    return map;
}

int32_t numeric_verdict(struct numeric_check *k, uint32_t status, const char *code,
                        const char *detail, const struct rung_map *metrics)
{
    size_t n = strlen(detail);
    char *copy = numeric_alloc(k, n + 1);
    if (!copy)
        return RUNG_ENOMEM;
    memcpy(copy, detail, n);
    k->out->struct_size = sizeof *k->out;
    k->out->status = status;
    snprintf(k->out->code, sizeof k->out->code, "%s", code);
    k->out->detail = (struct rung_text){copy, n};
    k->out->metrics = metrics;
    return RUNG_OK;
}
