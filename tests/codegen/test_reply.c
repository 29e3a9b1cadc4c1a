/* Codegen "cuda": what is taken out of replies, and what the model is told when that fails. */
#include "codegen/harness.h"
#include "base/philox.h"
#include <rung/codegen.h>
#include <stdio.h>
#include <stdlib.h>

static struct harness h;

#define LAUNCH "//@ launch scaled grid=(rows) block=(256) args=(x, y, cols, scale)\n"
#define KERNEL                                                                                     \
    "__global__ void scaled(const float *x, float *y, int cols, float scale)\n"                    \
    "{\n"                                                                                          \
    "    for (int i = threadIdx.x; i < cols; i += 256)\n"                                          \
    "        y[blockIdx.x * (size_t)cols + i] = scale * x[blockIdx.x * (size_t)cols + i];\n"       \
    "}\n"
#define FENCE(tag, code) "```" tag "\n" code "```\n"

static int setup(void **state)
{
    (void)state;
    int32_t status = harness_open(&h, RUNG_KIND_CODEGEN, "cuda", "{}", true);
    if (status != RUNG_OK)
        fail_msg("%s", h.error.message);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_close(&h);
    return 0;
}

/* What the conversation has besides the reply; none unless a test sets it. */
static uint32_t reply_flags;
static const struct rung_bundle *reply_parent, *reply_base;
static const struct rung_task *reply_task; /* NULL: harness_task() */

static struct rung_reply_result read_n(const char *reply, size_t n)
{
    struct rung_reply_result r = {.struct_size = sizeof(r)};
    struct rung_reply_request req = {.struct_size = sizeof(req),
                                     .flags = reply_flags,
                                     .task = reply_task ? reply_task : harness_task(),
                                     .reply = {reply, n},
                                     .parent = reply_parent,
                                     .base = reply_base};
    int32_t status;
    harness_reset(&h);
    RUNG_INVOKE(status, h.instance, struct rung_codegen_ops, read_reply, &h.call, &req, &r);
    if (status != RUNG_OK)
        fail_msg("%d: %s", status, h.error.message);
    assert_non_null(r.message.ptr);
    assert_non_null(r.note.ptr);
    assert_true(r.code[0] == '\0' || !strcmp(r.code, "plan.error") ? true : r.bundle == NULL);
    assert_true(r.code[0] != '\0' || r.bundle != NULL);
    assert_true((r.code[0] == '\0') == (r.plan != NULL));
    assert_true((r.code[0] == '\0') == (r.message.len == 0));
    return r;
}

static struct rung_reply_result read_text(const char *reply)
{
    return read_n(reply, strlen(reply));
}

/* The reply is good and its entry file is `entry`. */
static struct rung_reply_result good(const char *reply, const char *entry)
{
    struct rung_reply_result r = read_text(reply);
    if (r.code[0])
        fail_msg("%s: %s", r.code, r.message.ptr);
    assert_string_equal(r.bundle->language, "cuda");
    assert_string_equal(r.bundle->files[r.bundle->entry].text.ptr, entry);
    return r;
}

static struct rung_reply_result bad(const char *reply, const char *code, const char *words)
{
    struct rung_reply_result r = read_text(reply);
    assert_string_equal(r.code, code);
    support_contains(r.message.ptr, words);
    return r;
}

static void one_block(void **state)
{
    (void)state;
    struct rung_reply_result r =
        good("Here it is.\n\n" FENCE("cuda", LAUNCH KERNEL) "\nIt scales.\n", LAUNCH KERNEL);
    assert_int_equal(r.plan->n_steps, 1);
    assert_string_equal(r.plan->steps[0].kernel, "scaled");
    assert_string_equal(r.bundle->files[0].path, "kernel.cu");
    assert_int_equal(r.note.len, 0);
    good(FENCE("cpp", LAUNCH KERNEL), LAUNCH KERNEL);
    good(FENCE("", LAUNCH KERNEL), LAUNCH KERNEL);
    good("~~~~ c++\n" LAUNCH KERNEL "~~~~\n", LAUNCH KERNEL);
    good("```cuda\r\n//@ launch scaled grid=(rows) block=(256) args=(x, y, cols, "
         "scale)\r\n__global__ void scaled(const "
         "float *x, float *y, int c, float s) {}\r\n```\r\n",
         "//@ launch scaled grid=(rows) block=(256) args=(x, y, cols, scale)\n__global__ void "
         "scaled(const float *x, "
         "float *y, int c, float s) {}\n");
}

