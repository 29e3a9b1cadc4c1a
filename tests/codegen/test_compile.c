/* Compiler "nvrtc": what comes back for good sources, wrong sources and wrong kernel names. */
#include "codegen/compile_case.h"
#include <stdio.h>

static struct harness h;

static const char softmax[] =
    "template <int TPB> __global__ void rows(const float *x, float *y, int cols, double scale)\n"
    "{\n"
    "    __shared__ float part[TPB];\n"
    "    const float *row = x + (size_t)blockIdx.x * cols;\n"
    "    float top = -INFINITY;\n"
    "    for (int i = threadIdx.x; i < cols; i += TPB) top = fmaxf(top, row[i] * (float)scale);\n"
    "    part[threadIdx.x] = top; __syncthreads();\n"
    "    y[blockIdx.x * TPB + threadIdx.x] = part[TPB - 1 - threadIdx.x];\n"
    "}\n";

static int setup(void **state)
{
    (void)state;
    compile_open(&h, "{}");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_close(&h);
    return 0;
}

static void expect_param(const struct rung_kernel *k, uint32_t i, uint32_t type, uint32_t offset,
                         uint32_t size)
{
    assert_true(i < k->n_params);
    assert_int_equal(k->params[i].type, type);
    assert_int_equal(k->params[i].offset, offset);
    assert_int_equal(k->params[i].size, size);
}

static void ptx_with_its_kernels(void **state)
{
    (void)state;
    struct rung_compile_result r = compile_one(&h, softmax, "rows<256>");
    assert_string_equal(r.code, "");
    const struct rung_artifact *a = r.artifact;
    assert_int_equal(a->n_codes, 1);
    assert_int_equal(a->codes[0].format, RUNG_FORMAT_PTX);
    assert_string_equal(a->codes[0].arch, "compute_90");
    assert_int_equal(strlen(a->codes[0].bytes), a->codes[0].n_bytes);
    support_contains(a->codes[0].bytes, ".loc");
    assert_int_equal(strncmp(a->compiler, "nvrtc ", 6), 0);
    assert_true(r.compile_ns > 1000000);
    const struct rung_kernel *k = &a->kernels[0];
    assert_string_equal(k->expression, "rows<256>");
    support_contains(a->codes[0].bytes, k->symbol);
    assert_int_equal(k->n_params, 4);
    expect_param(k, 0, RUNG_PARAM_INT, 0, 8);
    expect_param(k, 1, RUNG_PARAM_INT, 8, 8);
    expect_param(k, 2, RUNG_PARAM_INT, 16, 4);
    expect_param(k, 3, RUNG_PARAM_FLOAT, 24, 8);
    assert_int_equal(k->param_bytes, 32);
}

static void both_forms_of_one_compile(void **state)
{
    (void)state;
    struct rung_file file = {
        .struct_size = sizeof(file), .path = "kernel.cu", .text = {softmax, strlen(softmax)}};
    const char *expressions[] = {"rows<256>", "rows<128>", "rows<256>"};
    struct rung_compile_result r =
        compile_files(&h, &file, 1, expressions, 3, "compute_90", RUNG_FORMAT_PTX, 1);
    assert_string_equal(r.code, "");
    assert_int_equal(r.artifact->n_codes, 2);
    assert_int_equal(r.artifact->codes[0].format, RUNG_FORMAT_PTX);
    assert_int_equal(r.artifact->codes[1].format, RUNG_FORMAT_CUBIN);
    assert_string_equal(r.artifact->codes[1].arch, "sm_90");
    assert_memory_equal(r.artifact->codes[1].bytes, "\177ELF", 4);
    assert_int_equal(r.artifact->n_kernels, 3);
    for (int i = 0; i < 3; i++)
        assert_in_range(r.artifact->kernels[i].registers, 4, 255);
    assert_int_equal(r.artifact->kernels[0].static_shared, 1024);
    assert_int_equal(r.artifact->kernels[1].static_shared, 512);
    assert_string_equal(r.artifact->kernels[0].symbol, r.artifact->kernels[2].symbol);
    assert_string_equal(r.log.ptr, ""); /* what ptxas reports is no warning */
    r = compile_files(&h, &file, 1, expressions, 1, "sm_80", RUNG_FORMAT_CUBIN, 0);
    assert_string_equal(r.code, "");
    assert_int_equal(r.artifact->n_codes, 1);
    assert_int_equal(r.artifact->codes[0].format, RUNG_FORMAT_CUBIN);
}

