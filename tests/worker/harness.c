#include "worker/harness.h"

#include "base/json.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const harness_main = WORKER_MAIN;
const char *const harness_plugins = WORKER_PLUGINS;

static const char task_text[] =
    "{ \"name\": \"copy\", \"dims\": { \"rows\": 8 },"
    "  \"tensors\": [ { \"name\": \"x\", \"role\": \"input\", \"dtype\": \"f32\", \"shape\": "
    "\"rows\" },"
    "                 { \"name\": \"y\", \"role\": \"output\", \"dtype\": \"f32\", \"shape\": "
    "\"rows\" } ],"
    "  \"reference\": { \"plugin\": \"zero\", \"graph\": \"%s\" },"
    "  \"bench\": { \"shapes\": [ { \"rows\": 8, \"weight\": 3.0 }, { \"rows\": 16 } ] } }";

static const struct rung_node *node_of(struct rung_arena *arena, const char *text)
{
    cJSON *json = rung_json_parse(text, strlen(text));
    assert_non_null(json);
    const struct rung_node *node = rung_node_from_json(arena, json, NULL, "test");
    cJSON_Delete(json);
    return node;
}

static void make_task(struct harness *h, const char *graph)
{
    struct rung_diags diags = {0};
    h->task_node = node_of(h->arena, rung_arena_printf(h->arena, task_text, graph));
    h->task = rung_task_read(h->arena, h->task_node, &diags);
    if (!h->task)
        fail_msg("%s", rung_buf_text(&diags.text));
    rung_diags_free(&diags);
}

static void make_pipeline(struct harness *h)
{
    static const char *const on_cuda[] = {"cuda", NULL};
    h->devices[0] = (struct rung_stage){.name = "absent", .plugin = "absent"};
    h->devices[1] = (struct rung_stage){.name = "null", .plugin = "null"};
    h->timers[0] = (struct rung_stage){.name = "events", .plugin = "events"};
    h->timers[1] = (struct rung_stage){.name = "fake", .plugin = "fake"};
    h->rungs[0] = (struct rung_stage){
        .name = "first", .plugin = "marker", .settings = node_of(h->arena, "{\"word\":\"none\"}")};
    h->rungs[1] = (struct rung_stage){.name = "marker", .plugin = "marker"};
    h->rungs[2] =
        (struct rung_stage){.name = "elsewhere", .plugin = "marker", .on_devices = on_cuda};
    h->workers[0] = (struct rung_worker_spec){.rung = harness_main, .device = "auto", .count = 1};
    h->dirs[0] = harness_plugins;
    h->pipeline =
        (struct rung_pipeline){.compiler = {.name = "fake", .plugin = "fake"},
                               .devices = h->devices,
                               .n_devices = 2,
                               .timers = h->timers,
                               .n_timers = 2,
                               .rungs = h->rungs,
                               .n_rungs = 3,
                               .workers = h->workers,
                               .n_workers = 1,
                               .limits = {.start_s = 20, .compile_s = 1, .check_s = 1, .time_s = 1},
                               .timing = RUNG_TIMING_DEFAULTS,
                               .plugin_path = h->dirs};
}

/* A sanitizer would turn the crashes that we want to see into exits of its own. */
static void leave_crashes_alone(const char *variable)
{
    char text[1024];
    const char *now = getenv(variable);
    snprintf(text, sizeof text, "%s%shandle_segv=0:handle_sigbus=0:handle_abort=0", now ? now : "",
             now ? ":" : "");
    setenv(variable, text, 1);
}

struct harness *harness_with_graph(const char *graph)
{
    leave_crashes_alone("ASAN_OPTIONS");
    leave_crashes_alone("TSAN_OPTIONS");
    struct harness *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->arena = rung_arena_new();
    h->registry = rung_registry_new();
    rung_registry_add_dir(h->registry, harness_plugins);
    make_task(h, graph);
    make_pipeline(h);
    return h;
}

struct harness *harness_new(void)
{
    return harness_with_graph("y = x");
}

struct harness *harness_with_clock(void)
{
    struct harness *h = harness_new();
    h->workers[0].device = "clock";
    h->timers[0] = (struct rung_stage){.name = "clock", .plugin = "clock"};
    h->pipeline.baselines = h->baselines;
    return h;
}

void harness_add_baseline(struct harness *h, const char *name, const char *settings)
{
    h->baselines[h->pipeline.n_baselines++] = (struct rung_stage){
        .name = name, .plugin = "fake", .settings = node_of(h->arena, settings)};
}

static void on_store(void *ctx, const char *sha256, const void *bytes, uint64_t n)
{
    struct harness *h = ctx;
    if (n > 8 && n < sizeof h->last_json && memcmp(bytes, "{\"task\"", 7) == 0) {
        memcpy(h->last_json, bytes, n);
        h->last_json[n] = 0;
    }
    atomic_fetch_add(&h->stored, strlen(sha256) == 64);
    atomic_fetch_add(&h->stored_bytes, (unsigned)n);
}