static void usage_examples_are_left(void **state)
{
    (void)state;
    good("First compile:\n" FENCE("bash", "nvcc kernel.cu\n")
             FENCE("cuda", LAUNCH KERNEL) "Use it so:\n" FENCE(
                 "cpp", "int main() { scaled<<<rows, 256>>>(x, y, cols, 1.0f); }\n"),
         LAUNCH KERNEL);
    struct rung_reply_result r = good(
        "The naive one is\n" FENCE(
            "cuda",
            "__global__ void scaled(float *x) { x[0] = 1; "
            "}\n") "and the answer\n" FENCE("cuda",
                                            LAUNCH
                                                KERNEL) "which differs from\n" FENCE("cuda",
                                                                                     "__global__ "
                                                                                     "void other() "
                                                                                     "{}\n"),
        LAUNCH KERNEL);
    support_contains(r.note.ptr, "block 2 of 3");
    r = good("Draft:\n" FENCE("cuda", LAUNCH KERNEL "// draft\n") "Better:\n" FENCE("cuda",
                                                                                    LAUNCH KERNEL),
             LAUNCH KERNEL);
    support_contains(r.note.ptr, "block 2 of 2");
}

static void parts_are_joined(void **state)
{
    (void)state;
    struct rung_reply_result r =
        good("Kernel:\n" FENCE("cuda", KERNEL) "Launch:\n" FENCE("", LAUNCH), KERNEL "\n" LAUNCH);
    support_contains(r.note.ptr, "Joined the //@ lines");
    r = good(FENCE("cuda", "__global__ void first(float *y) { y[0] = 0; }\n") "then\n" FENCE(
                 "cuda", "//@ launch first grid=(1) block=(1) args=(y)\n" LAUNCH KERNEL),
             "__global__ void first(float *y) { y[0] = 0; }\n\n//@ launch first grid=(1) block=(1) "
             "args=(y)\n" LAUNCH KERNEL);
    assert_int_equal(r.plan->n_steps, 2);
}

static void helpers_in_blocks_of_their_own_are_joined(void **state)
{
    (void)state;
#define HELPER "__device__ float twice(float v)\n{\n    return 2 * v;\n}\n"
#define USER                                                                                       \
    "//@ launch u grid=(rows) block=(1) args=(x, y)\n"                                             \
    "__global__ void u(const float *x, float *y)\n{\n    y[blockIdx.x] = twice(x[0]);\n}\n"
    good("First a helper:\n" FENCE("cuda", HELPER) "then\n" FENCE("cuda", USER), HELPER "\n" USER);
    good(FENCE("cuda", "__device__ float unused(float v)\n{\n    return v;\n}\n")
             FENCE("cuda", HELPER USER),
         HELPER USER);
    good("````markdown\n# Answer\n\n" FENCE("cuda", LAUNCH KERNEL) "````\n", LAUNCH KERNEL);
}

