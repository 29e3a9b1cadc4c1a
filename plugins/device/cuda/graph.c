/*
 * Graphs: what is queued between capture and captured is recorded by the driver's stream capture,
 * then replayed whole. A graph holds the addresses of its kernels' code, so it dies with the
 * modules that it launches.
 */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>

struct rung_graph {
    struct rung_graph *next;
    cu_graph_exec exec;
    struct rung_module **modules; /* each once */
    uint32_t n_modules, room;
    int stale; /* the code of a kernel is gone */
};

static int32_t fail(struct rung_call *call, int32_t code, const char *symbol, const char *message)
{
    call->error->code = code;
    snprintf(call->error->symbol, sizeof call->error->symbol, "%s", symbol);
    snprintf(call->error->message, sizeof call->error->message, "%s", message);
    return code;
}

/* Takes the graph out of the list and frees it; its exec is freed already. */
static void drop(struct cuda *self, struct rung_graph *g)
{
    struct rung_graph **at = &self->graphs;
    while (*at && *at != g)
        at = &(*at)->next;
    if (*at)
        *at = g->next;
    free(g->modules);
    free(g);
}

static int uses(const struct rung_graph *g, const struct rung_module *module)
{
    for (uint32_t i = 0; i < g->n_modules; i++)
        if (g->modules[i] == module)
            return 1;
    return 0;
}

int cuda_graph_uses(struct cuda *self, struct rung_module *module)
{
    struct rung_graph *g = self->recording;
    if (uses(g, module))
        return 1;
    if (g->n_modules == g->room) {
        uint32_t room = g->room ? 2 * g->room : 4;
        void *grown = realloc(g->modules, room * sizeof(struct rung_module *));
        if (!grown)
            return 0;
        g->modules = grown;
        g->room = room;
    }
    g->modules[g->n_modules++] = module;
    return 1;
}

void cuda_graph_forget(struct cuda *self, const struct rung_module *module)
{
    for (struct rung_graph *g = self->graphs; g; g = g->next)
        if (uses(g, module)) {
            g->stale = 1;
            g->n_modules = 0; /* the pointers lead nowhere from here on */
        }
}

void cuda_graph_abandon(struct cuda *self)
{
    cu_graph made = NULL;
    if (!self->recording)
        return;
    if (!self->dead && self->driver.context_set(self->context) == CU_OK &&
        self->driver.capture_end(self->stream, &made) == CU_OK && made)
        self->driver.graph_free(made);
    drop(self, self->recording);
    self->recording = NULL;
}

int32_t cuda_capture(void *ptr, struct rung_call *call)
{
    struct cuda *self = ptr;
    int32_t status = cuda_enter(self, call);
    if (status != RUNG_OK)
        return status;
    struct rung_graph *g = calloc(1, sizeof *g);
    if (!g)
        return fail(call, RUNG_ENOMEM, "cuda.host_memory", "no host memory");
    cu_result result = self->driver.capture_begin(self->stream, CU_CAPTURE_THREAD_LOCAL);
    if (result != CU_OK) {
        free(g);
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "cuStreamBeginCapture",
                         result);
    }
    g->next = self->graphs;
    self->graphs = self->recording = g;
    return RUNG_OK;
}

/* Ends the recording in any case: the stream runs what is queued again. */
static cu_result finish(struct cuda *self, struct rung_graph *g)
{
    cu_graph made = NULL;
    cu_result result = self->driver.capture_end(self->stream, &made);
    if (result == CU_OK)
        result = self->driver.graph_instantiate(&g->exec, made, 0);
    if (made)
        self->driver.graph_free(made);
    /* Else the first replay would pay for it. */
    if (result == CU_OK && self->driver.graph_upload)
        result = self->driver.graph_upload(g->exec, self->stream);
    return result;
}

int32_t cuda_captured(void *ptr, struct rung_call *call, struct rung_graph **out,
                      struct rung_fault *fault)
{
    struct cuda *self = ptr;
    struct rung_graph *g = self->recording;
    *out = NULL;
    int32_t status = cuda_enter_queue(self, call);
    if (status != RUNG_OK)
        return status;
    if (!g)
        return fail(call, RUNG_EMISUSE, "cuda.recording", "no graph is being recorded");
    self->recording = NULL;
    cu_result result = finish(self, g);
    cuda_fault(self, result, "recording a graph", fault);
    if (result == CU_OK) {
        *out = g;
    } else {
        if (g->exec && !self->dead)
            self->driver.graph_exec_free(g->exec);
        drop(self, g);
    }
    return RUNG_OK;
}

int32_t cuda_replay(void *ptr, struct rung_call *call, struct rung_graph *g,
                    struct rung_fault *fault)
{
    struct cuda *self = ptr;
    int32_t status = cuda_enter(self, call);
    if (status != RUNG_OK)
        return status;
    if (g->stale)
        return fail(call, RUNG_EMISUSE, "cuda.stale_graph",
                    "the graph launches code that was unloaded or restored since: record it anew");
    for (uint32_t i = 0; i < g->n_modules; i++)
        g->modules[i]->launched = 1;
    cuda_fault(self, self->driver.graph_launch(g->exec, self->stream), "launching a graph", fault);
    return RUNG_OK;
}

void cuda_graph_free(void *ptr, struct rung_graph *g)
{
    struct cuda *self = ptr;
    if (!g)
        return;
    if (!self->dead && self->driver.context_set(self->context) == CU_OK)
        self->driver.graph_exec_free(g->exec);
    drop(self, g);
}