static void all_kinds_of_parameters(void **state)
{
    (void)state;
    struct rung_compile_result r =
        compile_one(&h,
                    "#include <cuda_fp16.h>\n#include <cuda.h>\nstruct Q { int a[5]; };\n"
                    "namespace n { __global__ void __launch_bounds__(128) k(char c, Q q, short s, "
                    "double d, bool b, float4 f,\n"
                    "  unsigned char u, const __grid_constant__ CUtensorMap m, __half h, int *p) { "
                    "if (b) p[q.a[c]] = s + f.x; } }\n",
                    "n::k");
    assert_string_equal(r.code, "");
    const struct rung_kernel *k = &r.artifact->kernels[0];
    assert_int_equal(k->n_params, 10);
    expect_param(k, 0, RUNG_PARAM_INT, 0, 1);
    expect_param(k, 1, RUNG_PARAM_BYTES, 4, 20);
    expect_param(k, 2, RUNG_PARAM_INT, 24, 2);
    expect_param(k, 3, RUNG_PARAM_FLOAT, 32, 8);
    expect_param(k, 5, RUNG_PARAM_BYTES, 48, 16);
    expect_param(k, 7, RUNG_PARAM_BYTES, 128, 128);
    assert_int_equal(k->params[7].alignment, 64);
    expect_param(k, 9, RUNG_PARAM_INT, 264, 8);
    assert_int_equal(k->max_threads, 128);
}

static void host_headers_and_constants_are_there(void **state)
{
    (void)state;
    struct rung_compile_result r = compile_one(
        &h,
        "#include <cuda_runtime.h>\n#include <cuda.h>\n#include <math.h>\n#include "
        "<cmath>\n#include <stdio.h>\n"
        "#include <cstdint>\n#include <cfloat>\n#include <climits>\n#include <cassert>\n#include "
        "<algorithm>\n"
        "#include <limits>\n#include <type_traits>\n#include <string.h>\n#include <stdlib.h>\n"
        "#define FLT_MAX 3.4e38f\n"
        "static float helper(float x) { return std::max(x, std::sqrt(fabsf(x))); }\n"
        "__global__ void k(float *p, uint32_t n, int64_t m) {\n"
        "  static_assert(std::is_same<float, float>::value && INT_MAX == 2147483647 && sizeof(m) "
        "== 8, \"\");\n"
        "  assert(n < UINT32_MAX);\n"
        "  p[0] = helper(p[1]) + FLT_MAX + NAN + (float)M_PI - INFINITY + "
        "std::numeric_limits<float>::lowest();\n"
        "  if (std::isnan(p[0])) printf(\"%d\\n\", (int)std::min(n, 3u)); }\n",
        "k");
    if (r.code[0])
        fail_msg("%s", r.log.ptr);
    assert_string_equal(r.log.ptr, "");
}

static void device_headers_are_there(void **state)
{
    (void)state;
    static const char *const names[] = {"cuda_fp16.h",
                                        "cuda_bf16.h",
                                        "cuda_fp8.h",
                                        "mma.h",
                                        "cuda_pipeline.h",
                                        "cooperative_groups.h",
                                        "cub/block/block_reduce.cuh"};
    char source[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(source, sizeof(source),
                 "#include <%s>\n__global__ void k(float *p) { p[0] = 1; }\n", names[i]);
        struct rung_compile_result r = compile_one(&h, source, "k");
        if (r.code[0])
            fail_msg("%s: %s", names[i], r.log.ptr);
    }
}