static void named_files_stay_files(void **state)
{
    (void)state;
    struct rung_reply_result r = good(
        "`util.cuh`:\n\n" FENCE(
            "cuda", "#pragma once\n#include \"deep/more.cuh\"\n__device__ float one() { return 1; "
                    "}\n")
            FENCE("cuda", "// file: deep/more.cuh\n__device__ float two() { return "
                          "2; }\n") "**main.cu**\n" FENCE("cuda", "#include "
                                                                  "\"util.cuh\"\n" LAUNCH KERNEL)
                FENCE("cuda unused.cuh", "int u;\n"),
        "#include \"util.cuh\"\n" LAUNCH KERNEL);
    assert_int_equal(r.bundle->n_files, 3);
    assert_string_equal(r.bundle->files[0].path, "main.cu");
    assert_string_equal(r.bundle->files[1].path, "util.cuh");
    assert_string_equal(r.bundle->files[2].path, "deep/more.cuh");
    r = good(FENCE("cuda:kernels.cuh", KERNEL)
                 FENCE("cuda:main.cu", "#include \"kernels.cuh\"\n" LAUNCH),
             "#include \"kernels.cuh\"\n" LAUNCH);
    assert_int_equal(r.bundle->n_files, 2);
    /* A path that leads out is no path. */
    r = good(FENCE("cuda", "// file: ../../etc/x.cuh\nint a;\n")
                 FENCE("cuda", "#include \"../../etc/x.cuh\"\n" LAUNCH KERNEL),
             "#include \"../../etc/x.cuh\"\n" LAUNCH KERNEL);
    assert_int_equal(r.bundle->n_files, 1);
}

static void unclosed_fences(void **state)
{
    (void)state;
    struct rung_reply_result r = good("```cuda\n" LAUNCH KERNEL, LAUNCH KERNEL);
    support_contains(r.note.ptr, "not closed");
    bad("```cuda\n" LAUNCH
        "__global__ void scaled(const float *x, float *y, int cols, float scale)\n{\n  for (int i",
        "reply.truncated", "shorter");
    bad("```cuda\n" LAUNCH KERNEL "__device__ float tail(float x", "reply.truncated",
        "whole candidate");
    r = good("- item\n\n  ```cuda\n  " LAUNCH
             "  __global__ void scaled(const float *x, float *y, int c, float s) {}\n  ```\n",
             LAUNCH "__global__ void scaled(const float *x, float *y, int c, float s) {}\n");
    assert_int_equal(r.note.len, 0);
}

static void code_without_fences(void **state)
{
    (void)state;
    struct rung_reply_result r = good(LAUNCH KERNEL, LAUNCH KERNEL);
    support_contains(r.note.ptr, "whole reply as code");
    good("#include <cuda_fp16.h>\n\n" LAUNCH "\n" KERNEL,
         "#include <cuda_fp16.h>\n\n" LAUNCH "\n" KERNEL);
    good("Here is the code:\n\n" LAUNCH KERNEL "\nIt scales every row.\n", LAUNCH KERNEL);
}

static void replies_without_code(void **state)
{
    (void)state;
    bad("", "reply.none", "empty");
    bad(" \n\t\n", "reply.none", "empty");
    bad("I would tile the matrix and use shared memory.", "reply.none", "no code");
    bad("Use `__global__` functions.", "reply.none", "fenced block");
    bad(FENCE("cuda", "__device__ int x;\n"), "reply.none", "No code block");
    bad(FENCE("", LAUNCH), "reply.none", "no __global__ function");
    bad(FENCE("python", "import triton\n@triton.jit\ndef k(x):\n    pass  # no __global__\n"),
        "reply.none", "another language");
    bad(FENCE("cuda", "// __global__ void k() {}\n/* __global__ void l() {} */\nconst char *s = "
                      "\"__global__ void m() {}\";\n"),
        "reply.none", "No code block");
    bad("I'm sorry, but I can't help with that request.", "reply.refused", "declines");
    bad("I can\xe2\x80\x99t assist with this.", "reply.refused", "declines");
}

static void thoughts_are_skipped(void **state)
{
    (void)state;
    good("<think>\nFirst try:\n" FENCE(
             "cuda", LAUNCH "__global__ void wrong() {}\n") "</think>\n" FENCE("cuda",
                                                                               LAUNCH KERNEL),
         LAUNCH KERNEL);
    good("so the plan is ```cuda\nnot yet\n</think>\n\n" FENCE("cuda", LAUNCH KERNEL),
         LAUNCH KERNEL);
    bad("<think>\nHmm. " FENCE("cuda", LAUNCH KERNEL) "but wait", "reply.truncated", "thoughts");
}

