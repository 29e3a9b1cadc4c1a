/*
 * From a reply to a bundle: the model's thoughts are skipped, the candidate's blocks are found, and
 * the
 * //@ lines are checked by the host. Every fault is a text that tells the model what to send.
 */
#include "reply.h"
#include "choose.h"
#include "source.h"
#include "text.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPLY = 1 << 20, MAX_SOURCE = 4 << 20, MAX_EXAMPLES = 8 };

struct reading {
    const struct rung_host *host;
    struct rung_call *call;
    const struct rung_task *task;
    struct rung_reply_result *out;
    struct cg_blocks *blocks;
    struct cg_writer note;
};

/* ---- Answers -------------------------------------------------------------------------------- */

/* Sets a fault of the reply; the text is kept in the arena. */
static int32_t fault(struct reading *r, const char *code, const char *text)
{
    snprintf(r->out->code, sizeof(r->out->code), "%s", code);
    r->out->message = cg_keep(r->host, r->call->arena, text, strlen(text));
    r->out->bundle = NULL;
    r->out->plan = NULL;
    return r->out->message.ptr ? RUNG_OK : cg_no_memory(r->call->error);
}

static int32_t finish_fault(struct reading *r, const char *code, struct cg_writer *w)
{
    int32_t status = cg_close(w) ? fault(r, code, w->ptr) : cg_no_memory(r->call->error);
    free(w->ptr);
    return status;
}

/* ---- Plan ----------------------------------------------------------------------------------- */

/* Whether a name of the source means something in a plan line of this task. */
static bool known_name(const struct rung_task *task, const char *name, size_t n)
{
    for (uint32_t i = 0; i < task->n_tensors; i++)
        if (strlen(task->tensors[i].name) == n && !memcmp(task->tensors[i].name, name, n))
            return true;
    for (uint32_t i = 0; i < task->n_dims; i++)
        if (strlen(task->dims[i].name) == n && !memcmp(task->dims[i].name, name, n))
            return true;
    for (uint32_t i = 0; i < task->n_params; i++)
        if (strlen(task->params[i].name) == n && !memcmp(task->params[i].name, name, n))
            return true;
    return false;
}

static void write_example(FILE *f, const struct rung_task *task, const char *source,
                          const char *mask, const struct cg_kernel *k)
{
    size_t at = k->params, name, n;
    fprintf(f, "//@ launch %.*s%s grid=(...) block=(256) args=(", (int)k->name_len,
            source + k->name, k->templated ? "<...>" : "");
    for (int i = 0; i < 64 && cg_next_param(mask, k, &at, &name, &n); i++) {
        bool known = known_name(task, source + name, n);
        fprintf(f, known ? "%s%.*s" : "%s<%.*s>", i ? ", " : "", (int)n, source + name);
    }
    fprintf(f, ")\n");
}

/* There is code, but nothing says how to launch it. */
static int32_t ask_for_plan(struct reading *r, const char *source)
{
    struct cg_writer w;
    struct cg_kernel k;
    size_t at = 0, shown = 0;
    char *mask = cg_mask(source);
    if (!mask || !cg_open(&w)) {
        free(mask);
        return cg_no_memory(r->call->error);
    }
    fprintf(w.file, "The code is there, but no `//@ launch` line says how to launch it. Send the "
                    "same code again with "
                    "one such line a launch, in order, at the top of the file; host code is not "
                    "run. For the kernels of "
                    "this code:\n");
    while (shown < MAX_EXAMPLES && cg_next_kernel(mask, &at, &k)) {
        write_example(w.file, r->task, source, mask, &k);
        shown++;
    }
    if (!shown)
        fprintf(w.file, "//@ launch kernel grid=(...) block=(256) args=(...)\n");
    fprintf(w.file, "Names in <> are to be replaced by a tensor, a temp (`//@ temp name f32 "
                    "[count]`) or an expression over ");
    for (uint32_t i = 0; i < r->task->n_dims; i++)
        fprintf(w.file, "%s, ", r->task->dims[i].name);
    for (uint32_t i = 0; i < r->task->n_params; i++)
        fprintf(w.file, "%s, ", r->task->params[i].name);
    fprintf(w.file, "sm_count and tunes. grid counts blocks, block counts threads.\n");
    free(mask);
    return finish_fault(r, "plan.error", &w);
}

