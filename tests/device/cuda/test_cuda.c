/*
 * The device "cuda". Without a driver or GPU: it says so and nothing else is tried. With one:
 * memory, launches, events, and each fault in a process of its own, since a fault ends the context.
 */
#include "device/cuda/gpu.h"

#include "base/io.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Without a GPU ---- */

static void a_missing_gpu_is_unavailable(void **state)
{
    struct gpu g;
    (void)state;
    int32_t status = gpu_start(&g);
    if (status != RUNG_OK) {
        assert_int_equal(status, RUNG_EUNAVAILABLE);
        assert_int_equal(g.error.code, RUNG_EUNAVAILABLE);
        assert_true(strlen(g.error.message) > 10);
    }
    gpu_end(&g);
}

/* ---- With one ---- */

static void it_describes_itself(void **state)
{
    struct gpu g;
    (void)state;
    gpu_need(&g);
    assert_int_equal(g.info.flags, RUNG_DEVICE_MEASURES);
    assert_int_equal(g.info.format, RUNG_FORMAT_CUBIN);
    assert_int_equal(strncmp(g.info.arch, "sm_", 3), 0);
    assert_int_equal(strncmp(g.info.id, "GPU-", 4), 0);
    assert_int_equal(strlen(g.info.id), 40);
    assert_true(g.info.sm_count > 0 && g.info.max_threads_per_block >= 1024);
    assert_true(g.info.max_shared_bytes >= 48 << 10 && g.info.l2_bytes > 0);
    assert_true(g.info.memory_bytes > 1 << 28);
    print_message("%s, %s, %s, %u SMs, L2 %u, shared %u, %s\n", g.info.name, g.info.id, g.info.arch,
                  g.info.sm_count, g.info.l2_bytes, g.info.max_shared_bytes, g.info.driver);
    gpu_end(&g);
}

static void fills_repeat_patterns_at_any_offset(void **state)
{
    static const struct {
        uint64_t offset, bytes, n;
        int kind;
    } cases[] = {{0, 1 << 20, 4096, 0}, {3, 1000, 1, 0},        {4, 4000, 4, 0},
                 {5, 4001, 4, 0},       {256, 100000, 4096, 1}, {1, 777, 64, 0},
                 {0, 10, 4096, 0},      {128, 1 << 16, 8, 2},   {7, 1, 3, 0}};
    static unsigned char pattern[4096], got[(1 << 20) + 16];
    struct gpu g;
    (void)state;
    gpu_need(&g);
    struct rung_buffer *b = gpu_room(&g, sizeof got);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char mark = 0xee;
        for (size_t k = 0; k < sizeof pattern; k++)
            pattern[k] = cases[i].kind == 0   ? (unsigned char)(k * 7 + 1)
                         : cases[i].kind == 1 ? 0
                                              : "abcd"[k % 4];
        OK(&g, g.ops->fill(SELF(&g), &g.call, b, 0, sizeof got, &mark, 1, 1));
        OK(&g, g.ops->fill(SELF(&g), &g.call, b, cases[i].offset, cases[i].bytes, pattern,
                           cases[i].n, 1));
        OK(&g, g.ops->read(SELF(&g), &g.call, b, 0, got, sizeof got));
        for (uint64_t k = 0; k < sizeof got; k++) {
            int in = k >= cases[i].offset && k < cases[i].offset + cases[i].bytes;
            unsigned char want = in ? pattern[(k - cases[i].offset) % cases[i].n] : mark;
            if (got[k] != want)
                fail_msg("case %zu, byte %lu: %02x, not %02x", i, (unsigned long)k, got[k], want);
        }
    }
    assert_int_equal(g.ops->write(SELF(&g), &g.call, b, sizeof got, got, 1), RUNG_EINVAL);
    assert_int_equal(g.ops->read(SELF(&g), &g.call, b, UINT64_MAX, got, 2), RUNG_EINVAL);
    g.ops->free(SELF(&g), b);
    gpu_end(&g);
}