static void other_files_are_headers(void **state)
{
    (void)state;
#define TEXT(s) .struct_size = sizeof(struct rung_file), .text = { s, sizeof(s) - 1 }
    const struct rung_file files[] = {
        {.path = "kernel.cu",
         TEXT("#include \"lib/a.cuh\"\n__global__ void k(float *p) { p[0] = a() + b(); }\n")},
        {.path = "lib/a.cuh",
         TEXT("#include \"b.cuh\"\n__device__ inline float a() { return 1; }\n")},
        {.path = "lib/b.cuh",
         TEXT("#pragma once\n#include \"../lib/b.cuh\"\n__device__ inline float b() { return 2; "
              "}\n")},
    };
    const char *expression = "k";
    struct rung_compile_result r =
        compile_files(&h, files, 3, &expression, 1, "compute_90", RUNG_FORMAT_PTX, 0);
    if (r.code[0])
        fail_msg("%s", r.log.ptr);
}

static void errors_of_the_source_are_compile_errors(void **state)
{
    (void)state;
    struct rung_compile_result r =
        compile_one(&h, "__global__ void k(float *p) {\n  p[0] = oops;\n}\n", "k");
    assert_string_equal(r.code, "compile.error");
    support_contains(r.log.ptr, "kernel.cu(2): error: identifier \"oops\" is undefined");
    /* A name that is wrong too does not hide it, nor appear. */
    r = compile_one(&h, "__global__ void k(float *p) {\n  p[0] = oops;\n}\n", "nowhere");
    assert_string_equal(r.code, "compile.error");
    assert_null(strstr(r.log.ptr, "nv_name_map"));
    r = compile_one(
        &h, "template <int N> __global__ void k(float *p) { static_assert(N > 1, \"N!\"); }\n",
        "k<1>");
    assert_string_equal(r.code, "compile.error");
    support_contains(r.log.ptr, "N!");
}

static void errors_of_ptxas_are_compile_errors(void **state)
{
    (void)state;
    static const char source[] =
        "__global__ void k(float *p) { __shared__ float s[100000];\n"
        "  s[threadIdx.x] = p[0]; __syncthreads(); p[1] = s[99999 - threadIdx.x]; }\n";
    struct rung_file file = {
        .struct_size = sizeof(file), .path = "kernel.cu", .text = {source, strlen(source)}};
    const char *expression = "k";
    struct rung_compile_result r =
        compile_files(&h, &file, 1, &expression, 1, "sm_90", RUNG_FORMAT_CUBIN, 0);
    assert_string_equal(r.code, "compile.error");
    support_contains(r.log.ptr, "400000 bytes of static shared memory");
}

static void megabytes_of_shared_memory_are_refused_by_ptxas(void **state)
{
    (void)state;
    static const char source[] =
        "__global__ void k(float *p) { __shared__ float s[524288];\n"
        "  s[threadIdx.x] = p[0]; __syncthreads(); p[1] = s[524287 - threadIdx.x]; }\n";
    struct rung_file file = {
        .struct_size = sizeof(file), .path = "kernel.cu", .text = {source, strlen(source)}};
    const char *expression = "k";
    struct rung_compile_result r =
        compile_files(&h, &file, 1, &expression, 1, "sm_90", RUNG_FORMAT_CUBIN, 0);
    assert_string_equal(r.code, "compile.error");
    support_contains(r.log.ptr, "2097152 bytes of static shared memory; 49152 is the most");
    r = compile_one(&h, source, "k"); /* PTX knows no limit: the device that launches it does */
    assert_string_equal(r.code, "");
}

/* ---- Variables ---- */

static const char variables[] =
    "#include <cuda_fp16.h>\n"
    "__constant__ float c_weights[64];\n"
    "namespace ns { __constant__ int4 q; __device__ double total = 2;\n"
    "  static __device__ int hidden[3] = {1, 2, 3}; }\n"
    "__device__ half2 grid[4][5];\n"
    "template <int N> __constant__ float table[N];\n"
    "__device__ float helper(float x) { return x; }\n"
    "__global__ void k(float *p) { __shared__ float s[32]; s[threadIdx.x] = p[1];\n"
    "  __syncthreads(); p[0] = ns::hidden[threadIdx.x] + helper(s[3]) + table<4>[1];\n"
    "  printf(\"hi { ; \\\" %d\", 3); }\n";

