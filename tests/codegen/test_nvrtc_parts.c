/* The parts of compiler "nvrtc" that read what a hostile source may shape: messages, PTX, logs. */
#include "support/support.h"

#include "api.h"
#include "base/arena.h"
#include "base/philox.h"
#include "base/status.h"
#include "diagnose.h"
#include "message.h"
#include "ptx.h"
#include "ptxas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* api.c itself is not linked: it would load a library. */
int32_t nv_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format, ...)
{
    (void)symbol;
    (void)format;
    err->code = code;
    return code;
}

static void *host_alloc(const struct rung_host *host, struct rung_arena *arena, uint64_t size,
                        uint64_t align)
{
    (void)host;
    return rung_arena_alloc(arena, size, align);
}

static const struct rung_host host = {.struct_size = sizeof(host), .alloc = host_alloc};

static int32_t read_result(struct rung_arena *arena, const char *bytes, size_t n,
                           struct rung_compile_result *out)
{
    struct rung_error err = rung_error_init();
    struct rung_call call = {.struct_size = sizeof(call), .arena = arena, .error = &err};
    *out = (struct rung_compile_result){.struct_size = sizeof(*out)};
    return nv_read_result(&host, &call, (struct rung_text){bytes, n}, out);
}

static void write_sample(struct nv_buffer *b)
{
    static const struct rung_kernel_param params[] = {{.struct_size = sizeof(params[0]),
                                                       .type = RUNG_PARAM_INT,
                                                       .offset = 0,
                                                       .size = 8,
                                                       .alignment = 8},
                                                      {.struct_size = sizeof(params[0]),
                                                       .type = RUNG_PARAM_BYTES,
                                                       .offset = 8,
                                                       .size = 20,
                                                       .alignment = 4}};
    static const struct rung_kernel kernel = {.struct_size = sizeof(kernel),
                                              .n_params = 2,
                                              .expression = "k<1>",
                                              .symbol = "_Z1kv",
                                              .params = params,
                                              .param_bytes = 28,
                                              .registers = 9,
                                              .static_shared = 8,
                                              .local_bytes = 7,
                                              .spill_bytes = 6,
                                              .max_threads = 128};
    static const struct rung_code code = {.struct_size = sizeof(code),
                                          .format = RUNG_FORMAT_CUBIN,
                                          .arch = "sm_90",
                                          .bytes = "a\0b",
                                          .n_bytes = 3};
    static const struct rung_artifact artifact = {.struct_size = sizeof(artifact),
                                                  .n_codes = 1,
                                                  .n_kernels = 1,
                                                  .codes = &code,
                                                  .kernels = &kernel,
                                                  .compiler = "nvrtc 13.0"};
    const struct rung_compile_result result = {
        .struct_size = sizeof(result), .log = {"warn", 4}, .artifact = &artifact, .compile_ns = 77};
    nv_write_result(b, &result);
    assert_false(b->failed);
}

static void results_come_through_whole(void **state)
{
    (void)state;
    struct nv_buffer b = {0};
    struct rung_arena *arena = rung_arena_new();
    struct rung_compile_result out;
    write_sample(&b);
    assert_int_equal(read_result(arena, b.ptr, b.len, &out), RUNG_OK);
    const struct rung_kernel *k = &out.artifact->kernels[0];
    assert_string_equal(out.log.ptr, "warn");
    assert_int_equal(out.compile_ns, 77);
    assert_memory_equal(out.artifact->codes[0].bytes, "a\0b", 4);
    assert_string_equal(out.artifact->codes[0].arch, "sm_90");
    assert_string_equal(out.artifact->compiler, "nvrtc 13.0");
    assert_string_equal(k->expression, "k<1>");
    assert_string_equal(k->symbol, "_Z1kv");
    assert_int_equal(k->registers * 1000000 + k->static_shared * 10000 + k->local_bytes * 100 +
                         k->spill_bytes,
                     9080706);
    assert_int_equal(k->max_threads, 128);
    assert_int_equal(k->params[1].offset, 8);
    assert_int_equal(k->params[1].type, RUNG_PARAM_BYTES);
    rung_arena_free(arena);
    nv_free(&b);
}