#define OPEN_KERNEL                                                                                \
    "__global__ void open_kernel(const float *x, float *y, int stage, float *spill)\n"             \
    "{\n    y[blockIdx.x] = x[stage] + spill[0];\n}\n"

/* A file of the user that is no CUDA source, but holds one: ModelNew, a saved reply. */
static void files_of_other_kinds_are_read_like_replies(void **state)
{
    (void)state;
    static const char python[] =
        "import torch\nfrom torch.utils.cpp_extension import load_inline\nsrc = r\"\"\"\n" KERNEL
        "torch::Tensor go(torch::Tensor x, double scale) {\n  auto y = torch::empty_like(x);\n"
        "  scaled<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), "
        "scale);\n"
        "  return y;\n}\n\"\"\"\nm = load_inline(name='m', cpp_sources='', cuda_sources=src, "
        "functions=['go'])\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        "        return m.go(x, 0.5)\n";
    static const char *const names[] = {"kernel.py", "reply.md"}, *const texts[] = {
                                                                      python,
                                                                      "Here it is:\n" FENCE(
                                                                          "cuda", LAUNCH KERNEL)};
    for (int i = 0; i < 2; i++) {
        struct rung_reply_result r = {.struct_size = sizeof(r)};
        int32_t status;
        RUNG_INVOKE(status, h.instance, struct rung_codegen_ops, read_source, &h.call,
                    harness_task(), names[i], ((struct rung_text){texts[i], strlen(texts[i])}), &r);
        assert_int_equal(status, RUNG_OK);
        if (r.code[0])
            fail_msg("%s: %s: %s", names[i], r.code, r.message.ptr);
        assert_non_null(strstr(r.bundle->files[0].text.ptr, "__global__"));
        assert_null(strstr(r.bundle->files[0].text.ptr, "torch"));
    }
}

static void missing_plan_lines_are_asked_for(void **state)
{
    (void)state;
    struct rung_reply_result r =
        bad(FENCE("cuda", OPEN_KERNEL), "plan.error",
            "//@ launch open_kernel grid=(...) block=(256) args=(x, y, <stage>, <spill>)");
    support_contains(r.message.ptr, "rows, cols, scale, sm_count");
    support_contains(r.message.ptr, "Send only the plan lines");
    support_contains(r.message.ptr, "what `stage` of `open_kernel` stands for");
    assert_non_null(r.bundle);
    assert_string_equal(r.bundle->files[0].text.ptr, OPEN_KERNEL);
    bad(FENCE("cuda", "template <int A>\n__global__ void __launch_bounds__(A, 2)\nother(const "
                      "float *__restrict__ x, int n = 3, "
                      "float (*f)[4]) {}\n"),
        "plan.error", "//@ launch other<...> grid=(...) block=(256) args=(x, <n>, <f>)");
    bad(FENCE("cuda", KERNEL "int main() { scaled<<<1, 2>>>(0, 0, 0, 0); }\n"), "plan.error",
        "`scaled` is given no memory");
}

static void plan_lines_alone_join_the_earlier_code(void **state)
{
    (void)state;
    static const struct rung_file file = {.struct_size = sizeof(file),
                                          .path = "earlier.cu",
                                          .text = {OPEN_KERNEL, sizeof(OPEN_KERNEL) - 1}};
    static const struct rung_bundle earlier = {
        .struct_size = sizeof(earlier), .n_files = 1, .language = "cuda", .files = &file};
#define ITS_PLAN                                                                                   \
    "//@ temp part f32 [cols]\n"                                                                   \
    "//@ launch open_kernel grid=(rows) block=(32) args=(x, y, 0, part)\n"
    reply_flags = RUNG_REPLY_PLAN_ONLY;
    reply_base = &earlier;
    struct rung_reply_result r = good("The plan:\n" FENCE("", ITS_PLAN), ITS_PLAN OPEN_KERNEL);
    assert_string_equal(r.bundle->files[0].path, "earlier.cu");
    good(ITS_PLAN, ITS_PLAN OPEN_KERNEL);
    /* A whole candidate is fine too, and nothing at all is asked for again with the code kept. */
    good(FENCE("cuda", LAUNCH KERNEL), LAUNCH KERNEL);
    r = read_text(FENCE("cuda", "dim3 g(rows);\nopen_kernel<<<g, 64>>>(x, y, 1, x);\n"));
    assert_string_equal(r.code, "");
    support_contains(r.bundle->files[0].text.ptr,
                     "//@ launch open_kernel grid=(rows) block=(64) args=(x, y, 1, x)\n");
    r = bad("I can see no problem.", "plan.error", "Send only the plan lines");
    assert_non_null(r.bundle);
    r = bad(FENCE("", "//@ launch open_kernel grid=(nothing) block=(32) args=(x)"), "plan.error",
            "nothing");
    assert_non_null(r.bundle);
    reply_flags = 0;
    reply_base = NULL;
}

