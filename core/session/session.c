/* Opening and closing: checks the artifact, loads it, hands out the table. */
#include "session/private.h"

#include "base/die.h"
#include "base/log.h"

#include <stdlib.h>

/* A kernel's parameters must lie inside its block: it may have come from another machine. */
static int32_t check_artifact(const struct rung_artifact *artifact, struct rung_error *err)
{
    for (uint32_t i = 0; i < artifact->n_kernels; i++) {
        const struct rung_kernel *k = &artifact->kernels[i];
        if (!k->expression || !k->symbol || k->param_bytes > 32764)
            return rung_fail(err, RUNG_EINVAL, "session.artifact",
                             "kernel %u of the artifact is malformed", i);
        for (uint32_t p = 0; p < k->n_params; p++)
            if (k->params[p].offset > k->param_bytes ||
                k->params[p].size > k->param_bytes - k->params[p].offset)
                return rung_fail(err, RUNG_EINVAL, "session.artifact",
                                 "%s: parameter %u lies outside its block", k->expression, p);
    }
    for (uint32_t i = 0; i < artifact->n_symbols; i++)
        if (!artifact->symbols[i].symbol)
            return rung_fail(err, RUNG_EINVAL, "session.artifact",
                             "variable %u of the artifact is malformed", i);
    return RUNG_OK;
}

static int32_t load(struct rung_open_session *s, struct rung_call *call, struct rung_fault *fault)
{
    int32_t status;
    RUNG_INVOKE(status, s->spec.device, struct rung_device_ops, load, call, s->spec.artifact,
                &s->module, fault);
    return status;
}

int32_t rung_session_open(const struct rung_session_spec *spec, struct rung_call *call,
                          struct rung_open_session **out, struct rung_fault *fault)
{
    *out = NULL;
    *fault = (struct rung_fault){.struct_size = sizeof *fault};
    int32_t status = spec->artifact ? check_artifact(spec->artifact, call->error) : RUNG_OK;
    if (status != RUNG_OK)
        return status;
    struct rung_open_session *s = rung_xcalloc(1, sizeof *s);
    s->spec = *spec;
    s->table = (struct rung_session){.struct_size = sizeof s->table,
                                     .task = spec->task,
                                     .device = spec->info,
                                     .artifact = spec->artifact,
                                     .ctx = s};
    run_fill_table(&s->table);
    if (whole_is_possible(s))
        s->table.flags |= RUNG_SESSION_FAST_COMPARE;
    const struct rung_tensor_spec *strided = rung_task_strided(spec->task);
    if (spec->gpu && strided)
        rung_log(RUNG_LOG_DEBUG, "session", "%s has strides: the host draws and compares it",
                 strided->name);
    if (spec->artifact)
        status = load(s, call, fault);
    if (status == RUNG_OK && !fault_is(fault)) {
        *out = s;
        return RUNG_OK;
    }
    free(s);
    return status;
}

const struct rung_session *rung_session_table(const struct rung_open_session *session)
{
    return &session->table;
}

void rung_session_close(struct rung_open_session *session)
{
    if (!session)
        return;
    while (session->runs)
        session_end(&session->table, &session->runs->pub);
    memory_free(session, session->kept);
    for (int i = 0; i < 3; i++)
        device_event_free(session, session->events[i]);
    const struct rung_instance *device = session->spec.device;
    if (session->module)
        ((const struct rung_device_ops *)device->ops)->unload(device->self, session->module);
    free(session);
}
