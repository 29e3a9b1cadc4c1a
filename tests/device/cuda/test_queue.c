/*
 * The device "cuda": graphs, flushing, the GPU's condition, native handles, tensor maps, and what
 * each answer of the driver means. On a GPU, and over stand-ins of the driver (fake.h), new and
 * old.
 */
#include "device/cuda/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1024 };

/* ---- Graphs ---- */

struct vectors {
    struct rung_buffer *x, *y;
    struct {
        uint64_t x, y;
        uint32_t n;
    } args;
};

static struct vectors vectors_new(struct gpu *g)
{
    float host[N];
    struct vectors v = {.x = gpu_room(g, sizeof host), .y = gpu_room(g, sizeof host)};
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    OK(g, g->ops->write(SELF(g), &g->call, v.x, 0, host, sizeof host));
    v.args.x = g->ops->address(SELF(g), v.x);
    v.args.y = g->ops->address(SELF(g), v.y);
    v.args.n = N / 2;
    return v;
}

static void vectors_free(struct gpu *g, struct vectors *v)
{
    g->ops->free(SELF(g), v->x);
    g->ops->free(SELF(g), v->y);
}

/* The first half of y is twice x, the rest `pattern` over and over, but for 16 bytes copied. */
static void work(struct gpu *g, struct vectors *v, const unsigned char *pattern, uint64_t n)
{
    struct rung_fault fault;
    OK(g, g->ops->fill(SELF(g), &g->call, v->y, 0, 4 * N, pattern, n, 1));
    gpu_launch(g, TWICE, N / 2 / 64, 64, 0, &v->args, &fault);
    assert_string_equal(fault.code, "");
    OK(g, g->ops->copy(SELF(g), &g->call, v->y, 4 * N - 16, v->x, 16, 16));
}

static void read_y(struct gpu *g, struct vectors *v, unsigned char *out)
{
    struct rung_fault fault = gpu_no_fault();
    OK(g, g->ops->sync(SELF(g), &g->call, &fault));
    assert_string_equal(fault.code, "");
    OK(g, g->ops->read(SELF(g), &g->call, v->y, 0, out, 4 * N));
}

static void a_replay_does_what_the_launches_did(void **state)
{
    static const uint64_t periods[] = {1, 4, 8, 17, 4088};
    unsigned char pattern[4096], plain[4 * N], got[4 * N];
    struct gpu g;
    struct rung_fault fault = gpu_no_fault();
    (void)state;
    gpu_need(&g);
    struct vectors v = vectors_new(&g);
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        for (size_t k = 0; k < sizeof pattern; k++)
            pattern[k] = (unsigned char)(k / 3 * 37);
        work(&g, &v, pattern, periods[i]);
        read_y(&g, &v, plain);
        OK(&g, g.ops->capture(SELF(&g), &g.call));
        work(&g, &v, pattern, periods[i]);
        memset(pattern, 0xaa, sizeof pattern); /* the graph must not look at it again */
        struct rung_graph *graph = gpu_captured(&g);
        OK(&g, g.ops->fill(SELF(&g), &g.call, v.y, 0, 4 * N, "\xee", 1, 1));
        for (int k = 0; k < 2; k++) {
            OK(&g, g.ops->replay(SELF(&g), &g.call, graph, &fault));
            assert_string_equal(fault.code, "");
            read_y(&g, &v, got);
            assert_memory_equal(got, plain, sizeof plain);
        }
        g.ops->graph_free(SELF(&g), graph);
    }
    if (gpu_seen())
        assert_int_equal(gpu_seen()->graphs + gpu_seen()->execs, 0);
    vectors_free(&g, &v);
    gpu_end(&g);
}