static void the_parents_plan_is_inherited(void **state)
{
    (void)state;
    static const struct rung_file file = {
        .struct_size = sizeof(file), .path = "p.cu", .text = {ITS_PLAN OPEN_KERNEL, 0}};
    static struct rung_file filled;
    static const struct rung_bundle old = {
        .struct_size = sizeof(old), .n_files = 1, .language = "cuda", .files = &filled};
    filled = file;
    filled.text.len = strlen(filled.text.ptr);
    reply_parent = &old;
#define CHANGED                                                                                    \
    "__global__ void open_kernel(const float *__restrict__ in, float *out, int s, float *t)\n"     \
    "{\n    out[blockIdx.x] = in[s] * t[1];\n}\n"
    struct rung_reply_result r = good(FENCE("cuda", CHANGED), ITS_PLAN CHANGED);
    support_contains(r.note.ptr, "parent");
    bad(FENCE("cuda", "__global__ void open_kernel(const double *x, float *y, int s, float *t)\n"
                      "{\n}\n"),
        "plan.error", "open_kernel");
    reply_parent = NULL;
}

/* The entry file has this line. */
static void has_line(const char *reply, const char *line)
{
    struct rung_reply_result r = read_text(reply);
    if (r.code[0])
        fail_msg("%s: %s", r.code, r.message.ptr);
    support_contains(r.bundle->files[0].text.ptr, line);
    assert_null(strstr(r.bundle->files[0].text.ptr, "<<<"));
}

static void host_code_becomes_a_plan(void **state)
{
    (void)state;
#define HOST(body)                                                                                 \
    FENCE("cuda", KERNEL "void run(const float *x, float *y, int rows, int cols)\n{\n" body "\n}"  \
                         "\n")
    has_line(HOST("scaled<<<rows, 256>>>(x, y, cols, 2.0f);"),
             "//@ launch scaled grid=(rows) block=(256) args=(x, y, cols, 2.0)\n");
    has_line(HOST("int b = (cols + 3) / 4; if (b > 256) b = 256;\n"
                  "scaled<<<dim3(rows), b, b * sizeof(float)>>>(x, y, cols, 1 / 8.f);"),
             "//@ launch scaled grid=(rows) block=(min(ceil_div(cols, 4), 256)) "
             "shared=(min(ceil_div(cols, 4), 256) * 4) args=(x, y, cols, 0.125)\n");
    struct rung_reply_result r =
        good(HOST("if (cols % 4) { scaled<<<rows, 32>>>(x, y, cols, 3.f); return; }\n"
                  "for (int i = 0; i < 2; ++i)\n"
                  "    scaled<<<rows / 2, 64>>>(x + i * rows / 2 * cols, y, cols, 3.f);"),
             "//@ launch scaled grid=(rows) block=(32) args=(x, y, cols, 3.0) when=(cols % 4 != "
             "0)\n"
             "//@ launch scaled grid=(rows / 2) block=(64) args=(x, y, cols, 3.0) when=(cols % 4 "
             "== 0)\n"
             "//@ launch scaled grid=(rows / 2) block=(64) args=(x + rows / 2 * cols, y, cols, "
             "3.0) when=(cols % 4 == 0)\n" KERNEL "\n");
    support_contains(r.note.ptr, "Took host code out");
    has_line(FENCE("cuda", KERNEL "#define GO(T) scaled<<<rows, T>>>(x, y, cols, 5.f)\n"
                                  "void run(const float *x, float *y, int rows, int cols)\n"
                                  "{\n    if (cols > 32) GO(256); else GO(32);\n}\n"),
             "//@ launch scaled grid=(rows) block=(32) args=(x, y, cols, 5.0) when=(cols <= 32)\n");
    bad(HOST("for (int r = 0; r < rows; ++r) scaled<<<1, 64>>>(x + r * cols, y, cols, 3.f);"),
        "plan.error", "how often it turns depends on");
    bad(HOST("scaled<<<read_config(), 64>>>(x, y, cols, 3.f);"), "plan.error", "read_config()");
}