static int32_t tell_plan_problem(struct reading *r, struct rung_text problem)
{
    struct cg_writer w;
    if (!cg_open(&w))
        return cg_no_memory(r->call->error);
    fprintf(w.file,
            "The //@ lines are wrong:\n%s%sSend the whole candidate again with these lines put "
            "right; the code can stay "
            "as it is.\n",
            problem.ptr, problem.len && problem.ptr[problem.len - 1] == '\n' ? "" : "\n");
    return finish_fault(r, "plan.error", &w);
}

/* Checks the plan lines of the entry file; on success out->plan is set and code is "". */
static int32_t check_plan(struct reading *r, const char *path, struct rung_text source)
{
    const struct rung_host_plan *plans = r->host->get_extension(r->host, RUNG_HOST_PLAN);
    struct rung_text problem = {"", 0};
    const struct rung_plan *plan = NULL;
    size_t at = 0, name, n;
    if (!plans)
        return cg_fail(r->call->error, RUNG_EUNSUPPORTED, "codegen.no_plan",
                       "this process has no plan reader");
    if (!cg_next_launch(source.ptr, &at, &name, &n))
        return ask_for_plan(r, source.ptr);
    int32_t status = plans->parse(r->host, r->call, r->task, path, source, &plan, &problem);
    if (status != RUNG_OK)
        return status;
    if (!plan)
        return tell_plan_problem(r, problem);
    r->out->code[0] = '\0';
    r->out->plan = plan;
    return RUNG_OK;
}

/* ---- Bundle --------------------------------------------------------------------------------- */

static int32_t keep_bundle(struct reading *r, const struct cg_choice *c, struct rung_file entry)
{
    uint32_t n = (uint32_t)c->n_headers + 1;
    struct rung_bundle *bundle = r->host->alloc(r->host, r->call->arena, sizeof(*bundle), 16);
    struct rung_file *files = r->host->alloc(r->host, r->call->arena, n * sizeof(*files), 16);
    if (!bundle || !files)
        return cg_no_memory(r->call->error);
    files[0] = entry;
    for (uint32_t i = 1; i < n; i++) {
        const struct cg_block *b = &r->blocks->list[c->headers[i - 1]];
        files[i].struct_size = sizeof(*files);
        files[i].path = cg_keep(r->host, r->call->arena, b->path, strlen(b->path)).ptr;
        files[i].text = cg_keep(r->host, r->call->arena, b->code, strlen(b->code));
        if (!files[i].path || !files[i].text.ptr)
            return cg_no_memory(r->call->error);
    }
    *bundle = (struct rung_bundle){
        .struct_size = sizeof(*bundle), .n_files = n, .language = "cuda", .files = files};
    r->out->bundle = bundle;
    return RUNG_OK;
}

/* Entry text and path go to the arena, the plan is read, the bundle is made. */
static int32_t accept(struct reading *r, const struct cg_choice *c, const char *path,
                      const char *source)
{
    struct rung_file entry = {.struct_size = sizeof(entry)};
    entry.text = cg_keep(r->host, r->call->arena, source, strlen(source));
    entry.path = cg_keep(r->host, r->call->arena, path, strlen(path)).ptr;
    if (!entry.text.ptr || !entry.path)
        return cg_no_memory(r->call->error);
    int32_t status = check_plan(r, entry.path, entry.text);
    if (status != RUNG_OK || r->out->code[0])
        return status;
    return keep_bundle(r, c, entry);
}

/* ---- Replies -------------------------------------------------------------------------------- */

