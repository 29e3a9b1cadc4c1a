/* llm_catalog: what it proposes, writes and repairs, for tasks that it knows and for others. */
#include "harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SOFTMAX                                                                                    \
    "## Task\n\n```\nTask softmax: Row-wise softmax\nComputes: y = softmax(x, axis=1)\nDims:\n"    \
    "  rows (such as 64; at least 1)\n  cols (such as 1000; at least 1)\nTensors:\n"               \
    "  x: input f32 [rows, cols], row-major, 256-byte aligned\n"                                   \
    "  y: output f32 [rows, cols], row-major, 256-byte aligned\nPrecision: fp32.\n```\n\n"

static struct model model;

static int open_catalog(void **state)
{
    (void)state;
    return model_open(&model, "catalog", "{}");
}

static int close_model(void **state)
{
    (void)state;
    model_close(&model);
    return 0;
}

static const char *ask(const char *role, const char *key, uint64_t seed, const char *user)
{
    assert_int_equal(model_ask(&model, role, key, seed, user), RUNG_OK);
    assert_int_equal(model.response.finish, RUNG_FINISH_STOP);
    assert_string_equal(model.response.model, "catalog");
    return model_text(&model);
}

/* A softmax prompt with a section after the task. */
static const char *prompt(char *buf, size_t size, const char *rest)
{
    snprintf(buf, size, "%s%s", SOFTMAX, rest);
    return buf;
}

static char *block_of(const char *reply)
{
    const char *open = strstr(reply, "```cuda\n");
    assert_non_null(open);
    open += strlen("```cuda\n");
    const char *close = strstr(open, "```");
    assert_non_null(close);
    return strndup(open, (size_t)(close - open));
}

static void the_first_kernel_is_the_plain_one(void **state)
{
    (void)state;
    char *code = block_of(ask("code", "code/0/0", 1, SOFTMAX));
    support_contains(code, "// catalog: softmax/naive variant ");
    support_contains(code, "args=(x, y, rows, cols)");
    assert_null(strstr(code, "{{"));
    assert_null(strstr(code, "//!"));
    free(code);
    assert_int_equal(model.response.usage.estimated, 1);
    assert_int_equal(model.response.usage.input, (int64_t)(strlen(SOFTMAX) + 3) / 4);
    assert_true(model.response.usage.output > 100);
}

static void names_come_from_the_task(void **state)
{
    (void)state;
    static const char task[] =
        "## Task\n```\ngraph: out = softmax(logits, axis=-1)\nlogits: input f32 [b * heads, n]\n"
        "out: output f32 [b * heads, n]\n```\n";
    char *code = block_of(ask("code", "code/0/0", 1, task));
    support_contains(code, "args=(logits, out, (b * heads), n)");
    free(code);
}

static void check_differ(const char *key, const char *other)
{
    char *first = block_of(ask("code", key, 7, SOFTMAX));
    char *second = block_of(ask("code", other, 7, SOFTMAX));
    char *again = block_of(ask("code", key, 7, SOFTMAX));
    assert_string_equal(first, again);
    const char *a = strstr(first, "//@ tune"), *b = strstr(second, "//@ tune");
    assert_true(strncmp(a, b, strcspn(a, "\n")) != 0);
    free(first);
    free(second);
    free(again);
}

static void branches_differ_and_repeat(void **state)
{
    (void)state;
    check_differ("code/3/0", "code/3/1");
    check_differ("code/9/0", "code/10/0");
}