static void kernels_run_and_are_timed(void **state)
{
    enum { N = 1 << 22 };
    struct gpu g;
    struct rung_fault fault;
    struct rung_device_event *from, *to;
    (void)state;
    gpu_need(&g);
    float *host = malloc(N * sizeof *host);
    struct rung_buffer *x = gpu_room(&g, N * sizeof *host), *y = gpu_room(&g, N * sizeof *host);
    for (int i = 0; i < N; i++)
        host[i] = (float)(i % 1000);
    OK(&g, g.ops->write(SELF(&g), &g.call, x, 0, host, N * sizeof *host));
    OK(&g, g.ops->event_new(SELF(&g), &g.call, &from));
    OK(&g, g.ops->event_new(SELF(&g), &g.call, &to));
    struct {
        uint64_t x, y;
        uint32_t n;
    } args = {g.ops->address(SELF(&g), x), g.ops->address(SELF(&g), y), N};
    gpu_launch(&g, TWICE, N / 256, 256, 0, &args, &fault);
    OK(&g, g.ops->event_record(SELF(&g), &g.call, from));
    gpu_launch(&g, TWICE, N / 256, 256, 0, &args, &fault);
    OK(&g, g.ops->event_record(SELF(&g), &g.call, to));
    OK(&g, g.ops->sync(SELF(&g), &g.call, &fault));
    assert_string_equal(fault.code, "");
    double ns;
    OK(&g, g.ops->event_elapsed(SELF(&g), &g.call, from, to, &ns));
    print_message("32 MiB in %.1f us\n", ns / 1e3);
    assert_true(ns > 1000 && ns < 1e7);
    OK(&g, g.ops->read(SELF(&g), &g.call, y, 0, host, N * sizeof *host));
    for (int i = 0; i < N; i++)
        assert_true(host[i] == 2.0f * (float)(i % 1000));
    g.ops->event_free(SELF(&g), from);
    g.ops->event_free(SELF(&g), to);
    g.ops->free(SELF(&g), x);
    g.ops->free(SELF(&g), y);
    free(host);
    gpu_end(&g);
}

static void variables_are_filled_and_restored(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    struct gpu g;
    struct rung_buffer *from, *y, *c_w, *again;
    uint64_t bytes = 0;
    float got;
    (void)state;
    gpu_need(&g);
    from = gpu_room(&g, sizeof x);
    y = gpu_room(&g, 16);
    OK(&g, g.ops->write(SELF(&g), &g.call, from, 0, x, sizeof x));
    OK(&g, g.ops->reset(SELF(&g), &g.call, g.module));
    assert_int_equal(gpu_word(&g, COUNT, y), 1);
    assert_int_equal(gpu_word(&g, COUNT, y), 2);
    OK(&g, g.ops->reset(SELF(&g), &g.call, g.module));
    assert_int_equal(gpu_word(&g, COUNT, y), 1);
    OK(&g, g.ops->symbol(SELF(&g), &g.call, g.module, "c_w", &c_w, &bytes));
    assert_int_equal(bytes, 16);
    OK(&g, g.ops->copy(SELF(&g), &g.call, c_w, 4, from, 8, 8));
    uint32_t word = gpu_word(&g, READ_CONST, y);
    memcpy(&got, &word, sizeof got);
    assert_true(got == 3);
    OK(&g, g.ops->reset(SELF(&g), &g.call, g.module));
    word = gpu_word(&g, READ_CONST, y);
    memcpy(&got, &word, sizeof got);
    assert_true(got == 7);
    OK(&g, g.ops->symbol(SELF(&g), &g.call, g.module, "c_w", &again, &bytes));
    OK(&g, g.ops->copy(SELF(&g), &g.call, again, 0, from, 0, 16));
    word = gpu_word(&g, READ_CONST, y);
    memcpy(&got, &word, sizeof got);
    assert_true(got == 2);
    assert_int_equal(g.ops->copy(SELF(&g), &g.call, again, 4, from, 0, 16), RUNG_EINVAL);
    assert_int_equal(g.ops->copy(SELF(&g), &g.call, again, 0, from, UINT64_MAX, 1), RUNG_EINVAL);
    assert_int_equal(g.ops->symbol(SELF(&g), &g.call, g.module, "c_v", &again, &bytes),
                     RUNG_ENOTFOUND);
    g.ops->free(SELF(&g), from);
    g.ops->free(SELF(&g), y);
    gpu_end(&g);
}

