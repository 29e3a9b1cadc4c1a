#include "parallel.h"

#include <pthread.h>
#include <sched.h>

enum { MAX_THREADS = 32, STANDARD = 16 };

struct part {
    ops_part f;
    void *ctx;
    uint64_t first, end;
    pthread_t thread;
    int started;
};

static void *run_part(void *arg)
{
    struct part *p = arg;
    p->f(p->ctx, p->first, p->end);
    return NULL;
}

void ops_parallel(uint32_t threads, uint64_t n, uint64_t grain, ops_part f, void *ctx)
{
    struct part parts[MAX_THREADS];
    uint64_t count = grain ? n / grain : n;
    count = count < threads ? count : threads;
    count = count > MAX_THREADS ? MAX_THREADS : count < 1 ? 1 : count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t each = n / count, rest = n % count;
        parts[i] = (struct part){.f = f, .ctx = ctx};
        parts[i].first = i * each + (i < rest ? i : rest);
        parts[i].end = parts[i].first + each + (i < rest);
        if (i > 0)
            parts[i].started = !pthread_create(&parts[i].thread, NULL, run_part, &parts[i]);
    }
    for (uint64_t i = 0; i < count; i++)
        if (!parts[i].started)
            run_part(&parts[i]);
    for (uint64_t i = 0; i < count; i++)
        if (parts[i].started)
            pthread_join(parts[i].thread, NULL);
}

uint32_t ops_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return (uint32_t)(n < 1 ? 1 : n > STANDARD ? STANDARD : n);
}
