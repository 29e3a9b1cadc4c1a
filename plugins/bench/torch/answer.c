#include "answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SETS = 1 << 20 };

int32_t torch_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format,
                   ...)
{
    va_list args;
    va_start(args, format);
    err->code = code;
    snprintf(err->symbol, sizeof err->symbol, "%s", symbol);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

/* ---- Requests ---- */

cJSON *torch_request(const char *op)
{
    cJSON *request = cJSON_CreateObject();
    cJSON_AddStringToObject(request, "op", op);
    return request;
}

static const char *role_name(uint32_t role)
{
    static const char *const names[] = {"", "input", "output", "inout", "weight"};
    return role < 5 ? names[role] : "";
}

static int32_t add_tensors(struct rung_call *call, const struct rung_session *session,
                           const int64_t *dims, cJSON *request)
{
    const struct rung_task *task = session->task;
    cJSON *list = cJSON_AddArrayToObject(request, "tensors");
    for (uint32_t i = 0; i < task->n_tensors; i++) {
        const struct rung_tensor_spec *spec = &task->tensors[i];
        int64_t shape[RUNG_MAX_DIMS];
        if (session->shape(session, i, dims, shape))
            return torch_fail(call->error, RUNG_EUNSUPPORTED, "torch.shape", "no shape for %s",
                              spec->name);
        cJSON *tensor = cJSON_CreateObject();
        cJSON_AddItemToArray(list, tensor);
        cJSON_AddStringToObject(tensor, "name", spec->name);
        cJSON_AddStringToObject(tensor, "role", role_name(spec->role));
        cJSON_AddStringToObject(tensor, "dtype", rung_dtype_name(spec->dtype));
        cJSON_AddStringToObject(tensor, "fill", spec->fill ? spec->fill : "normal");
        cJSON *extents = cJSON_AddArrayToObject(tensor, "shape");
        for (uint32_t d = 0; d < spec->n_dims; d++)
            cJSON_AddItemToArray(extents, cJSON_CreateNumber((double)shape[d]));
    }
    return RUNG_OK;
}

static void add_numbers(const struct rung_task *task, const int64_t *dims, cJSON *request)
{
    cJSON *sizes = cJSON_AddObjectToObject(request, "dims");
    for (uint32_t i = 0; i < task->n_dims; i++)
        cJSON_AddNumberToObject(sizes, task->dims[i].name, (double)dims[i]);
    cJSON *params = cJSON_AddArrayToObject(request, "params");
    for (uint32_t i = 0; i < task->n_params; i++) {
        const struct rung_param *p = &task->params[i];
        cJSON *param = cJSON_CreateObject();
        cJSON_AddItemToArray(params, param);
        cJSON_AddStringToObject(param, "name", p->name);
        cJSON_AddStringToObject(param, "dtype", rung_dtype_name(p->dtype));
        cJSON_AddNumberToObject(param, "value", p->dtype == RUNG_I64 ? (double)p->i64 : p->f64);
    }
}

int32_t torch_task(struct rung_call *call, const struct rung_session *session, const int64_t *dims,
                   cJSON **out)
{
    cJSON *request = torch_request("prepare");
    cJSON_AddStringToObject(request, "graph", session->task->graph);
    add_numbers(session->task, dims, request);
    int32_t status = add_tensors(call, session, dims, request);
    if (status) {
        cJSON_Delete(request);
        return status;
    }
    *out = request;
    return RUNG_OK;
}

/* ---- Answers ---- */

int torch_word(const cJSON *answer, const char *name, char *out, size_t size)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(answer, name);
    size_t n = 0;
    if (!cJSON_IsString(item))
        return 0;
    for (const char *at = item->valuestring; *at && n + 1 < size; at++)
        out[n++] = *at >= ' ' && *at <= '~' ? *at : *at == '\n' ? ' ' : '?';
    out[n] = '\0';
    return 1;
}

static int32_t status_of(const char *kind)
{
    static const struct {
        const char *kind;
        int32_t status;
    } table[] = {{"unavailable", RUNG_EUNAVAILABLE},
                 {"unsupported", RUNG_EUNSUPPORTED},
                 {"memory", RUNG_ENOMEM},
                 {"config", RUNG_ECONFIG}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(kind, table[i].kind))
            return table[i].status;
    return RUNG_EINTERNAL;
}

int32_t torch_answer(struct rung_error *err, struct rung_text line, cJSON **out)
{
    char kind[32] = "", message[900] = "";
    cJSON *answer = cJSON_ParseWithLength(line.ptr, line.len);
    const cJSON *ok = cJSON_GetObjectItemCaseSensitive(answer, "ok");
    *out = NULL;
    if (cJSON_IsTrue(ok)) {
        *out = answer;
        return RUNG_OK;
    }
    int told = cJSON_IsFalse(ok) && torch_word(answer, "kind", kind, sizeof kind) &&
               torch_word(answer, "message", message, sizeof message);
    cJSON_Delete(answer);
    if (told)
        return torch_fail(err, status_of(kind), "torch.refused", "PyTorch: %s", message);
    return torch_fail(err, RUNG_EINTERNAL, "torch.protocol",
                      "the PyTorch helper answered something that is no answer");
}

/* A whole number of the answer between two bounds, or -1. */
static int64_t count(const cJSON *answer, const char *name, int64_t least, int64_t most)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(answer, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= (double)least) ||
        !(item->valuedouble <= (double)most))
        return -1;
    return (int64_t)item->valuedouble;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return (values[n / 2] + values[(n - 1) / 2]) / 2;
}

int32_t torch_samples(const struct rung_host *host, struct rung_call *call, const cJSON *answer,
                      const struct rung_timing_recipe *recipe, struct rung_measured *out)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "samples_ns"), *item;
    const cJSON *floor = cJSON_GetObjectItemCaseSensitive(answer, "floor_ns");
    int64_t n = cJSON_GetArraySize(list), sets = count(answer, "sets", 1, MAX_SETS);
    int64_t batch = count(answer, "batch", 1, MAX_SETS), cold = count(answer, "cold", 0, 2);
    int bad = n < 1 || n > recipe->samples || sets < 1 || batch < 1 || cold < 0 ||
              !cJSON_IsNumber(floor) || !(floor->valuedouble >= 0);
    double *samples = bad ? NULL : host->alloc(host, call->arena, 2 * (uint64_t)n * 8, 8);
    uint32_t at = 0;
    if (!bad && !samples)
        return torch_fail(call->error, RUNG_ENOMEM, "torch.memory", "no room for the samples");
    for (item = bad ? NULL : list->child; item; item = item->next) {
        bad |= !cJSON_IsNumber(item) || !(item->valuedouble > 0) || !isfinite(item->valuedouble);
        samples[at++] = item->valuedouble;
    }
    if (bad)
        return torch_fail(call->error, RUNG_EINTERNAL, "torch.protocol",
                          "the PyTorch helper's times are not understood");
    memcpy(samples + n, samples, (size_t)n * sizeof *samples);
    out->n_samples = (uint32_t)n;
    out->samples_ns = samples;
    out->floor_ns = floor->valuedouble;
    out->sets = (uint32_t)sets;
    out->batch = (uint32_t)batch;
    out->cold = (uint32_t)cold;
    out->launch_bound = median(samples + n, (uint32_t)n) < 3 * out->floor_ns;
    return RUNG_OK;
}