/* Proposes until nothing is left, listing what was proposed as tried; every idea comes once. */
static void ideas_never_repeat(void **state)
{
    (void)state;
    char tried[16384] = "## Ideas so far\n";
    uint32_t total = 0;
    for (uint32_t round = 0; round < 20; ++round) {
        char user[32768], key[32];
        snprintf(user, sizeof user, "%s%s\nPropose 3 ideas.\n", SOFTMAX, tried);
        snprintf(key, sizeof key, "ideas/%u/0", round);
        const char *reply = ask("ideas", key, 1, user);
        uint32_t n = 0;
        for (const char *line = strstr(reply, "- ["); line; line = strstr(line + 1, "- [")) {
            char sentence[400];
            assert_int_equal(sscanf(line, "- [%*[a-z_]] %399[^\n]", sentence), 1);
            assert_null(strstr(tried, sentence));
            const size_t used = strlen(tried);
            snprintf(tried + used, sizeof tried - used,
                     "- #%u (from candidate 1, category memory) %s → slower\n", ++total, sentence);
            ++n;
        }
        assert_true(n <= 3);
        if (n == 0) {
            support_contains(reply, "has been tried");
            break;
        }
    }
    assert_int_equal(total, 15);
}

static void ideas_build_on_the_parent(void **state)
{
    (void)state;
    char user[8192];
    const char *reply =
        ask("ideas", "ideas/1/0", 1,
            prompt(user, sizeof user,
                   "## Ideas so far\n\n## Parent\n\n### Candidate 4\n\n```cuda\n"
                   "// catalog: softmax/online variant 2\nint x;\n```\n\nPropose 2 ideas.\n"));
    /* The three that improve on online are the only ones of the best kind. */
    const char *const builds_on_online[] = {"four floats at a time",
                                            "Copy the row into shared memory",
                                            "Split each row over several blocks"};
    uint32_t n = 0;
    for (size_t i = 0; i < 3; ++i)
        n += strstr(reply, builds_on_online[i]) != NULL;
    assert_int_equal(n, 2);
    /* All that there is, but not the plain kernel that the search began with. */
    reply = ask("ideas", "ideas/1/0", 1,
                prompt(user, sizeof user,
                       "## Parent\n\n```cuda\n// catalog: softmax/online variant 2\n```\n\n"
                       "Propose 64 ideas.\n"));
    assert_null(strstr(reply, "[baseline]"));
    support_contains(reply, "[parallelism]");
}

static void an_idea_gets_its_kernel(void **state)
{
    (void)state;
    char user[8192];
    char *code = block_of(
        ask("code", "code/5/0", 1,
            prompt(user, sizeof user,
                   "## Parent\n\n### Candidate 1\n\n```cuda\n// catalog: softmax/naive variant 0\n"
                   "```\n\n## Idea\n\nGive each row to one warp and combine its lanes with "
                   "shuffles, so that no shared memory and no barrier is needed.\n")));
    support_contains(code, "// catalog: softmax/warp_per_row");
    free(code);
    /* In other words. */
    code = block_of(ask(
        "code", "code/6/0", 1,
        prompt(user, sizeof user,
               "## Parent\n\n```cuda\nint x;\n```\n\n## Idea\n\nOne warp for each row; combine the "
               "lanes with shuffles, no shared memory, and no barrier needed.\n")));
    support_contains(code, "// catalog: softmax/warp_per_row");
    free(code);
}

static void an_unknown_idea_is_refused(void **state)
{
    (void)state;
    char user[8192];
    const char *reply =
        ask("code", "code/5/0", 1,
            prompt(user, sizeof user,
                   "## Parent\n\n```cuda\nint x;\n```\n\n## Idea\n\nUse tensor cores.\n"));
    assert_null(strstr(reply, "```"));
    support_contains(reply, "no softmax kernel for this idea");
}

/* The message with which it refuses a task; no reply comes, since no further request would help. */
static const char *refusal(const char *role, const char *user)
{
    assert_int_equal(model_ask(&model, role, "code/1/0", 1, user), RUNG_EUNSUPPORTED);
    assert_string_equal(model.error.symbol, "catalog.lacks");
    return model.error.message;
}