/* Only the pool's thread calls it, one call after the other. */
static void on_progress(void *ctx, const char *label, const char *text)
{
    struct harness *h = ctx;
    size_t n = strlen(h->progress);
    (void)label;
    snprintf(h->progress + n, sizeof h->progress - n, "%s|", text);
    if (strcmp(text, "marker 2/3") == 0)
        atomic_fetch_add(&h->marked, 1);
}

void harness_start(struct harness *h)
{
    struct rung_error err = rung_error_init();
    const struct rung_pool_spec spec = {.registry = h->registry,
                                        .pipeline = &h->pipeline,
                                        .task = h->task,
                                        .task_node = h->task_node,
                                        .baselines = h->wishes,
                                        .data_dir = "/",
                                        .store = on_store,
                                        .progress = on_progress,
                                        .ctx = h};
    if (rung_pool_new(&spec, &h->pool, &err) != RUNG_OK)
        fail_msg("%s", err.message);
}

void harness_free(struct harness *h)
{
    rung_pool_free(h->pool);
    rung_registry_free(h->registry);
    rung_arena_free(h->arena);
    free(h);
}

const struct rung_bundle *harness_bundle(struct rung_arena *arena, const char *markers)
{
    struct rung_buf text = {0};
    const char *kernel = strstr(markers, "kernel-lost") ? "lost" : "k";
    rung_buf_puts(&text, "//@ tune T = 32, 64\n");
    rung_buf_printf(&text, "//@ launch %s grid=(1) block=(T) args=(x, y)\n", kernel);
    for (const char *word = markers; *word;) {
        size_t n = strcspn(word, ",");
        rung_buf_printf(&text, "// marker: %.*s\n", (int)n, word);
        word += n + (word[n] == ',');
    }
    struct rung_file *file = RUNG_ARENA_NEW(arena, struct rung_file, 1);
    struct rung_bundle *bundle = RUNG_ARENA_NEW(arena, struct rung_bundle, 1);
    const char *copy = rung_arena_strdup(arena, text.ptr);
    *file =
        (struct rung_file){.struct_size = sizeof *file, .path = "k.cu", .text = rung_text_of(copy)};
    *bundle = (struct rung_bundle){
        .struct_size = sizeof *bundle, .n_files = 1, .language = "cuda", .files = file};
    rung_buf_free(&text);
    return bundle;
}

struct rung_outcome harness_run(struct harness *h, const struct rung_job *job)
{
    struct rung_error err = rung_error_init();
    struct rung_outcome outcome;
    if (rung_pool_run(h->pool, job, h->arena, &outcome, &err) != RUNG_OK)
        fail_msg("%s: %s", job->label, err.message);
    return outcome;
}

struct rung_outcome harness_judge(struct harness *h, const char *markers)
{
    const struct rung_job job = {.label = "candidate 1",
                                 .bundle = harness_bundle(h->arena, markers),
                                 .stages = RUNG_STAGE_COMPILE | RUNG_STAGE_CHECK | RUNG_STAGE_TIME};
    return harness_run(h, &job);
}

void harness_expect(const struct rung_outcome *outcome, uint32_t verdict, const char *code)
{
    if (outcome->verdict != verdict || strcmp(outcome->code, code) != 0)
        fail_msg("verdict %u, code \"%s\" instead of %u, \"%s\": %s", outcome->verdict,
                 outcome->code, verdict, code, outcome->message);
}

const cJSON *harness_rung(const struct rung_outcome *outcome, int index)
{
    const cJSON *entry = cJSON_GetArrayItem(rung_json_get(outcome->report, "rungs"), index);
    assert_non_null(entry);
    return entry;
}

/* ---- Processes ---- */

/* Third and fourth field of /proc/PID/stat; false when there is no such process. */
static bool process_state(pid_t pid, char *state, pid_t *parent)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    char *end = strrchr(text, ')');
    int ppid = 0;
    bool read = end && sscanf(end + 1, " %c %d", state, &ppid) == 2;
    *parent = ppid;
    return read;
}

size_t harness_children(pid_t pid, pid_t *out, size_t max)
{
    DIR *proc = opendir("/proc");
    size_t n = 0;
    assert_non_null(proc);
    for (struct dirent *entry; (entry = readdir(proc));) {
        pid_t parent, child = atoi(entry->d_name);
        char state;
        if (child > 0 && process_state(child, &state, &parent) && parent == pid && n < max)
            out[n++] = child;
    }
    closedir(proc);
    return n;
}

size_t harness_descriptors(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    return support_count(path);
}

double harness_now(void)
{
    return (double)rung_now_ns() / 1e9;
}

bool harness_gone(pid_t pid, double seconds)
{
    static const struct timespec pause = {0, 2000000};
    double until = harness_now() + seconds;
    pid_t parent;
    char state;
    while (process_state(pid, &state, &parent) && state != 'Z') {
        if (harness_now() > until)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}
