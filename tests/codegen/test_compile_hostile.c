/* Compiler "nvrtc" against sources that want to read files, to hang, or to eat the machine. */
#include "codegen/compile_case.h"
#include <stdio.h>
#include <stdlib.h>

static struct harness h;

static int setup(void **state)
{
    (void)state;
    compile_open(&h, "{\"time_limit\": \"2s\", \"log_limit\": \"4KiB\"}");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_close(&h);
    return 0;
}

static void files_of_the_host_stay_out(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "#include \"/etc/passwd\"\n",
        "#include </etc/passwd>\n",
        "#include <../../../../../../../../etc/passwd>\n",
        "#include \"../../../../../../../../etc/passwd\"\n",
        "#define F \"/etc/passwd\"\n#include F\n",
        "#include \"/proc/self/environ\"\n",
        "#include \"/dev/fd/0\"\n#include \"/dev/stdin\"\n",
        "#include_next </etc/passwd>\n",
        "#embed \"/etc/passwd\"\n",
        "const char data[] = {\n#embed \"/etc/passwd\"\n};\n",
        "#pragma include_alias(\"a.h\", \"/etc/passwd\")\n#include \"a.h\"\n",
        "#line 1 \"/etc/passwd\"\n#error __FILE__\nint x = ;\n",
        "#pragma GCC dependency \"/etc/passwd\"\n#include \"/etc/passwd\" \n",
        "asm(\".incbin \\\"/etc/passwd\\\"\");\n",
        "__global__ void k() { asm volatile(\".include \\\"/etc/passwd\\\"\"); }\n",
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
        struct rung_compile_result r = compile_one(&h, sources[i], NULL);
        if (strstr(r.log.ptr, "root:") || strstr(r.log.ptr, "PATH=") || strstr(r.log.ptr, "daemon"))
            fail_msg("source %zu: the log holds a file: %s", i, r.log.ptr);
        if (r.artifact)
            for (uint32_t c = 0; c < r.artifact->n_codes; c++)
                assert_null(
                    memmem(r.artifact->codes[c].bytes, r.artifact->codes[c].n_bytes, "root:", 5));
    }
    compile_alive(&h);
}

/* Whether a file can be seen at all must not show either. */
static void existence_of_files_does_not_show(void **state)
{
    (void)state;
    struct rung_compile_result r =
        compile_one(&h,
                    "#if __has_include(\"/etc/passwd\") || __has_include(</etc/hostname>)\n#error "
                    "seen\n#endif\n",
                    NULL);
    assert_string_equal(r.code, "");
    r = compile_one(&h, "#include \"/etc/passwd\"\n", NULL);
    assert_string_equal(r.code, "compile.error");
    assert_null(strstr(r.log.ptr, "Too many open files"));
    support_contains(r.log.ptr, "can be included");
}

/* Nested unrolled loops with branches: about 15 s. */
static const char unrolled[] = "__global__ void k(float *p) {\n  float a = p[0];\n"
                               "#pragma unroll\n  for (int i = 0; i < 64; i++)\n"
                               "#pragma unroll\n  for (int j = 0; j < 64; j++) {\n"
                               "    if (p[i * j + i] > a) a = a * p[i * 131 + j] + p[j]; else p[j "
                               "* 17 + i] = a; }\n  p[0] = a; }\n";

/* Constant expressions: about 30 s. */
static const char constants[] =
    "constexpr int loop(int n) { int s = 0; for (int i = 0; i < n; i++) s += i % 7; return s; }\n"
    "template <int N> struct T { static constexpr int v = loop(200000) + T<N - 1>::v; };\n"
    "template <> struct T<0> { static constexpr int v = 0; };\n"
    "__global__ void k(int *p) { p[0] = T<430>::v; }\n";

/* Macros that make a million statements: hundreds of megabytes. */
static const char statements[] =
    "#define A p[0] = p[1] * p[2] + 3;\n#define B A A A A A A A A A A\n#define C B B B B B B B B B "
    "B\n"
    "#define D C C C C C C C C C C\n#define E D D D D D D D D D D\n#define F E E E E E E E E E E\n"
    "__global__ void k(float *p) { F F F F F F F F F F }\n";

static void slow_compiles_are_stopped(void **state)
{
    (void)state;
    static const char *const sources[] = {unrolled, constants};
    for (size_t i = 0; i < 2; i++) {
        uint64_t start = rung_now_ns();
        struct rung_compile_result r = compile_one(&h, sources[i], "k");
        uint64_t ms = (rung_now_ns() - start) / 1000000;
        assert_string_equal(r.code, "compile.timeout");
        assert_in_range(ms, 2000, 2500);
        support_contains(r.log.ptr, "2000 ms");
        compile_alive(&h);
    }
}