static void tasks_that_it_lacks_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *graph, *tensors, *why;
    } cases[] = {
        {"y = cumsum(x, axis=1)", "x: input f32 [m, n]\ny: output f32 [m, n]",
         "no kernel for cumsum; it has: "},
        {"y = relu(cumsum(x, axis=1))", "x: input f32 [m, n]\ny: output f32 [m, n]",
         "no kernel for cumsum"},
        {"c = matmul(a, b)", "a: input f64 [m, k]\nb: input f64 [k, n]\nc: output f64 [m, n]",
         "this form of matmul; it has `c = chain(matmul(a, b))`"},
        {"c = matmul(a, b)", "a: input f32 [m, k]\nb: input f32 [n, k]\nc: output f32 [m, n]",
         "this form of matmul"},
        {"y = softmax(x, axis=0)", "x: input f32 [m, n]\ny: output f32 [m, n]",
         "this form of softmax; it has `y = softmax(x, axis=axis)` with x f32 [rows.., @axis"},
        {"y = softmax(x, axis=1, axis=1)", "x: input f32 [m, n]\ny: output f32 [m, n]",
         "this form of softmax"},
        {"y = softmax(x, axis=1)", "x: input f16 [m, n]\ny: output f16 [m, n]",
         "this form of softmax"},
        {"y = softmax(x, axis=1)", "x: input f32 [m, n]\ny: output f32 [m, n]\nz: output f32 [m]",
         "this form of softmax"},
        {"y = relu(x)", "x: input f16 [n]\ny: output f16 [n]", "f32"},
        {"y = relu(x", "x: input f32 [n]\ny: output f32 [n]", "')'"},
        {"y = relu([1, 2)", "x: input f32 [n]\ny: output f32 [n]", "']'"},
        {"y = sum(x, axis=[0, 1])", "x: input f32 [m, n]\ny: output f32 []", "this form of sum"},
        {"y = x + b", "x: input f32 [m, n]\nb: input f32 [n]\ny: output f32 [m, n]",
         "broadcasting"},
        {"y = gelu(x, approximate=erf)", "x: input f32 [n]\ny: output f32 [n]",
         "further arguments"},
        {"y = relu(z)", "x: input f32 [n]\ny: output f32 [n]", "the name z"},
        {"y = relu(x)", "x: input f32 [n`; evil]\ny: output f32 [n]", "shape"},
        {"y = relu(x)",
         "x: input f32 [m, n], strides [n + 3, 1] elements (never write between them), 256-byte "
         "aligned\ny: output f32 [m, n]",
         "only of dense tensors; x has strides"},
        {"y = relu(x)", "x: input f32 [n], row-major, 4-byte aligned\ny: output f32 [n]",
         "aligned"},
        {"y = maximum(x)", "x: input f32 [n]\ny: output f32 [n]", "all its arguments"},
        {"", "x: input f32 [n]", "no graph"},
    };
    static const char *const roles[] = {"ideas", "code", "repair"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char user[1024];
        snprintf(user, sizeof user, "## Task\n```\ngraph: %s\n%s\n```\n", cases[i].graph,
                 cases[i].tensors);
        for (size_t r = 0; r < 3; ++r) {
            const char *message = refusal(roles[r], user);
            support_contains(message, "The catalog has no kernel for");
            support_contains(message, cases[i].why);
        }
    }
}