static void recording_runs_nothing_and_takes_nothing_else(void **state)
{
    unsigned char got[4 * N], before[4 * N];
    struct gpu g;
    struct rung_fault fault = gpu_no_fault();
    struct rung_buffer *more;
    struct rung_device_event *event;
    (void)state;
    gpu_need(&g);
    struct vectors v = vectors_new(&g);
    OK(&g, g.ops->fill(SELF(&g), &g.call, v.y, 0, 4 * N, "\x11", 1, 1));
    read_y(&g, &v, before);
    OK(&g, g.ops->event_new(SELF(&g), &g.call, &event));
    OK(&g, g.ops->capture(SELF(&g), &g.call));
    work(&g, &v, (const unsigned char *)"abc", 3);
    assert_int_equal(g.ops->capture(SELF(&g), &g.call), RUNG_EMISUSE);
    assert_int_equal(g.ops->sync(SELF(&g), &g.call, &fault), RUNG_EMISUSE);
    assert_int_equal(g.ops->read(SELF(&g), &g.call, v.y, 0, got, 4), RUNG_EMISUSE);
    assert_int_equal(g.ops->write(SELF(&g), &g.call, v.y, 0, got, 4), RUNG_EMISUSE);
    assert_int_equal(g.ops->alloc(SELF(&g), &g.call, 16, 16, "b", &more), RUNG_EMISUSE);
    assert_int_equal(g.ops->event_record(SELF(&g), &g.call, event), RUNG_EMISUSE);
    assert_int_equal(g.ops->reset(SELF(&g), &g.call, g.module), RUNG_EMISUSE);
    assert_int_equal(g.ops->flush(SELF(&g), &g.call), RUNG_EMISUSE);
    struct rung_graph *graph = gpu_captured(&g); /* none of these spoilt it */
    assert_int_equal(g.ops->captured(SELF(&g), &g.call, &(struct rung_graph *){NULL}, &fault),
                     RUNG_EMISUSE);
    read_y(&g, &v, got);
    assert_memory_equal(got, before, sizeof got);
    g.ops->graph_free(SELF(&g), graph);
    g.ops->graph_free(SELF(&g), NULL);
    g.ops->event_free(SELF(&g), event);
    vectors_free(&g, &v);
    gpu_end(&g);
}

/* What a library does that waits for the stream it was given. */
static void spoil(struct gpu *g)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*query)(uint64_t stream) = NULL;
    void *found = dlsym(driver, "cuStreamQuery");
    memcpy(&query, &found, sizeof query);
    assert_int_not_equal(query(g->ops->native(SELF(g), RUNG_NATIVE_STREAM)), 0);
}

static void a_spoilt_recording_leaves_the_stream_whole(void **state)
{
    unsigned char got[4 * N];
    struct gpu g;
    struct rung_fault fault = gpu_no_fault();
    struct rung_graph *graph;
    (void)state;
    gpu_need(&g);
    struct vectors v = vectors_new(&g);
    OK(&g, g.ops->capture(SELF(&g), &g.call));
    work(&g, &v, (const unsigned char *)"a", 1);
    spoil(&g);
    OK(&g, g.ops->captured(SELF(&g), &g.call, &graph, &fault));
    assert_null(graph);
    assert_string_equal(fault.code, "device.unsupported");
    support_contains(fault.message, "CUDA_ERROR_");
    support_contains(fault.message, "can't be recorded as a graph");
    assert_int_equal(fault.sticky, 0);
    work(&g, &v, (const unsigned char *)"b", 1);
    read_y(&g, &v, got);
    assert_int_equal(got[4 * N - 17], 'b');
    /* And one that nobody ends: buffers are freed, the stream works on. */
    OK(&g, g.ops->capture(SELF(&g), &g.call));
    work(&g, &v, (const unsigned char *)"c", 1);
    vectors_free(&g, &v);
    v = vectors_new(&g);
    work(&g, &v, (const unsigned char *)"d", 1);
    read_y(&g, &v, got);
    assert_int_equal(got[4 * N - 17], 'd');
    if (gpu_seen())
        assert_int_equal(gpu_seen()->graphs + gpu_seen()->execs, 0);
    vectors_free(&g, &v);
    gpu_end(&g);
}