static struct rung_compile_result compile_symbols(const char *source, const char *const *symbols,
                                                  uint32_t n)
{
    struct rung_file file = {
        .struct_size = sizeof(file), .path = "kernel.cu", .text = {source, strlen(source)}};
    struct rung_bundle bundle = {
        .struct_size = sizeof(bundle), .n_files = 1, .language = "cuda", .files = &file};
    const char *expression = "k";
    struct rung_compile_request q = {.struct_size = sizeof(q),
                                     .n_expressions = 1,
                                     .bundle = &bundle,
                                     .expressions = &expression,
                                     .arch = "compute_90",
                                     .format = RUNG_FORMAT_PTX,
                                     .symbols = symbols,
                                     .n_symbols = n};
    struct rung_compile_result r = {.struct_size = sizeof(r)};
    int32_t status;
    harness_reset(&h);
    RUNG_INVOKE(status, h.instance, struct rung_compiler_ops, compile, &h.call, &q, &r);
    if (status != RUNG_OK)
        fail_msg("%d: %s", status, h.error.message);
    return r;
}

static void variables_come_with_their_symbols(void **state)
{
    (void)state;
    static const char *const asked[] = {"c_weights", "ns::q",    "ns::total",
                                        "grid",      "table<8>", "c_weights"};
    static const uint64_t bytes[] = {256, 16, 8, 80, 32, 256};
    struct rung_compile_result r = compile_symbols(variables, asked, 6);
    if (r.code[0])
        fail_msg("%s", r.log.ptr);
    assert_true(r.artifact->n_symbols >= 8);
    for (uint32_t i = 0; i < 6; i++) {
        const struct rung_symbol *s = &r.artifact->symbols[i];
        assert_string_equal(s->expression, asked[i]);
        assert_int_equal(s->bytes, bytes[i]);
        assert_int_equal(s->flags & RUNG_SYMBOL_CONST, i != 2 && i != 3);
        support_contains(r.artifact->codes[0].bytes, s->symbol);
    }
    int hidden = 0, used = 0, weights = 0;
    for (uint32_t i = 0; i < r.artifact->n_symbols; i++) {
        const struct rung_symbol *s = &r.artifact->symbols[i];
        hidden += strstr(s->symbol, "hidden") && !s->expression && s->bytes == 12 && !s->flags;
        used += strstr(s->symbol, "ILi4E") && !s->expression && s->bytes == 16;
        weights += !strcmp(s->symbol, "c_weights");
    }
    assert_int_equal(hidden, 1);
    assert_int_equal(used, 1);
    assert_int_equal(weights, 2);
    r = compile_symbols("__global__ void k(float *p) {}", NULL, 0);
    assert_string_equal(r.code, "");
    assert_int_equal(r.artifact->n_symbols, 0);
}

static void unknown_variables_are_plan_errors(void **state)
{
    (void)state;
    static const char *const typo[] = {"c_weight"};
    struct rung_compile_result r = compile_symbols(variables, typo, 1);
    assert_string_equal(r.code, "plan.error");
    support_contains(r.log.ptr, "Did you mean `c_weights`?");
    support_contains(r.log.ptr, "c_weights, q, table, total, hidden, grid");
    assert_null(strstr(r.log.ptr, "launch lines name kernels"));
    static const char *const elsewhere[] = {"total"};
    r = compile_symbols(variables, elsewhere, 1);
    assert_string_equal(r.code, "plan.error");
    support_contains(r.log.ptr, "Did you mean `total`?");
    static const char *const wrong[] = {"helper", "k", "c_weights[0]", "", "c_weights;",
                                        "\"",     "1", "float"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        r = compile_symbols(variables, wrong + i, 1);
        if (strcmp(r.code, "plan.error"))
            fail_msg("%s: %s %s", wrong[i], r.code, r.log.ptr);
    }
    r = compile_symbols("__global__ void k(float *p) {}", typo, 1);
    assert_string_equal(r.code, "plan.error");
    support_contains(r.log.ptr, "has no __constant__ or __device__ variable");
}