/* A tensor's memory is what its strides say; host code that makes dense ones is no plan. */
static void dense_host_code_is_refused_for_strides(void **state)
{
    static const char *const bodies[] = {"", "    x = x.contiguous();\n"};
    struct rung_tensor_spec tensors[2] = {harness_task()->tensors[0], harness_task()->tensors[1]};
    struct rung_task padded = *harness_task();
    char text[2048];
    (void)state;
    padded.tensors = tensors;
    reply_task = &padded;
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text,
                 "```cpp\n" KERNEL "torch::Tensor forward(torch::Tensor x, double scale) {\n%s"
                 "    auto y = torch::empty_like(x);\n"
                 "    scaled<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), "
                 "x.size(1), scale);\n    return y;\n}\n```\n",
                 bodies[i % 2]);
        tensors[i / 2].stride[0] = "cols + 3";
        tensors[i / 2].stride[1] = "1";
        if (i == 0)
            assert_string_equal(read_text(text).code, "");
        else if (i == 1)
            bad(text, "plan.error", "contiguous of a tensor with strides");
        else
            bad(text, "plan.error", i == 2 ? "`y` has strides" : "with strides");
    }
    reply_task = NULL;
}

static void wrong_plan_lines_are_told(void **state)
{
    (void)state;
    struct rung_reply_result r = bad(
        FENCE("cuda", "//@ lanch scaled\n//@ launch scaled grid=(rows) args=(x, nothing)\n" KERNEL),
        "plan.error", "lanch");
    support_contains(r.message.ptr, "kernel.cu:1");
    support_contains(r.message.ptr, "Send only the plan lines again");
    assert_non_null(r.bundle);
}

static void sources_of_the_user(void **state)
{
    (void)state;
    static const char *const texts[] = {LAUNCH KERNEL, OPEN_KERNEL, "int x;\n"};
    static const char *const codes[] = {"", "plan.error", "reply.none"};
    for (int i = 0; i < 3; i++) {
        struct rung_reply_result r = {.struct_size = sizeof(r)};
        struct rung_text text = {texts[i], strlen(texts[i])};
        int32_t status;
        RUNG_INVOKE(status, h.instance, struct rung_codegen_ops, read_source, &h.call,
                    harness_task(), "/home/me/my kernels/best.cu", text, &r);
        assert_int_equal(status, RUNG_OK);
        assert_string_equal(r.code, codes[i]);
        if (!i)
            assert_string_equal(r.bundle->files[0].path, "best.cu");
    }
}

/* ---- Hostile -------------------------------------------------------------------------------- */

static char *repeat(const char *part, size_t bytes)
{
    size_t n = strlen(part);
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    for (size_t i = 0; i < bytes; i++)
        text[i] = part[i % n];
    text[bytes] = '\0';
    return text;
}