/* Behind the model's thoughts when the reply starts with them; NULL when it ends inside. */
static const char *skip_thoughts(const char *reply)
{
    static const char *const tags[] = {"think>", "thinking>", "reasoning>"};
    for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++) {
        size_t n = strlen(tags[i]);
        const char *start = reply + strspn(reply, " \t\n");
        bool opened = start[0] == '<' && !strncmp(start + 1, tags[i], n);
        const char *end = NULL;
        /* Some servers drop the opening tag: the last closing one counts. */
        for (const char *p = reply; (p = strstr(p, tags[i])); p += n)
            if (p >= reply + 2 && p[-1] == '/' && p[-2] == '<')
                end = p + n;
        if (end)
            return end;
        if (opened)
            return NULL;
    }
    return reply;
}

/* Whether the text starts like source, so that a reply without fences is code as a whole. */
static bool starts_like_code(const char *text)
{
    static const char *const starts[] = {"//",           "/*",        "#include",   "#define",
                                         "#pragma",      "template",  "__global__", "__device__",
                                         "extern \"C\"", "namespace", "constexpr",  "static ",
                                         "using ",       "typedef",   "struct ",    "__constant__"};
    text += strspn(text, " \t\n");
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (!strncmp(text, starts[i], strlen(starts[i])))
            return true;
    return false;
}

static bool is_refusal(const char *text)
{
    static const char *const words[] = {"i can't help",
                                        "i can\xe2\x80\x99t help",
                                        "i cannot help",
                                        "i can't assist",
                                        "i can\xe2\x80\x99t assist",
                                        "i cannot assist",
                                        "i'm unable to",
                                        "i am unable to",
                                        "i\xe2\x80\x99m unable to",
                                        "i won't ",
                                        "i will not ",
                                        "i can't provide",
                                        "i cannot provide",
                                        "i can\xe2\x80\x99t provide",
                                        "i can't comply",
                                        "i cannot comply",
                                        "i must decline",
                                        "i'm not able to",
                                        "i\xe2\x80\x99m not able to",
                                        "i am not able to",
                                        "unable to comply"};
    char start[601];
    size_t n = strlen(text);
    if (n > 4000) /* a refusal is short */
        return false;
    n = n < sizeof(start) ? n : sizeof(start) - 1;
    memcpy(start, text, n);
    start[n] = '\0';
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (cg_contains(start, words[i]))
            return true;
    return false;
}

#define WHAT_TO_SEND                                                                               \
    "Send one fenced block (```cuda) that holds the whole candidate: its //@ lines and all "       \
    "device code."

static int32_t no_kernel(struct reading *r, const char *text)
{
    bool plan = false, python = false;
    for (size_t i = 0; i < r->blocks->n; i++) {
        const struct cg_block *b = &r->blocks->list[i];
        plan |= b->plan;
        python |= !b->device_language && strstr(b->code, "__global__");
    }
    if (!text[strspn(text, " \t\n")])
        return fault(r, "reply.none", "The reply is empty. " WHAT_TO_SEND);
    if (python)
        return fault(r, "reply.none",
                     "The kernel stands inside a block of another language. Python and host code "
                     "are not run. " WHAT_TO_SEND);
    if (plan)
        return fault(r, "reply.none",
                     "The reply has //@ lines but no __global__ function. " WHAT_TO_SEND);
    if (r->blocks->n)
        return fault(r, "reply.none",
                     "No code block of the reply has a __global__ function. " WHAT_TO_SEND);
    if (is_refusal(text))
        return fault(r, "reply.refused",
                     "The reply declines the task. It is ordinary numerical code. " WHAT_TO_SEND);
    if (strstr(text, "__global__"))
        return fault(r, "reply.none",
                     "The code of the reply is not in a fenced block. " WHAT_TO_SEND);
    return fault(r, "reply.none", "The reply has no code. " WHAT_TO_SEND);
}

static int32_t truncated(struct reading *r)
{
    return fault(r, "reply.truncated",
                 "The reply ends in the middle of the code. Send the whole candidate again, "
                 "shorter: no comments on "
                 "what is plain, no explanation before or after, one fenced block.");
}