static void a_graph_ends_with_its_code(void **state)
{
    struct gpu g;
    struct rung_fault fault;
    uint32_t word = 0;
    (void)state;
    gpu_need(&g);
    struct rung_buffer *y = gpu_room(&g, 16);
    uint64_t at = g.ops->address(SELF(&g), y);
    OK(&g, g.ops->reset(SELF(&g), &g.call, g.module));
    OK(&g, g.ops->capture(SELF(&g), &g.call));
    gpu_launch(&g, COUNT, 1, 1, 0, &at, &fault);
    gpu_launch(&g, COUNT, 1, 1, 0, &at, &fault);
    struct rung_graph *graph = gpu_captured(&g);
    OK(&g, g.ops->reset(SELF(&g), &g.call, g.module)); /* nothing ran yet: nothing to restore */
    OK(&g, g.ops->replay(SELF(&g), &g.call, graph, &fault));
    OK(&g, g.ops->replay(SELF(&g), &g.call, graph, &fault));
    OK(&g, g.ops->read(SELF(&g), &g.call, y, 0, &word, sizeof word));
    assert_int_equal(word, 4);
    OK(&g, g.ops->reset(SELF(&g), &g.call, g.module));
    assert_int_equal(gpu_word(&g, COUNT, y), 1);
    assert_int_equal(g.ops->replay(SELF(&g), &g.call, graph, &fault), RUNG_EMISUSE);
    support_contains(g.error.message, "record it anew");
    g.ops->graph_free(SELF(&g), graph);
    OK(&g, g.ops->capture(SELF(&g), &g.call));
    gpu_launch(&g, COUNT, 1, 1, 0, &at, &fault);
    graph = gpu_captured(&g);
    g.ops->unload(SELF(&g), g.module);
    g.module = NULL;
    assert_int_equal(g.ops->replay(SELF(&g), &g.call, graph, &fault), RUNG_EMISUSE);
    g.ops->graph_free(SELF(&g), graph);
    g.ops->free(SELF(&g), y);
    gpu_end(&g);
}

/* ---- Flush, condition, handles ---- */

static void flushing_overwrites_twice_the_cache_and_cleans_it(void **state)
{
    struct gpu g;
    struct rung_fault fault = gpu_no_fault();
    (void)state;
    gpu_need(&g);
    const struct fake_seen *s = gpu_seen();
    for (int i = 0; i < 3; i++)
        OK(&g, g.ops->flush(SELF(&g), &g.call));
    OK(&g, g.ops->sync(SELF(&g), &g.call, &fault));
    assert_string_equal(fault.code, "");
    if (s) {
        uint64_t bytes = 2 * (uint64_t)g.info.l2_bytes;
        assert_int_equal(s->set_bytes, bytes);
        assert_int_equal(s->discarded[1], bytes / 128);
        assert_int_equal(s->resets, gpu_driver_has("cuCtxResetPersistingL2Cache") ? 3 : 0);
        assert_int_equal(s->limits, gpu_driver_has("cuCtxSetLimit") ? 3 : 0);
    }
    gpu_end(&g);
}

static void without_a_compiler_flushing_only_overwrites(void **state)
{
    struct gpu g;
    (void)state;
    const struct fake_seen *s = gpu_seen();
    if (!s)
        skip();
    gpu_need(&g);
    setenv("FAKE_CUDA_NO_JIT", "1", 1);
    uint64_t launches = s->launches;
    OK(&g, g.ops->flush(SELF(&g), &g.call));
    OK(&g, g.ops->flush(SELF(&g), &g.call));
    unsetenv("FAKE_CUDA_NO_JIT");
    assert_int_equal(s->set_bytes, 2 * (uint64_t)g.info.l2_bytes);
    assert_int_equal(s->launches, launches);
    gpu_end(&g);
}