static void clusters_and_cooperative_launches(void **state)
{
    struct gpu g;
    struct rung_fault fault;
    (void)state;
    gpu_need(&g);
    gpu_launch_with(&g, g.info.sm_count, 0, RUNG_LAUNCH_COOPERATIVE, &fault);
    assert_string_equal(fault.code, "");
    gpu_launch_with(&g, 1 << 20, 0, RUNG_LAUNCH_COOPERATIVE, &fault);
    assert_string_equal(fault.code, "launch.resources");
    support_contains(fault.message, "fit at once");
    assert_int_equal(fault.sticky, 0);
    gpu_launch_with(&g, 64, 2, 0, &fault);
    if (atoi(g.info.arch + 3) < 90) {
        assert_string_equal(fault.code, "device.unsupported");
    } else {
        assert_string_equal(fault.code, "");
        gpu_launch_with(&g, 64, 16, 0, &fault);
        assert_string_equal(fault.code, "");
        gpu_launch_with(&g, 64, 2, RUNG_LAUNCH_COOPERATIVE, &fault);
        assert_string_equal(fault.code, "");
    }
    gpu_launch_with(&g, 64, 64, 0, &fault);
    assert_true(strcmp(fault.code, "") != 0);
    print_message("a cluster of 64: %s: %s\n", fault.code, fault.message);
    assert_int_equal(fault.sticky, 0);
    gpu_end(&g);
}

static void bad_launches_leave_the_device_whole(void **state)
{
    struct gpu g;
    struct rung_fault fault;
    (void)state;
    gpu_need(&g);
    struct rung_buffer *y = gpu_room(&g, 4096), *huge;
    struct {
        uint64_t y;
        uint32_t last;
    } args = {g.ops->address(SELF(&g), y), 0};
    gpu_launch(&g, SHARED_USER, 1, 2048, 0, &args, &fault);
    assert_string_equal(fault.code, "launch.error");
    assert_int_equal(fault.sticky, 0);
    gpu_launch(&g, SHARED_USER, 1, 32, g.info.max_shared_bytes + 1024, &args, &fault);
    assert_string_equal(fault.code, "launch.resources");
    assert_int_equal(g.ops->alloc(SELF(&g), &g.call, UINT64_C(1) << 50, 256, "huge", &huge),
                     RUNG_ENOMEM);
    args.last = g.info.max_shared_bytes - 4;
    gpu_launch(&g, SHARED_USER, 1, 1, g.info.max_shared_bytes, &args, &fault);
    assert_string_equal(fault.code, "");
    OK(&g, g.ops->sync(SELF(&g), &g.call, &fault));
    assert_string_equal(fault.code, "");
    uint32_t got;
    OK(&g, g.ops->read(SELF(&g), &g.call, y, 0, &got, 4));
    assert_int_equal(got, 1234);
    struct rung_code bad = {
        .struct_size = sizeof bad, .format = RUNG_FORMAT_PTX, .bytes = "nonsense", .n_bytes = 8};
    struct rung_artifact artifact = {.struct_size = sizeof artifact, .n_codes = 1, .codes = &bad};
    struct rung_module *module;
    fault = (struct rung_fault){.struct_size = sizeof fault};
    OK(&g, g.ops->load(SELF(&g), &g.call, &artifact, &module, &fault));
    assert_string_equal(fault.code, "device.unsupported");
    bad.format = RUNG_FORMAT_CUBIN;
    fault = (struct rung_fault){.struct_size = sizeof fault};
    OK(&g, g.ops->load(SELF(&g), &g.call, &artifact, &module, &fault));
    assert_string_equal(fault.code, "device.unsupported");
    assert_null(module);
    g.ops->free(SELF(&g), y);
    gpu_end(&g);
}