static int32_t read_blocks(struct reading *r, const char *text)
{
    struct cg_choice choice;
    bool raw = false;
    cg_blocks_read(r->blocks, text);
    bool found = cg_choose(r->blocks, &choice, r->note.file);
    if (!found && !r->blocks->failed && !strstr(text, "```") && starts_like_code(text)) {
        cg_blocks_free(r->blocks);
        cg_blocks_whole(r->blocks, text);
        raw = found = cg_choose(r->blocks, &choice, r->note.file);
    }
    if (r->blocks->failed)
        return cg_no_memory(r->call->error);
    if (!found)
        return no_kernel(r, text);
    if (raw)
        fprintf(r->note.file, "Took the whole reply as code. ");
    if (choice.unclosed && !choice.whole)
        return truncated(r);
    if (choice.unclosed && !raw)
        fprintf(r->note.file, "The code fence was not closed; the code looks complete. ");
    char *source = cg_join(r->blocks, &choice);
    int32_t status = source ? accept(r, &choice, cg_entry_path(r->blocks, &choice), source)
                            : cg_no_memory(r->call->error);
    free(source);
    return status;
}

/* The note without its last blank, in the arena. */
static int32_t keep_note(struct reading *r, int32_t status)
{
    bool good = cg_close(&r->note);
    size_t n = r->note.len;
    while (good && n && r->note.ptr[n - 1] == ' ')
        n--;
    r->out->note = cg_keep(r->host, r->call->arena, good ? r->note.ptr : "", good ? n : 0);
    free(r->note.ptr);
    if (!r->out->message.ptr)
        r->out->message = (struct rung_text){"", 0};
    return status == RUNG_OK && (!good || !r->out->note.ptr) ? cg_no_memory(r->call->error)
                                                             : status;
}

static int32_t read_clean(struct reading *r, const char *reply)
{
    const char *text = skip_thoughts(reply);
    if (!text)
        return fault(r, "reply.truncated",
                     "The reply ends inside its thoughts, before any code. Think less and send the "
                     "candidate.");
    r->blocks = calloc(1, sizeof(*r->blocks));
    if (!r->blocks || !cg_open(&r->note)) {
        free(r->blocks);
        return cg_no_memory(r->call->error);
    }
    int32_t status = keep_note(r, read_blocks(r, text));
    cg_blocks_free(r->blocks);
    free(r->blocks);
    return status;
}

/* The fields of a result that has nothing yet. */
static void clear(struct rung_reply_result *out)
{
    out->code[0] = '\0';
    out->message = out->note = (struct rung_text){"", 0};
    out->bundle = NULL;
    out->plan = NULL;
}

int32_t cg_read_reply(const struct rung_host *host, struct rung_call *call,
                      const struct rung_reply_request *req, struct rung_reply_result *out)
{
    struct reading r = {.host = host, .call = call, .task = req->task, .out = out};
    clear(out);
    if (req->reply.len > MAX_REPLY)
        return fault(&r, "reply.none", "The reply is over 1 MiB long. " WHAT_TO_SEND);
    char *clean = cg_clean(req->reply.ptr, req->reply.len);
    int32_t status = clean ? read_clean(&r, clean) : cg_no_memory(call->error);
    free(clean);
    return status;
}

/* ---- Sources of the user -------------------------------------------------------------------- */

int32_t cg_read_source(const struct rung_host *host, struct rung_call *call,
                       const struct rung_task *task, const char *path, struct rung_text source,
                       struct rung_reply_result *out)
{
    struct reading r = {.host = host, .call = call, .task = task, .out = out};
    static const struct cg_choice alone; /* no headers */
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    clear(out);
    if (source.len > MAX_SOURCE)
        return fault(&r, "reply.none", "The file is over 4 MiB long.");
    char *clean = cg_clean(source.ptr, source.len);
    char *mask = clean ? cg_mask(clean) : NULL;
    struct cg_kernel kernel;
    size_t at = 0;
    int32_t status;
    if (!mask)
        status = cg_no_memory(call->error);
    else if (!cg_next_kernel(mask, &at, &kernel))
        status = fault(&r, "reply.none", "The file has no __global__ function.");
    else
        status = accept(&r, &alone, cg_path_ok(name) ? name : "kernel.cu", clean);
    free(mask);
    free(clean);
    return status;
}