static void garbled_results_are_refused(void **state)
{
    (void)state;
    struct nv_buffer b = {0};
    struct rung_compile_result out;
    struct rung_arena *arena = rung_arena_new();
    write_sample(&b);
    for (size_t n = 0; n < b.len; n++) { /* exact copies, so that a read past the end is seen */
        char *cut = malloc(n + 1);
        memcpy(cut, b.ptr, n);
        cut[n] = '\0';
        assert_int_equal(read_result(arena, cut, n, &out), RUNG_EINTERNAL);
        free(cut);
    }
    for (uint32_t i = 0; i < 4000; i++) {
        uint32_t words[3];
        char *bent = malloc(b.len + 1);
        memcpy(bent, b.ptr, b.len + 1);
        rung_philox_words(3, i, 0, words, 3);
        for (int j = 0; j < 3; j++)
            bent[words[j] % b.len] ^= (char)(1u << (words[j] >> 29));
        read_result(arena, bent, b.len, &out);
        rung_arena_reset(arena);
        free(bent);
    }
    rung_arena_free(arena);
    nv_free(&b);
}

static struct rung_kernel read_ptx(const char *ptx, bool good)
{
    struct rung_kernel k = {.struct_size = sizeof(k), .symbol = "k"};
    assert_int_equal(nv_ptx_kernel(ptx, &k), good);
    return k;
}

static void entries_of_ptx(void **state)
{
    (void)state;
    struct rung_kernel k = read_ptx(
        ".entry kk(.param .u8 a)\n{}\n// .entry k(\n.visible .entry k(\n\t.param .u64 .ptr .global "
        ".align 16 k_0,\n.param .align 8 .b8 k_1[12], // c\n.param .f32 k_2\n)\n.reqntid 8, 4, "
        "2\n{\n.maxntid 9",
        true);
    assert_int_equal(k.n_params, 3);
    assert_int_equal(k.params[0].alignment, 8);
    assert_int_equal(k.params[1].offset, 8);
    assert_int_equal(k.params[1].size, 12);
    assert_int_equal(k.params[2].offset, 20);
    assert_int_equal(k.param_bytes, 24);
    assert_int_equal(k.max_threads, 64);
    free((void *)k.params);
    k = read_ptx(".entry k\n{ ret; }", true);
    assert_int_equal(k.n_params, 0);
    k = read_ptx(".entry k()\n.maxntid 99999999999, 2\n{}", true);
    assert_in_range(k.max_threads, 0, 1024);
    free((void *)k.params);
}

static void hostile_ptx_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        ".entry",
        ".entry ",
        ".entry k(",
        ".entry k(.param",
        ".entry k(.param .u64",
        ".entry k(.param .u64 a",
        ".entry k(.param .u64 a[",
        ".entry k(.param .u64 a[0])",
        ".entry k(.param .b8 a[99999999999])",
        ".entry k(.param .b64 a[1000000])",
        ".entry k(.param .u99 a)",
        ".entry k(.param .align 3 .b8 a[4])",
        ".entry k(.param .align 99999 .b8 a[4])",
        ".entry k(.param .align .b8 a[4])",
        ".entry k(.param a)",
        ".entry k(.u64)",
        ".entry k(.param .pred a)",
        ".entry k(//",
        ".entry kx()",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        read_ptx(texts[i], false);
    size_t n = 400000;
    char *many = malloc(n + 32);
    size_t at = (size_t)sprintf(many, ".entry k(");
    while (at < n)
        at += (size_t)sprintf(many + at, ".param .u64 a,");
    sprintf(many + at, ")");
    read_ptx(many, false);
    free(many);
}

static void reports_of_ptxas(void **state)
{
    (void)state;
    char log[] =
        "kernel.cu(1): warning #1: x\n"
        "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
        "ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 512 bytes smem, 380 bytes cmem[0]\n"
        "ptxas warning : w\nptxas info";
    struct rung_kernel kernels[] = {{.symbol = "a"}, {.symbol = "b"}, {.symbol = "b"}};
    nv_ptxas_read(log, kernels, 3);
    assert_int_equal(kernels[0].registers, 0);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(kernels[i].registers, 40);
        assert_int_equal(kernels[i].static_shared, 512);
        assert_int_equal(kernels[i].local_bytes, 8);
        assert_int_equal(kernels[i].spill_bytes, 28);
    }
    assert_int_equal(nv_ptxas_most_shared(log), 512);
    nv_ptxas_strip(log);
    assert_string_equal(log, "kernel.cu(1): warning #1: x\nptxas warning : w\n");
}