static void the_condition_is_what_the_library_tells(void **state)
{
    struct gpu g;
    struct rung_device_condition c = {.struct_size = sizeof c};
    (void)state;
    gpu_need(&g);
    for (int i = 0; i < 2; i++)
        OK(&g, g.ops->condition(SELF(&g), &g.call, &c));
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    print_message("known %u, %u of %u MHz, %u MHz, %u C, %u of %u mW, %x, %u others\n", c.known,
                  c.sm_mhz, c.sm_mhz_max, c.memory_mhz, c.celsius, c.milliwatt, c.milliwatt_cap,
                  c.throttle, c.other_processes);
    assert_int_equal(c.known, nvml != NULL);
    assert_int_equal(c.struct_size, sizeof c);
    if (!nvml) {
        assert_int_equal(c.sm_mhz + c.celsius + c.milliwatt + c.throttle, 0);
    } else if (gpu_seen() && dlsym(nvml, "nvmlDeviceGetMaxClockInfo")) {
        assert_int_equal(c.sm_mhz, 1755);
        assert_int_equal(c.sm_mhz_max, 1980);
        assert_int_equal(c.memory_mhz, 2619);
        assert_int_equal(c.celsius, 41);
        assert_int_equal(c.milliwatt, 120500);
        assert_int_equal(c.milliwatt_cap, 700000);
        assert_int_equal(c.throttle, RUNG_THROTTLE_POWER | RUNG_THROTTLE_THERMAL);
        assert_int_equal(c.other_processes, 2);
    } else if (gpu_seen()) { /* an old library, which lacks much */
        assert_int_equal(c.sm_mhz, 1755);
        assert_int_equal(c.throttle, RUNG_THROTTLE_HARDWARE | RUNG_THROTTLE_SETTING);
        assert_int_equal(c.sm_mhz_max + c.celsius + c.milliwatt + c.other_processes, 0);
    }
    gpu_end(&g);
}

static uint32_t known_with(const char *mode)
{
    struct gpu g;
    struct rung_device_condition c = {.struct_size = sizeof c};
    setenv("FAKE_NVML", mode, 1);
    gpu_need(&g);
    OK(&g, g.ops->condition(SELF(&g), &g.call, &c));
    gpu_end(&g);
    unsetenv("FAKE_NVML");
    return c.known;
}

static void a_silent_library_is_no_error(void **state)
{
    (void)state;
    if (!gpu_seen() || !dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL))
        skip();
    assert_int_equal(known_with("dead"), 0);
    assert_int_equal(known_with("pci"), gpu_driver_has("cuDeviceGetPCIBusId"));
}

static void it_tells_its_hardware_and_handles(void **state)
{
    struct gpu g;
    char arch[16];
    (void)state;
    gpu_need(&g);
    snprintf(arch, sizeof arch, "sm_%u%u", g.info.compute_major, g.info.compute_minor);
    assert_string_equal(arch, g.info.arch);
    assert_true(g.info.sm_khz > 100000 && g.info.memory_bus_bits >= 64);
    assert_int_equal(g.info.ordinal, 0);
    if (gpu_seen())
        assert_int_equal(g.info.memory_khz, g.info.compute_major == 9 ? 2619000 : 0);
    assert_true(g.ops->native(SELF(&g), RUNG_NATIVE_CONTEXT) != 0);
    assert_true(g.ops->native(SELF(&g), RUNG_NATIVE_STREAM) != 0);
    assert_int_equal(g.ops->native(SELF(&g), RUNG_NATIVE_ORDINAL), 0);
    assert_int_equal(g.ops->native(SELF(&g), 99), 0);
    gpu_end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay_does_what_the_launches_did),
        cmocka_unit_test(recording_runs_nothing_and_takes_nothing_else),
        cmocka_unit_test(a_spoilt_recording_leaves_the_stream_whole),
        cmocka_unit_test(a_graph_ends_with_its_code),
        cmocka_unit_test(flushing_overwrites_twice_the_cache_and_cleans_it),
        cmocka_unit_test(without_a_compiler_flushing_only_overwrites),
        cmocka_unit_test(the_condition_is_what_the_library_tells),
        cmocka_unit_test(a_silent_library_is_no_error),
        cmocka_unit_test(it_tells_its_hardware_and_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