static void hostile_texts_end_soon(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "`",
        "```\n",
        "~~~",
        ">",
        "> ",
        "- ",
        "[",
        "![",
        "*",
        "_",
        "<",
        "(",
        "\\",
        "<think>",
        "</think>",
        "//@",
        "//@ launch k\n",
        "__global__ ",
        "__global__ void k(",
        "template <",
        "include \"",
        "\"",
        "'",
        "/*",
        "R\"(",
        "```cuda\n__global__ void k() {}\n```\n",
        "```cuda\n// file: a.cuh\n#include \"a.cuh\"\n__global__ void k() {}\n//@ launch k\n```\n",
        "1. ",
        "# ",
        "|a",
        "&#0;",
        "\xff",
        "\t",
        "((",
        "a(",
        "**a.cu**\n\n```\nint x;\n```\n\n",
        "1)\n",
        "* a\n",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        char *text = repeat(parts[i], 60000);
        char *fenced = malloc(70000);
        uint64_t start = rung_now_ns();
        read_text(text);
        snprintf(fenced, 70000, "```cuda\n__global__ void a() {}\n%s", text);
        read_text(fenced);
        uint64_t ms = (rung_now_ns() - start) / 1000000;
        if (ms > 5000)
            fail_msg("part %zu (%s): %d ms", i, parts[i], (int)ms);
        free(text);
        free(fenced);
    }
}

static void odd_bytes_become_text(void **state)
{
    (void)state;
    static const char zero[] =
        "```cuda\n" LAUNCH KERNEL "// \0 \xff \xc3\x28 \xed\xa0\x80 \xf4\x90\x80\x80\n```\n";
    struct rung_reply_result r = read_n(zero, sizeof(zero) - 1);
    assert_string_equal(r.code, "");
    assert_int_equal(strlen(r.bundle->files[0].text.ptr), r.bundle->files[0].text.len);
    support_contains(r.bundle->files[0].text.ptr, "// ? ? ?( ??? ????\n");
    char *large = repeat("x", (1 << 20) + 1);
    bad(large, "reply.none", "1 MiB");
    free(large);
}

/* Random cuts and splices of a good reply never do harm. */
static void spliced_replies_do_no_harm(void **state)
{
    (void)state;
    static const char base[] = "<think>x</think>\nText `a.cuh`\n\n" FENCE(
        "cuda", LAUNCH
        "#include \"a.cuh\"\n" KERNEL) "\n- b\n\n  ~~~cpp\n  // file: a.cuh\n  int x = '\\'' + "
                                       "R\"(\")\"[0];\n  ~~~\n\n    indented __global__ void k() "
                                       "{}\n" FENCE("", "//@ launch k<1, (2 > 1)> grid=(1) "
                                                        "block=(1) args=()\n");
    uint32_t words[4];
    for (uint32_t i = 0; i < 1500; i++) {
        char text[2 * sizeof(base)];
        size_t n = 0;
        for (uint32_t part = 0; part < 2; part++) {
            rung_philox_words(7, i, part * 2, words, 2);
            size_t from = words[0] % sizeof(base), len = words[1] % (sizeof(base) - from);
            memcpy(text + n, base + from, len);
            n += len;
        }
        read_n(text, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_block),
        cmocka_unit_test(usage_examples_are_left),
        cmocka_unit_test(parts_are_joined),
        cmocka_unit_test(helpers_in_blocks_of_their_own_are_joined),
        cmocka_unit_test(named_files_stay_files),
        cmocka_unit_test(unclosed_fences),
        cmocka_unit_test(code_without_fences),
        cmocka_unit_test(replies_without_code),
        cmocka_unit_test(thoughts_are_skipped),
        cmocka_unit_test(files_of_other_kinds_are_read_like_replies),
        cmocka_unit_test(missing_plan_lines_are_asked_for),
        cmocka_unit_test(plan_lines_alone_join_the_earlier_code),
        cmocka_unit_test(the_parents_plan_is_inherited),
        cmocka_unit_test(host_code_becomes_a_plan),
        cmocka_unit_test(dense_host_code_is_refused_for_strides),
        cmocka_unit_test(wrong_plan_lines_are_told),
        cmocka_unit_test(sources_of_the_user),
        cmocka_unit_test(hostile_texts_end_soon),
        cmocka_unit_test(odd_bytes_become_text),
        cmocka_unit_test(spliced_replies_do_no_harm),
    };
    return cmocka_run_group_tests_name("reply", tests, setup, teardown);
}