static void variables_of_ptx(void **state)
{
    (void)state;
    static const char ptx[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".extern .func (.param .b32 r) vprintf\n(\n\t.param .b64 a\n)\n;\n"
        ".extern .shared .align 16 .b8 dynamic[];\n"
        "// .const .b8 not[4];\n"
        ".visible .const .align 4 .b8 c[256];\n"
        ".global .align 8 .f64 d = 0d4000000000000000;\n"
        ".global .align 4 .b8 list[12] = {1, 0, 0, 0, 2};\n"
        ".weak .global .align 16 .v4 .f32 v[2][3];\n"
        ".global .texref t;\n"
        ".extern .const .align 4 .u32 open[];\n"
        ".global .align 1 .b8 $str[3] = {123, 59, 0};\n"
        ".visible .entry k(.param .u64 p)\n{\n\t.local .b8 l[4];\n\t{ .reg .b32 t; }\n\tret;\n}\n"
        ".section .debug_str\n{\n.b8 1,2;\n}\n"
        ".global .u16 last;\n"
        "\t.file\t1 \"kernel.cu\"\n";
    static const struct {
        const char *name;
        uint64_t bytes;
        uint32_t flags;
    } expected[] = {{"c", 256, RUNG_SYMBOL_CONST},  {"d", 8, 0},    {"list", 12, 0}, {"v", 96, 0},
                    {"open", 0, RUNG_SYMBOL_CONST}, {"$str", 3, 0}, {"last", 2, 0}};
    struct rung_symbol *symbols;
    uint32_t n;
    assert_true(nv_ptx_symbols(ptx, &symbols, &n));
    assert_int_equal(n, sizeof(expected) / sizeof(*expected));
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(symbols[i].symbol, expected[i].name);
        assert_int_equal(symbols[i].bytes, expected[i].bytes);
        assert_int_equal(symbols[i].flags, expected[i].flags);
        assert_null(symbols[i].expression);
        free((char *)symbols[i].symbol);
    }
    free(symbols);
    for (size_t cut = 0; cut < sizeof(ptx); cut++) { /* every beginning can be read */
        char part[sizeof(ptx)];
        snprintf(part, sizeof(part), "%.*s", (int)cut, ptx);
        assert_true(nv_ptx_symbols(part, &symbols, &n));
        for (uint32_t i = 0; i < n; i++)
            free((char *)symbols[i].symbol);
        free(symbols);
    }
}

static void logs_are_cut_in_the_middle(void **state)
{
    (void)state;
    char text[3000];
    for (size_t n = 0; n < sizeof(text); n += 97) {
        memset(text, 'x', sizeof(text));
        for (size_t i = 0; i + 2 < n; i += 7)
            memcpy(text + i, i % 2 ? "\xc3\xa4" : "a\n", 2);
        struct nv_buffer b = {0};
        nv_add_cut(&b, text, n, 1024);
        assert_true(b.len <= 1100);
        assert_true(n > 1024 || (b.len == n && (!n || !memcmp(b.ptr, text, n))));
        assert_int_equal(strstr(nv_text(&b), "bytes cut here]") != NULL, n > 1024);
        nv_free(&b);
    }
}

static void names_and_sources_are_told_apart(void **state)
{
    (void)state;
    struct nv_file file = {"k.cu",
                           {"template <int N> __global__ void a(int) {}\n__global__ void", 57}};
    struct nv_request q = {.arch = "sm_90", .n_files = 1, .files = &file};
    static const char name[] =
        "__nv_name_map(2): error: identifier \"b\" is undefined\n  #pragma nv_mangled_name b\n\n";
    static const char source[] = "k.cu(1): error: expected a \";\"\n  x\n\n1 error detected in the "
                                 "compilation of \"k.cu\".\n";
    char code[32], both[400];
    struct nv_buffer b = {0};
    nv_diagnose(name, &q, "headers", code, &b);
    assert_string_equal(code, "plan.error");
    support_contains(nv_text(&b), "identifier \"b\" is undefined");
    support_contains(nv_text(&b), "in the source: a<...>.");
    nv_free(&b);
    snprintf(both, sizeof(both), "%s%s", source, name);
    nv_diagnose(both, &q, "headers", code, &b);
    assert_string_equal(code, "compile.error");
    assert_string_equal(nv_text(&b), "k.cu(1): error: expected a \";\"\n  x\n\n");
    nv_free(&b);
    nv_diagnose("", &q, "headers", code, &b);
    assert_string_equal(code, "compile.error");
    nv_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_through_whole),
        cmocka_unit_test(garbled_results_are_refused),
        cmocka_unit_test(entries_of_ptx),
        cmocka_unit_test(hostile_ptx_is_refused),
        cmocka_unit_test(reports_of_ptxas),
        cmocka_unit_test(variables_of_ptx),
        cmocka_unit_test(logs_are_cut_in_the_middle),
        cmocka_unit_test(names_and_sources_are_told_apart),
    };
    return cmocka_run_group_tests_name("nvrtc_parts", tests, NULL, NULL);
}