/* ---- Faults: this program again, with the fault's name; it prints the code that it met. ---- */

static int fault_child(const char *which, int replayed)
{
    struct gpu g;
    struct rung_fault fault = {.struct_size = sizeof fault};
    int32_t status = gpu_start(&g);
    gpu_end(&g);
    if (status != RUNG_OK)
        return 77;
    gpu_need(&g);
    struct rung_buffer *y = gpu_room(&g, 4096);
    struct {
        uint64_t y, offset;
    } args = {g.ops->address(SELF(&g), y), 0};
    int kernel = POKE;
    if (strcmp(which, "mem.out_of_bounds") == 0)
        args.offset = UINT64_C(1) << 40;
    else if (strcmp(which, "mem.misaligned") == 0)
        args.offset = 2;
    else if (strcmp(which, "run.timeout") == 0)
        kernel = SPIN;
    else
        kernel = STOP;
    struct rung_graph *graph = NULL;
    if (replayed)
        OK(&g, g.ops->capture(SELF(&g), &g.call));
    gpu_launch(&g, kernel, 1, 1, 0, &args, &fault);
    if (replayed) {
        OK(&g, g.ops->captured(SELF(&g), &g.call, &graph, &fault));
        OK(&g, g.ops->replay(SELF(&g), &g.call, graph, &fault));
    }
    g.call.deadline_ns = rung_now_ns() + 500000000u;
    if (!fault.code[0])
        OK(&g, g.ops->sync(SELF(&g), &g.call, &fault));
    printf("%s sticky=%u: %s\n", fault.code, fault.sticky, fault.message);
    fflush(stdout);
    int right = strcmp(fault.code, which) == 0 && fault.sticky == 1;
    /* Nothing may wait for the GPU from here on. */
    struct rung_buffer *more;
    right &= g.ops->alloc(SELF(&g), &g.call, 16, 16, "more", &more) == RUNG_EUNAVAILABLE;
    g.ops->graph_free(SELF(&g), graph);
    g.ops->free(SELF(&g), y);
    gpu_end(&g);
    _exit(right ? 0 : 1);
}

static char *self_path;

static void meets_when(const char *which, const char *how)
{
    pid_t pid = fork(); /* this process has no context: every test before ended its own */
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(self_path, self_path, which, how, (char *)NULL);
        _exit(126);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void meets(const char *which)
{
    meets_when(which, "launched");
}

static void a_fault_of_a_replay_comes_with_the_sync(void **state)
{
    (void)state;
    meets_when("mem.out_of_bounds", "replayed");
    meets_when("run.timeout", "replayed");
}

static void an_illegal_address_is_out_of_bounds(void **state)
{
    (void)state;
    meets("mem.out_of_bounds");
}

static void a_misaligned_access_is_told(void **state)
{
    (void)state;
    meets("mem.misaligned");
}

static void a_kernel_without_end_meets_the_deadline(void **state)
{
    (void)state;
    meets("run.timeout");
}

static void a_trap_is_a_crash(void **state)
{
    (void)state;
    meets("run.crash");
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return fault_child(argv[1], strcmp(argv[2], "replayed") == 0);
    self_path = argv[0];
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_missing_gpu_is_unavailable),
                                       cmocka_unit_test(it_describes_itself),
                                       cmocka_unit_test(fills_repeat_patterns_at_any_offset),
                                       cmocka_unit_test(kernels_run_and_are_timed),
                                       cmocka_unit_test(variables_are_filled_and_restored),
                                       cmocka_unit_test(clusters_and_cooperative_launches),
                                       cmocka_unit_test(bad_launches_leave_the_device_whole),
                                       cmocka_unit_test(an_illegal_address_is_out_of_bounds),
                                       cmocka_unit_test(a_misaligned_access_is_told),
                                       cmocka_unit_test(a_kernel_without_end_meets_the_deadline),
                                       cmocka_unit_test(a_trap_is_a_crash),
                                       cmocka_unit_test(a_fault_of_a_replay_comes_with_the_sync)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