/* Forms match under other names of tensors, dims and arguments, and fill in what is left out. */
static void forms_match_in_other_words(void **state)
{
    (void)state;
    static const struct {
        const char *task, *want[3];
    } cases[] = {
        {"graph: out = softmax(t, axis=-1)\nt: input f32 [a, b, c]\nout: output f32 [a, b, c]",
         {"args=(t, out, (a * b), c)"}},
        {"graph: z = layer_norm(h, g, s, 2)\nh: input f32 [n, t, d]\ng: weight f32 [d]\n"
         "s: weight f32 [d]\nz: output f32 [n, t, d]",
         {"args=(h, g, s, z, (n * t), d, 1e-05)"}},
        {"graph: z = layernorm(h, weight=g, bias=s, axis=1, eps=e)\nh: input f32 [n, t, d]\n"
         "g: weight f32 [t, d]\ns: weight f32 [t, d]\nz: output f32 [n, t, d]\ne: f64 = 1e-3",
         {"args=(h, g, s, z, n, (t * d), e)"}},
        {"graph: u = matmul(p, q, transpose_b=True); y = relu(u * s + b)\np: input f32 [m, k]\n"
         "q: weight f32 [n, k]\nb: weight f32 [n]\ny: output f32 [m, n]\ns: f64 = 2",
         {"matmul_naive<0, 1, BX, 8>", "args=(p, q, y, m, n, k, b, s)",
          "const float t0 = v0;\n    return op_relu(((t0 * s0) + c0));"}},
        {"graph: y = bmm(p, q)\np: input f16 [h, m, k]\nq: input f16 [h, k, n]\n"
         "y: output f16 [h, m, n]",
         {"matmul_naive<0, 0, BX, 8>", "* h) block"}},
        {"graph: y = matmul(p, q)\np: input f32 [h, m, k]\nq: weight f32 [k, n]\n"
         "y: output f32 [h, m, n]",
         {"args=(p, q, y, (h * m), n, k)"}},
        {"graph: y = conv2d(i, f, padding=2, stride=4)\ni: input f32 [n, c, h, w]\n"
         "f: weight f32 [k, c, 3, 3]\ny: output f32 [n, k, p, q]",
         {"conv2d_naive<0, TPB>", "args=(i, f, i, y, n, c, h, w, k, 3, 3, p, q, 4, 2)"}},
        {"graph: y = maxpool2d(x, kernel=3)\nx: input f32 [n, c, h, w]\ny: output f32 [n, c, p, q]",
         {"args=(x, y, (n * c), h, w, p, q, 3, 3, 0, 0)"}},
        {"graph: y = mean(x, dim=-2, keepdim=1)\nx: input f32 [a, b, c]\ny: output f32 [a, 1, c]",
         {"reduce_naive<1, TPB>", "args=(x, y, a * c, b, c)"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char user[1024];
        snprintf(user, sizeof user, "## Task\n```\n%s\n```\n", cases[i].task);
        char *code = block_of(ask("code", "code/0/0", 1, user));
        for (size_t w = 0; w < 3 && cases[i].want[w]; ++w)
            support_contains(code, cases[i].want[w]);
        free(code);
    }
}

static void elementwise_chains_become_expressions(void **state)
{
    (void)state;
    static const struct {
        const char *graph, *want;
    } cases[] = {
        {"y = relu(x * a + b)", "return op_relu(((v0 * v1) + v2));"},
        {"y = x * scale", "return (v0 * s0);"},
        {"y = gelu(x)", "op_gelu(float v) { return 0.5f * v * (1.0f + erff("},
        {"y = gelu(x, approximate=tanh)", "return op_gelu_tanh(v0);"},
        {"t = x + a; y = t * sigmoid(t)",
         "    const float t0 = (v0 + v1);\n    return (t0 * op_sigmoid(t0));"},
        {"y = -x ** 2", "return (-op_square(v0));"},
        {"y = x ** 3.5 - 1e-5", "return (powf(v0, 3.5f) - 1e-05f);"},
        {"y = clamp(x, min=-1, max=2.5)", "return op_clamp(v0, (-1.0f), 2.5f);"},
        {"y = leaky_relu(x, 0.2)", "return op_leaky_relu(v0, 0.2f);"},
        {"y = leaky_relu(x, slope=a)", "return op_leaky_relu(v0, v1);"},
        {"y = clamp(x, max=3)", "return op_clamp(v0, __int_as_float(0xff800000), 3.0f);"},
        {"y = minimum(maximum(x, a), pow(b, 2.5))",
         "return op_minimum(op_maximum(v0, v1), powf(v2, 2.5f));"},
        {"y = leaky_relu(x)", "return op_leaky_relu(v0, 0.01f);"},
        {"x = x + 1; y = x", "    const float t0 = (v0 + 1.0f);\n    return t0;"},
        {"y = mish(x) + softplus(x)", "return (op_mish(v0) + op_softplus(v0));"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char user[1024];
        snprintf(user, sizeof user,
                 "## Task\n```\ngraph: %s\nx: input f32 [m, n]\na: input f32 [m, n]\nb: weight f32 "
                 "[m, n]\n"
                 "y: output f32 [m, n]\nscale: f64 = 2\n```\n",
                 cases[i].graph);
        char *code = block_of(ask("code", "code/0/0", 1, user));
        support_contains(code, cases[i].want);
        support_contains(code, "grid=(ceil_div((m * n), TPB))");
        free(code);
    }
}

static void a_mistake_is_made_and_repaired(void **state)
{
    (void)state;
    struct model faulty;
    uint32_t kinds = 0;
    assert_int_equal(model_open(&faulty, "catalog", "{\"mistakes\": 100}"), RUNG_OK);
    for (uint32_t seed = 0; seed < 12; ++seed) {
        assert_int_equal(model_ask(&faulty, "code", "code/0/0", seed, SOFTMAX), RUNG_OK);
        char *bad = block_of(model_text(&faulty));
        char *good = block_of(ask("code", "code/0/0", seed, SOFTMAX));
        assert_string_not_equal(bad, good);
        kinds |= strstr(bad, "if (row >= rows) return;") ? 1 : 2;
        char user[16384];
        snprintf(user, sizeof user,
                 "%s## Parent\n\n```cuda\n%s```\n\n## Fault\n\ncompile.error: expected a ;\n",
                 SOFTMAX, bad);
        assert_int_equal(model_ask(&faulty, "repair", "repair/1/0", seed, user), RUNG_OK);
        char *repaired = block_of(model_text(&faulty));
        assert_string_equal(repaired, good);
        free(bad);
        free(good);
        free(repaired);
    }
    assert_int_equal(kinds, 3); /* semicolons and guards */
    model_close(&faulty);
}

static void a_right_kernel_is_not_repaired_into_itself(void **state)
{
    (void)state;
    char *good = block_of(ask("code", "code/0/0", 1, SOFTMAX));
    char user[16384];
    snprintf(user, sizeof user, "%s## Parent\n\n```cuda\n%s```\n\n## Fault\n\nlaunch.error\n",
             SOFTMAX, good);
    const char *reply = ask("repair", "repair/1/0", 1, user);
    assert_null(strstr(reply, "```"));
    free(good);
}

static void a_failing_reply_in_the_conversation_is_found(void **state)
{
    (void)state;
    static const char wrong[] =
        "Here:\n```cuda\n// catalog: softmax/online variant 5\nint broken\n```\n";
    static const char fault[] = "## Fault\n\ncompile.error: expected a ';'\n";
    const struct rung_part parts[3] = {
        {.struct_size = sizeof *parts,
         .kind = RUNG_PART_TEXT,
         .text = {SOFTMAX, sizeof SOFTMAX - 1}},
        {.struct_size = sizeof *parts, .kind = RUNG_PART_TEXT, .text = {wrong, sizeof wrong - 1}},
        {.struct_size = sizeof *parts, .kind = RUNG_PART_TEXT, .text = {fault, sizeof fault - 1}},
    };
    const struct rung_message messages[3] = {
        {.struct_size = sizeof *messages, .role = RUNG_MSG_USER, .parts = &parts[0], .n_parts = 1},
        {.struct_size = sizeof *messages,
         .role = RUNG_MSG_ASSISTANT,
         .parts = &parts[1],
         .n_parts = 1},
        {.struct_size = sizeof *messages, .role = RUNG_MSG_USER, .parts = &parts[2], .n_parts = 1},
    };
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 3,
                                             .key = "code/2/0",
                                             .role = "repair",
                                             .messages = messages};
    assert_int_equal(model_send(&model, &request), RUNG_OK);
    char *code = block_of(model_text(&model));
    support_contains(code, "// catalog: softmax/online variant 5\n");
    free(code);
}

static void hostile_prompts_are_answered(void **state)
{
    (void)state;
    const size_t size = 2 << 20;
    char *text = malloc(size + 1);
    static const char *const fills[] = {"## Task\n",
                                        "(",
                                        "- #1 x\n",
                                        "```\n",
                                        "x: input f32 [a,a,a,a,a,a,a,a,a]\n",
                                        "// catalog: ../../etc variant 99999999999\n",
                                        "graph: y = ((((((((",
                                        "{{x}}",
                                        "\xff\xfe\x00"};
    for (size_t f = 0; f < sizeof fills / sizeof *fills; ++f) {
        const size_t n = strlen(fills[f]);
        size_t used = 0;
        memcpy(text, SOFTMAX "## Ideas so far\n", sizeof SOFTMAX + 15);
        used = sizeof SOFTMAX + 15;
        for (; used + n < size; used += n)
            memcpy(text + used, fills[f], n);
        text[used] = 0;
        static const char *const roles[] = {"ideas", "code", "repair"};
        for (size_t r = 0; r < 3; ++r) {
            const int32_t status = model_ask(&model, roles[r], "code/1/0", 1, text);
            assert_true(status == RUNG_OK || status == RUNG_EUNSUPPORTED);
        }
    }
    free(text);
}

static void deep_graphs_are_bounded(void **state)
{
    (void)state;
    char user[20000];
    int n =
        snprintf(user, sizeof user, "## Task\nx: input f32 [n]\ny: output f32 [n]\ngraph: y = ");
    memset(user + n, '-', 3000);
    snprintf(user + n + 3000, sizeof user - (size_t)n - 3000, "x\n");
    support_contains(refusal("code", user), "nested too deeply");
    memset(user + n, '+', 10000);
    user[n + 10000] = 0;
    support_contains(refusal("code", user), "too long");
}

static int32_t stop_at_once(void *ctx, struct rung_text delta)
{
    *(uint64_t *)ctx += delta.len;
    return 1;
}

static void a_reader_can_stop_it(void **state)
{
    (void)state;
    uint64_t seen = 0;
    const struct rung_part part = {
        .struct_size = sizeof part, .kind = RUNG_PART_TEXT, .text = {SOFTMAX, sizeof SOFTMAX - 1}};
    const struct rung_message message = {
        .struct_size = sizeof message, .role = RUNG_MSG_USER, .parts = &part, .n_parts = 1};
    const struct rung_llm_request request = {.struct_size = sizeof request,
                                             .n_messages = 1,
                                             .key = "code/0/0",
                                             .role = "code",
                                             .messages = &message,
                                             .on_delta = stop_at_once,
                                             .on_delta_ctx = &seen};
    assert_int_equal(model_send(&model, &request), RUNG_ECANCELLED);
    assert_true(seen > 0);
}

/* Opens a catalog of one softmax file with this text; the status, and the message in *message. */
static int32_t open_file(const char *folder, const char *text, char message[1024])
{
    struct model other;
    char options[4096];
    char *path = support_path(folder, "softmax/one.cu");
    support_write_text(path, text);
    free(path);
    snprintf(options, sizeof options, "{\"dir\": \"%s\"}", folder);
    const int32_t status = model_open(&other, "catalog", options);
    snprintf(message, 1024, "%s", other.error.message);
    model_close(&other);
    return status;
}

#define HEAD "// operator: softmax\n// idea: An idea of some length.\n// category: memory\n"
#define FORM "// graph: y = softmax(x, axis=axis)\n// tensors: x f32 [rows.., cols]; y f32\n"
#define NONE "// after: none\n" FORM
#define LAUNCH "//@ launch k grid=(1) block=(1) args=()\n"

static void bad_catalog_files_are_refused_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "one.cu:0: the header lacks"},
        {HEAD LAUNCH, "one.cu:3: the header lacks"},
        {HEAD "// after: nowhere\n" LAUNCH, "leads to no kernel"},
        {HEAD "// after: one\n" LAUNCH, "leads back to itself"},
        {HEAD "// after: none\n// after: none\n" LAUNCH, "one.cu:5: a second 'after'"},
        {HEAD "// after: none\n// colour: red\n" LAUNCH, "one.cu:5: unknown header field 'colour'"},
        {HEAD "// after: none\n// unroll: 0\n" LAUNCH, "one.cu:5: 'unroll' takes"},
        {HEAD "// after: none\n// unroll: 1,\n" LAUNCH, "one.cu:5: 'unroll' takes"},
        {HEAD "// after: ../x\n" LAUNCH, "one.cu:4: 'after' is a file"},
        {"// operator: gemm\n", "one.cu:1: operator 'gemm' in folder 'softmax'"},
        {"// operator: softmax\n// idea: short\n", "one.cu:2: 'idea' is one sentence"},
        {HEAD NONE "int x;\n", "no //@ launch line"},
        {HEAD NONE LAUNCH "\n{{nonsense}}\n", "one.cu:9: unknown placeholder {{nonsense}}"},
        {HEAD NONE LAUNCH "{{at}} {{x\n", "one.cu:8: unknown placeholder"},
        {HEAD "// after: none\n" LAUNCH, "says in 'graph' which tasks"},
        {HEAD "// after: none\n// tensors: x f32\n" LAUNCH,
         "one.cu:5: 'tensors' before any 'graph'"},
        {HEAD "// after: none\n// graph: y = softmax(x)\n" LAUNCH, "'tensors' must follow"},
        {HEAD "// after: none\n// graph: y = softmax(x\n// tensors: x f32; y f32\n" LAUNCH,
         "lacks its ')'"},
        {HEAD "// after: none\n// graph: y = sftmax(x)\n// tensors: x f32; y f32\n" LAUNCH,
         "not known: sftmax"},
        {HEAD "// after: none\n// graph: y = softmax(x, size=3)\n// tensors: x f32; y f32\n" LAUNCH,
         "not known: softmax"},
        {HEAD "// after: none\n// graph: y = softmax(z)\n// tensors: x f32; y f32\n" LAUNCH,
         "lacks z"},
        {HEAD "// after: none\n// graph: y = softmax(x)\n// tensors: x f32; z f32\n" LAUNCH,
         "lacks y"},
        {HEAD
         "// after: none\n// graph: y = softmax(x)\n// tensors: x f32 [a.., b..]; y f32\n" LAUNCH,
         "where this run begins"},
        {HEAD "// after: none\n// graph: y = softmax(x)\n// tensors: x f32 [a-b]; y f32\n" LAUNCH,
         "has a dimension 'a-b'"},
        {HEAD NONE "// let: a\n" LAUNCH, "'let' gives a number"},
        {HEAD NONE "// let: a = ; evil\n" LAUNCH, "'let' gives a number"},
    };
    char *folder = support_folder();
    char *family = support_path(folder, "softmax");
    assert_int_equal(mkdir(family, 0700), 0);
    char message[1024];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        assert_int_equal(open_file(folder, cases[i].text, message), RUNG_ECONFIG);
        support_contains(message, cases[i].why);
    }
    assert_int_equal(open_file(folder, HEAD NONE LAUNCH, message), RUNG_OK);
    free(family);
    support_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_kernel_is_the_plain_one),
        cmocka_unit_test(names_come_from_the_task),
        cmocka_unit_test(branches_differ_and_repeat),
        cmocka_unit_test(ideas_never_repeat),
        cmocka_unit_test(ideas_build_on_the_parent),
        cmocka_unit_test(an_idea_gets_its_kernel),
        cmocka_unit_test(an_unknown_idea_is_refused),
        cmocka_unit_test(tasks_that_it_lacks_are_refused),
        cmocka_unit_test(forms_match_in_other_words),
        cmocka_unit_test(elementwise_chains_become_expressions),
        cmocka_unit_test(a_mistake_is_made_and_repaired),
        cmocka_unit_test(a_right_kernel_is_not_repaired_into_itself),
        cmocka_unit_test(a_failing_reply_in_the_conversation_is_found),
        cmocka_unit_test(hostile_prompts_are_answered),
        cmocka_unit_test(deep_graphs_are_bounded),
        cmocka_unit_test(a_reader_can_stop_it),
        cmocka_unit_test(bad_catalog_files_are_refused_with_their_line),
    };
    return cmocka_run_group_tests(tests, open_catalog, close_model);
}
