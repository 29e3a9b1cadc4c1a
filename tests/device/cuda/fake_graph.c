/* Stream capture and graphs of the stand-in driver: a list of what would have been done. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 8192 };

struct graph {
    int n;
    struct fake_node nodes[];
};

static struct graph *recording;
static int spoilt;

int fake_record(const struct fake_node *node)
{
    if (!recording)
        return 0;
    if (recording->n == MOST_NODES)
        abort();
    recording->nodes[recording->n++] = *node;
    return 1;
}

int fake_spoil(void)
{
    spoilt |= recording != NULL;
    return recording != NULL;
}

EXPORT result cuStreamBeginCapture_v2(void *stream, int mode)
{
    if (!stream || mode != 1 || recording)
        return 900;
    recording = calloc(1, sizeof *recording + MOST_NODES * sizeof *recording->nodes);
    spoilt = 0;
    return 0;
}

EXPORT result cuStreamEndCapture(void *stream, void **out)
{
    (void)stream;
    *out = NULL;
    if (!recording)
        return 401;
    if (spoilt)
        free(recording);
    else
        *out = recording;
    fake_seen.graphs += !spoilt;
    recording = NULL;
    return spoilt ? 901 : 0;
}

EXPORT result cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags)
{
    const struct graph *g = graph;
    size_t bytes = sizeof *g + (size_t)g->n * sizeof *g->nodes;
    if (flags)
        return 1;
    *out = malloc(bytes);
    memcpy(*out, graph, bytes);
    fake_seen.execs++;
    return 0;
}

EXPORT result cuGraphDestroy(void *graph)
{
    free(graph);
    fake_seen.graphs--;
    return 0;
}

EXPORT result cuGraphExecDestroy(void *graph)
{
    free(graph);
    fake_seen.execs--;
    return 0;
}

#if !FAKE_OLD
EXPORT result cuGraphUpload(void *graph, void *stream)
{
    return graph && stream && !recording ? 0 : 1;
}
#endif

static void *pointer(address at)
{
    return (void *)(uintptr_t)at;
}

static result run_node(const struct fake_node *n)
{
    switch (n->kind) {
    case FAKE_COPY_IN:
        memcpy(pointer(n->to), n->host, n->n);
        return 0;
    case FAKE_COPY:
        memcpy(pointer(n->to), pointer(n->from), n->n);
        return 0;
    case FAKE_SET8:
        memset(pointer(n->to), (int)n->value, n->n);
        return 0;
    case FAKE_SET32:
        for (uint64_t i = 0; i < n->n; i++)
            memcpy((char *)pointer(n->to) + 4 * i, &n->value, 4);
        return 0;
    default:
        return fake_run(n->function, n->params, n->value);
    }
}

EXPORT result cuGraphLaunch(void *graph, void *stream)
{
    const struct graph *g = graph;
    result r = stream && !recording ? 0 : 900;
    for (int i = 0; i < g->n && r == 0; i++)
        r = run_node(&g->nodes[i]);
    return r;
}