static void huge_code_is_refused(void **state)
{
    (void)state;
    struct rung_buf source = {0};
    struct harness patient;
    compile_open(&patient, "{\"time_limit\": \"60s\", \"ptx_limit\": \"64KiB\"}");
    for (int i = 0; i < 150; i++)
        rung_buf_printf(&source,
                        "__global__ void k%d(float *p) { p[threadIdx.x * %d] = p[threadIdx.x] * "
                        "p[blockIdx.x] + %d; }\n",
                        i, i, i);
    struct rung_compile_result r = compile_one(&patient, rung_buf_text(&source), "k1");
    rung_buf_free(&source);
    assert_string_equal(r.code, "compile.too_large");
    support_contains(r.log.ptr, "Unroll less");
    compile_alive(&patient);
    harness_close(&patient);
}

static void memory_is_limited(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    struct harness small;
    compile_open(&small, "{\"memory_limit\": \"128MiB\", \"time_limit\": \"30s\"}");
    struct rung_compile_result r = compile_one(&small, statements, "k");
    assert_string_equal(r.code, "compile.too_large");
    support_contains(r.log.ptr, "128 MiB");
    compile_alive(&small);
    harness_close(&small);
}

static void long_logs_are_cut_in_the_middle(void **state)
{
    (void)state;
    struct rung_buf source = {0};
    rung_buf_puts(&source, "int first_one = oops_first;\n");
    for (int i = 0; i < 90; i++)
        rung_buf_printf(&source, "int v%d = undefined_name_%d;\n", i, i);
    struct rung_compile_result r = compile_one(&h, rung_buf_text(&source), NULL);
    rung_buf_free(&source);
    assert_string_equal(r.code, "compile.error");
    assert_in_range(r.log.len, 1024, 4200);
    support_contains(r.log.ptr, "oops_first");
    support_contains(r.log.ptr, "bytes cut here]");
}

static void crashes_of_the_compiler_are_results(void **state)
{
    (void)state;
    /* Nesting that overruns the compiler's stack, in several ways: a crash or an error, never a
     * loss. */
    static const char *const parts[] = {"(", "{", "[", "-", "f(", "a<", "*"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        struct rung_buf source = {0};
        rung_buf_puts(&source, "__global__ void k(int *p) { int x = ");
        for (int n = 0; n < 200000; n++)
            rung_buf_puts(&source, parts[i]);
        struct rung_compile_result r = compile_one(&h, rung_buf_text(&source), NULL);
        rung_buf_free(&source);
        assert_int_not_equal(r.code[0], '\0');
        assert_true(r.log.len > 0 && r.log.len < 4200);
    }
    compile_alive(&h);
}

static void odd_texts_do_no_harm(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "",
        "\n",
        "#",
        "#include",
        "#include <",
        "#include \"",
        "#include <>",
        "__global__",
        "__global__ void",
        "__global__ void (",
        "\xef\xbb\xbf__global__ void k() {}",
        "__has_include(",
        "/* include",
        "include <include>",
        "#include \"kernel.cu\"\n",
        "#include <rung_prelude.h>\nint x;\n",
        "\\\n\\\n#inc\\\nlude <math.h>\n",
    };
    static const char *const expressions[] = {
        "", "k<", "\"", "k;int x", "k\n#include \"/etc/passwd\"", "k)", "#", "k \\"};
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
        compile_one(&h, sources[i], NULL);
    for (size_t i = 0; i < sizeof(expressions) / sizeof(*expressions); i++) {
        struct rung_compile_result r =
            compile_one(&h, "__global__ void k(int *p) {}", expressions[i]);
        assert_null(strstr(r.log.ptr, "root:"));
        assert_int_not_equal(r.code[0], '\0');
    }
    compile_alive(&h);
}

int main(int argc, char **argv)
{
    HARNESS_HELPER(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_the_host_stay_out),
        cmocka_unit_test(existence_of_files_does_not_show),
        cmocka_unit_test(slow_compiles_are_stopped),
        cmocka_unit_test(huge_code_is_refused),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(long_logs_are_cut_in_the_middle),
        cmocka_unit_test(crashes_of_the_compiler_are_results),
        cmocka_unit_test(odd_texts_do_no_harm),
    };
    return cmocka_run_group_tests_name("compile_hostile", tests, setup, teardown);
}
