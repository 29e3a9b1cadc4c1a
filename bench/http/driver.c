/*
 * Many event streams at once through core/http, each on a thread of its own as the engine's calls
 * are.   driver PORT STREAMS TOKENS PER_SECOND
 * Prints what came, how late, and what it cost this process; ends with 1 when a stream failed, a
 * token is missing, or a limit at the end of this file is passed.
 */
#include "base/arena.h"
#include "base/io.h"
#include "base/status.h"
#include "http/http.h"
#include "plugin/instance.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { STACK_BYTES = 256 * 1024, BUCKET_NS = 100000, N_BUCKETS = 20000, MAX_STREAMS = 4096 };

struct histogram {
    atomic_uint counts[N_BUCKETS]; /* of BUCKET_NS each; the last holds all that is longer */
    atomic_uint total;
};

static struct histogram late, from_server, returns;
static atomic_uint failed;
static char url[128];

static void add(struct histogram *h, uint64_t ns)
{
    uint64_t bucket = ns / BUCKET_NS;
    h->counts[bucket < N_BUCKETS ? bucket : N_BUCKETS - 1]++;
    h->total++;
}

/* Milliseconds that this share of all did not pass. */
static double quantile(const struct histogram *h, double share)
{
    double wanted = share * h->total, seen = 0;
    for (int i = 0; i < N_BUCKETS; i++)
        if ((seen += h->counts[i]) >= wanted)
            return (i + 1) * (BUCKET_NS / 1e6);
    return 0;
}

/* ---- One stream ---- */

struct stream {
    uint64_t last_sent_ns;
};

static uint64_t number_after(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static int32_t take_event(void *ctx, struct rung_text name, struct rung_text data)
{
    struct stream *s = ctx;
    uint64_t now = rung_now_ns();
    (void)name;
    s->last_sent_ns = number_after(data.ptr, "\"sent_ns\":");
    add(&late, now - number_after(data.ptr, "\"due_ns\":"));
    add(&from_server, now - s->last_sent_ns);
    return 0;
}

static void ignore(const struct rung_host *host, uint32_t level, const char *message)
{
    (void)host, (void)level, (void)message;
}

static void *run_stream(void *cancel)
{
    const struct rung_host host = {.struct_size = sizeof host, .log = ignore};
    struct rung_error err = rung_error_init();
    struct rung_call call = {
        .struct_size = sizeof call, .arena = rung_arena_new(), .cancel = cancel, .error = &err};
    struct stream s = {0};
    struct rung_http_request request = {.struct_size = sizeof request,
                                        .flags = RUNG_HTTP_EVENTS_ONLY,
                                        .url = url,
                                        .body = {"{\"stream\":true}", 15},
                                        .on_event = take_event,
                                        .ctx = &s};
    struct rung_http_response reply = {.struct_size = sizeof reply};
    if (rung_http_table.perform(&host, &call, &request, &reply) != RUNG_OK || reply.status != 200) {
        fprintf(stderr, "%s\n", err.message);
        failed++;
    }
    add(&returns, rung_now_ns() - s.last_sent_ns);
    rung_arena_free(call.arena);
    return NULL;
}

static void run_streams(unsigned n)
{
    static pthread_t threads[MAX_STREAMS];
    pthread_attr_t attributes;
    struct rung_cancel *cancel = rung_cancel_new();
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&threads[i], &attributes, run_stream, cancel) != 0) {
            perror("pthread_create");
            exit(1);
        }
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&attributes);
    rung_cancel_free(cancel);
}

/* ---- The report ---- */

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static void show(const char *what, const struct histogram *h)
{
    printf("%-38s median %6.1f ms, 99 %% %6.1f ms, most %6.1f ms\n", what, quantile(h, 0.5),
           quantile(h, 0.99), quantile(h, 1));
}

int main(int argc, char **argv)
{
    const double most_cpu = 0.6, most_mb = 150, most_return_ms = 5;
    struct rusage use;
    if (argc != 5)
        return 2;
    unsigned n = (unsigned)strtoul(argv[2], NULL, 10), tokens = (unsigned)atol(argv[3]);
    snprintf(url, sizeof url, "http://127.0.0.1:%s/stream/%s/%s", argv[1], argv[3], argv[4]);
    signal(SIGPIPE, SIG_IGN);
    uint64_t begin = rung_now_ns();
    run_streams(n > MAX_STREAMS ? MAX_STREAMS : n);
    double wall = (double)(rung_now_ns() - begin) * 1e-9;
    getrusage(RUSAGE_SELF, &use);
    double cpu = (seconds(use.ru_utime) + seconds(use.ru_stime)) / wall;
    double mb = (double)use.ru_maxrss * 1024 / 1e6;
    printf("%u streams of %u tokens, %s a second each: %.1f s\n", n, tokens, argv[4], wall);
    printf("tokens delivered                       %u of %u, %.0f a second\n", late.total,
           n * tokens, late.total / wall);
    show("token: due to callback", &late);
    show("token: sent to callback", &from_server);
    show("reply: last byte to perform's return", &returns);
    printf("CPU of this process                    %.1f %% of one core (%.2f s user, %.2f s "
           "system)\n",
           cpu * 100, seconds(use.ru_utime), seconds(use.ru_stime));
    printf("peak memory of this process            %.1f MB\n", mb);
    bool good = !failed && late.total == n * tokens && cpu < most_cpu && mb < most_mb &&
                quantile(&returns, 0.99) < most_return_ms;
    printf("%s: limits are %.0f %% of a core, %.0f MB, %.0f ms to the return (99 %%)\n",
           good ? "within" : "NOT within", most_cpu * 100, most_mb, most_return_ms);
    return good ? 0 : 1;
}