static void unknown_kernels_are_plan_errors(void **state)
{
    (void)state;
    static const char source[] =
        "namespace n {\n__global__ void __launch_bounds__(64) inner(int *p) {}\n}\n"
        "template <int A, int B>\n__global__ void both(int *p) {}\n"
        "__device__ int side(int x) { return x; }\n";
    struct rung_compile_result r = compile_one(&h, source, "nowhere");
    assert_string_equal(r.code, "plan.error");
    support_contains(r.log.ptr, "nowhere");
    support_contains(r.log.ptr, "inner, both<...>");
    assert_null(strstr(r.log.ptr, "nv_name_map"));
    r = compile_one(&h, source, "both<1>");
    assert_string_equal(r.code, "plan.error");
    support_contains(r.log.ptr, "both<1>");
    r = compile_one(&h, source, "inner");
    assert_string_equal(r.code, "plan.error");
    r = compile_one(&h, source, "side");
    assert_string_equal(r.code, "plan.error");
    support_contains(r.log.ptr, "non-__global__ function");
    r = compile_one(&h, "int x;", "k");
    assert_string_equal(r.code, "plan.error");
    support_contains(r.log.ptr, "no __global__ function");
}

static void architectures_are_checked(void **state)
{
    (void)state;
    struct rung_file file = {.struct_size = sizeof(file), .path = "kernel.cu", .text = {"", 0}};
    struct rung_bundle bundle = {
        .struct_size = sizeof(bundle), .n_files = 1, .language = "cuda", .files = &file};
    static const char *const wrong[] = {"",           "sm",   "sm_9000", "sm_90 --pre-include=x",
                                        "compute_9x", "sm_11"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct rung_compile_request q = {.struct_size = sizeof(q),
                                         .bundle = &bundle,
                                         .arch = wrong[i],
                                         .format = RUNG_FORMAT_PTX};
        struct rung_compile_result r = {.struct_size = sizeof(r)};
        int32_t status;
        harness_reset(&h);
        RUNG_INVOKE(status, h.instance, struct rung_compiler_ops, compile, &h.call, &q, &r);
        assert_int_not_equal(status, RUNG_OK);
    }
    compile_alive(&h);
}

static void options_of_the_user_apply(void **state)
{
    (void)state;
    struct harness other;
    compile_open(&other, "{\"options\": [\"--fmad=false\", \"-DSIX=6\"]}");
    struct rung_compile_result r =
        compile_one(&other, "__global__ void k(float *p) { p[0] = p[1] * p[2] + SIX; }", "k");
    assert_string_equal(r.code, "");
    assert_null(strstr(r.artifact->codes[0].bytes, "fma.rn"));
    harness_close(&other);
}

static void a_missing_library_is_told_with_a_remedy(void **state)
{
    (void)state;
    struct harness other;
    int32_t status = harness_open(&other, RUNG_KIND_COMPILER, "nvrtc",
                                  "{\"library\": \"/nowhere/libnvrtc.so\"}", true);
    assert_int_equal(status, RUNG_EUNAVAILABLE);
    support_contains(other.error.message, "/nowhere/libnvrtc.so");
    support_contains(other.error.message, "leave the option out");
    harness_close(&other);
}

int main(int argc, char **argv)
{
    HARNESS_HELPER(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ptx_with_its_kernels),
        cmocka_unit_test(both_forms_of_one_compile),
        cmocka_unit_test(all_kinds_of_parameters),
        cmocka_unit_test(host_headers_and_constants_are_there),
        cmocka_unit_test(device_headers_are_there),
        cmocka_unit_test(other_files_are_headers),
        cmocka_unit_test(errors_of_the_source_are_compile_errors),
        cmocka_unit_test(errors_of_ptxas_are_compile_errors),
        cmocka_unit_test(megabytes_of_shared_memory_are_refused_by_ptxas),
        cmocka_unit_test(variables_come_with_their_symbols),
        cmocka_unit_test(unknown_variables_are_plan_errors),
        cmocka_unit_test(unknown_kernels_are_plan_errors),
        cmocka_unit_test(architectures_are_checked),
        cmocka_unit_test(options_of_the_user_apply),
        cmocka_unit_test(a_missing_library_is_told_with_a_remedy),
    };
    return cmocka_run_group_tests_name("compile", tests, setup, teardown);
}
