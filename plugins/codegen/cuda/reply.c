/*
 * From a reply to a bundle: the model's thoughts are skipped, the candidate's blocks are found, and
 * the
 * //@ lines are checked by the host. Every fault is a text that tells the model what to send.
 */
#include "reply.h"
#include "choose.h"
#include "reading.h"
#include "source.h"
#include "text.h"
#include "unwrap.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPLY = 1 << 20, MAX_SOURCE = 4 << 20 };

/* ---- Answers -------------------------------------------------------------------------------- */

int32_t cg_fault(struct cg_reading *r, const char *code, const char *text)
{
    snprintf(r->out->code, sizeof(r->out->code), "%s", code);
    r->out->message = cg_keep(r->host, r->call->arena, text, strlen(text));
    r->out->plan = NULL;
    return r->out->message.ptr ? RUNG_OK : cg_no_memory(r->call->error);
}

int32_t cg_finish_fault(struct cg_reading *r, const char *code, struct cg_writer *w)
{
    int32_t status = cg_close(w) ? cg_fault(r, code, w->ptr) : cg_no_memory(r->call->error);
    free(w->ptr);
    return status;
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

/* Where the code of a reply without fences starts; NULL when no line of it looks like code. */
static const char *find_code(const char *text)
{
    const char *kernel = strstr(text, "__global__");
    for (const char *line = text; kernel && line <= kernel;) {
        if (starts_like_code(line))
            return line + strspn(line, " \t\n");
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return NULL;
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

static int32_t truncated(struct cg_reading *r)
{
    return cg_fault(r, "reply.truncated",
                    "The reply ends in the middle of the code. Send the whole candidate again, "
                    "shorter: no comments on "
                    "what is plain, no explanation before or after, one fenced block.");
}

static int32_t no_kernel(struct cg_reading *r, const char *text)
{
    bool plan = false, python = false, cut = false;
    for (size_t i = 0; i < r->blocks->n; i++) {
        const struct cg_block *b = &r->blocks->list[i];
        plan |= b->plan;
        cut |= !b->closed && b->plan;
        python |= !b->device_language && strstr(b->code, "__global__");
    }
    if (!text[strspn(text, " \t\n")])
        return cg_fault(r, "reply.none", "The reply is empty. " WHAT_TO_SEND);
    if (cut)
        return truncated(r);
    if (python)
        return cg_fault(
            r, "reply.none",
            "The kernel stands inside a block of another language. Python and host code "
            "are not run. " WHAT_TO_SEND);
    if (plan)
        return cg_fault(r, "reply.none",
                        "The reply has //@ lines but no __global__ function. " WHAT_TO_SEND);
    if (r->blocks->n)
        return cg_fault(r, "reply.none",
                        "No code block of the reply has a __global__ function. " WHAT_TO_SEND);
    if (is_refusal(text))
        return cg_fault(
            r, "reply.refused",
            "The reply declines the task. It is ordinary numerical code. " WHAT_TO_SEND);
    if (strstr(text, "__global__"))
        return cg_fault(r, "reply.none",
                        "The code of the reply is not in a fenced block. " WHAT_TO_SEND);
    return cg_fault(r, "reply.none", "The reply has no code. " WHAT_TO_SEND);
}

/* `kernel<<<grid, block>>>(...)` in the prose: statements between backticks in one line. */
static void write_inline_launches(FILE *out, const char *text)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        const char *end = line + n;
        const char *open = memchr(line, '`', n);
        while (open && open + 1 < end) {
            const char *close = memchr(open + 1, '`', (size_t)(end - open - 1));
            if (!close)
                break;
            if (memmem(open, (size_t)(close - open), "<<<", 3))
                fprintf(out, "%.*s;\n", (int)(close - open - 1), open + 1);
            open = memchr(close + 1, '`', (size_t)(end - close - 1));
        }
        line = end + (*end != '\0');
    }
}

/* C++ of blocks that are not taken: launchers and bindings, for reading only. malloc'ed. */
static char *host_blocks(const struct cg_blocks *blocks, const struct cg_choice *c,
                         const char *text)
{
    struct cg_writer w;
    if (!cg_open(&w))
        return NULL;
    for (size_t i = 0; i < blocks->n; i++) {
        const struct cg_block *b = &blocks->list[i];
        bool taken = b->kernels || !b->device_language;
        for (size_t k = 0; k < c->n_parts; k++)
            taken |= c->parts[k] == i;
        for (size_t k = 0; k < c->n_headers; k++)
            taken |= c->headers[k] == i;
        bool host = strstr(b->code, "<<<") || strstr(b->code, "cudaLaunch") ||
                    strstr(b->code, "torch::") || strstr(b->code, "define");
        if (!taken && host)
            fprintf(w.file, "%s\n", b->code);
    }
    if (fflush(w.file) == 0 && !w.len)
        write_inline_launches(w.file, text);
    if (cg_close(&w))
        return w.ptr;
    free(w.ptr);
    return NULL;
}

/* The chosen blocks' other files, in the arena. */
static const struct rung_file *other_files(struct cg_reading *r, const struct cg_choice *c)
{
    struct rung_file *files =
        r->host->alloc(r->host, r->call->arena, (c->n_headers + 1) * sizeof(*files), 16);
    for (size_t i = 0; files && i < c->n_headers; i++) {
        const struct cg_block *b = &r->blocks->list[c->headers[i]];
        files[i] = (struct rung_file){.struct_size = sizeof(*files)};
        files[i].path = cg_keep(r->host, r->call->arena, b->path, strlen(b->path)).ptr;
        files[i].text = cg_keep(r->host, r->call->arena, b->code, strlen(b->code));
        if (!files[i].path || !files[i].text.ptr)
            return NULL;
    }
    return files;
}

static int32_t accept_choice(struct cg_reading *r, const struct cg_choice *choice, const char *text)
{
    char *source = cg_join(r->blocks, choice), *around = host_blocks(r->blocks, choice, text);
    struct cg_candidate c = {.path = cg_entry_path(r->blocks, choice),
                             .source = source,
                             .files = other_files(r, choice),
                             .n_files = (uint32_t)choice->n_headers,
                             .host = around,
                             .python = "",
                             .prose = text};
    int32_t status = source && around && c.files ? cg_accept(r, &c) : cg_no_memory(r->call->error);
    free(source);
    free(around);
    return status;
}

/* A module of Python whose strings have the kernels; *found when there is one. */
static int32_t accept_python(struct cg_reading *r, const char *text, bool *found)
{
    const char *code = "", *python = NULL;
    *found = false;
    for (size_t i = r->blocks->n; i > 0 && !*code; i--) {
        const struct cg_block *b = &r->blocks->list[i - 1];
        python = b->code;
        if (b->python && strstr(python, "__global__") && !cg_code_of_python(r, python, &code))
            return cg_no_memory(r->call->error);
    }
    if (!r->blocks->n && cg_looks_like_python(text) && strstr(text, "__global__")) {
        python = text;
        if (!cg_code_of_python(r, python, &code))
            return cg_no_memory(r->call->error);
    }
    struct cg_kernel kernel;
    size_t at = 0;
    char *mask = cg_mask(code);
    *found = mask && cg_next_kernel(mask, &at, &kernel);
    bool cut = *found && !cg_is_whole(mask);
    free(mask);
    if (!mask)
        return cg_no_memory(r->call->error);
    if (!*found)
        return RUNG_OK;
    if (cut)
        return truncated(r);
    fprintf(r->note.file, "Took the kernels out of a Python module. ");
    struct cg_candidate c = {.path = "kernel.cu",
                             .source = code,
                             .files = NULL,
                             .host = "",
                             .python = python,
                             .prose = ""};
    return cg_accept(r, &c);
}

/* The blocks of a text are r->blocks: chooses and accepts. */
static int32_t take_blocks(struct cg_reading *r, const char *text, bool raw, bool *found)
{
    struct cg_choice choice;
    *found = cg_choose(r->blocks, &choice, r->note.file);
    if (r->blocks->failed)
        return cg_no_memory(r->call->error);
    if (!*found)
        return accept_python(r, text, found);
    if (raw)
        fprintf(r->note.file, "Took the whole reply as code. ");
    if (choice.unclosed && !choice.whole)
        return truncated(r);
    if (choice.unclosed && !raw)
        fprintf(r->note.file, "The code fence was not closed; the code looks complete. ");
    int32_t status = accept_choice(r, &choice, raw ? "" : text);
    /* Kernels of one candidate may stand in blocks of their own. */
    struct cg_choice all;
    if (status != RUNG_OK || strcmp(r->out->code, "plan.error") != 0 || choice.n_parts > 1 ||
        !cg_choose_all(r->blocks, &all, r->note.file))
        return status;
    struct rung_reply_result alone = *r->out;
    status = accept_choice(r, &all, text);
    if (status == RUNG_OK && r->out->code[0])
        *r->out = alone;
    return status;
}

static int32_t join_plan(struct cg_reading *r, const char *text)
{
    static const struct cg_choice nothing;
    char *around = host_blocks(r->blocks, &nothing, text);
    int32_t status = around ? cg_join_plan(r, text, around) : cg_no_memory(r->call->error);
    free(around);
    return status;
}

static int32_t read_blocks(struct cg_reading *r, const char *text)
{
    bool found;
    cg_blocks_read(r->blocks, text);
    int32_t status = take_blocks(r, text, false, &found);
    if (status != RUNG_OK || found)
        return status;
    bool join = r->req && (r->req->flags & RUNG_REPLY_PLAN_ONLY) && r->req->base &&
                r->req->base->entry < r->req->base->n_files;
    if (join)
        return join_plan(r, text);
    char *inside = cg_unwrap(text);
    const char *code = strstr(text, "```") ? NULL : find_code(text);
    if (inside || code)
        cg_blocks_free(r->blocks);
    if (inside && strstr(inside, "```"))
        cg_blocks_read(r->blocks, inside);
    else if (inside || code)
        cg_blocks_whole(r->blocks, inside ? inside : code);
    if (inside || code)
        status = take_blocks(r, inside ? inside : text, !inside, &found);
    free(inside);
    return status != RUNG_OK || found ? status : no_kernel(r, text);
}

/* The note without its last blank, in the arena. */
static int32_t keep_note(struct cg_reading *r, int32_t status)
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

/* Takes <|im_end|> and its kin out: marks of the model's own format. In place. */
static void drop_marks(char *text)
{
    char *out = text;
    for (const char *p = text; *p;) {
        size_t n = p[0] == '<' && p[1] == '|' ? 2 + cg_word(p + 2) : 0;
        if (n > 2 && p[n] == '|' && p[n + 1] == '>')
            p += n + 2;
        else
            *out++ = *p++;
    }
    *out = '\0';
}

static int32_t read_clean(struct cg_reading *r, char *reply)
{
    drop_marks(reply);
    const char *text = skip_thoughts(reply);
    if (!text)
        return cg_fault(
            r, "reply.truncated",
            "The reply ends inside its thoughts, before any code. Think less and send the "
            "candidate.");
    r->blocks = calloc(1, sizeof(*r->blocks));
    if (!r->blocks || !cg_open(&r->note)) {
        free(r->blocks);
        return cg_no_memory(r->call->error);
    }
    int32_t status = keep_note(r, read_blocks(r, text));
    cg_blocks_free(r->blocks);
    cg_pool_free(&r->pool);
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
    struct cg_reading r = {.host = host, .call = call, .req = req, .task = req->task, .out = out};
    clear(out);
    if (req->reply.len > MAX_REPLY)
        return cg_fault(&r, "reply.none", "The reply is over 1 MiB long. " WHAT_TO_SEND);
    char *clean = cg_clean(req->reply.ptr, req->reply.len);
    int32_t status = clean ? read_clean(&r, clean) : cg_no_memory(call->error);
    free(clean);
    return status;
}

/* ---- Sources of the user -------------------------------------------------------------------- */

static int32_t read_file(struct cg_reading *r, const char *path, const char *source)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    struct cg_kernel kernel;
    size_t at = 0;
    char *mask = cg_mask(source);
    bool found = mask && cg_next_kernel(mask, &at, &kernel);
    free(mask);
    if (!mask || !cg_open(&r->note))
        return cg_no_memory(r->call->error);
    struct cg_candidate c = {.path = cg_path_ok(name) ? name : "kernel.cu",
                             .source = source,
                             .host = "",
                             .python = "",
                             .prose = ""};
    int32_t status =
        keep_note(r, found ? cg_accept(r, &c)
                           : cg_fault(r, "reply.none", "The file has no __global__ function."));
    cg_pool_free(&r->pool);
    return status;
}

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);
    return n > k && strcmp(path + n - k, end) == 0;
}

/* A Python file with its CUDA in strings (load_inline), or a reply that was saved: read as such. */
static int32_t read_as_reply(const struct rung_host *host, struct rung_call *call,
                             const struct rung_task *task, struct rung_text source, bool python,
                             struct rung_reply_result *out)
{
    static const char open[] = "~~~~~~python\n", shut[] = "\n~~~~~~\n";
    size_t n = source.len + sizeof(open) + sizeof(shut);
    char *text = malloc(n);
    if (!text)
        return cg_no_memory(call->error);
    int head = python ? (int)sizeof(open) - 1 : 0;
    memcpy(text, open, (size_t)head);
    memcpy(text + head, source.ptr, source.len);
    memcpy(text + head + source.len, python ? shut : "\n", python ? sizeof(shut) : 2);
    struct rung_reply_request req = {
        .struct_size = sizeof(req), .task = task, .reply = {text, strlen(text)}};
    int32_t status = cg_read_reply(host, call, &req, out);
    free(text);
    return status;
}

int32_t cg_read_source(const struct rung_host *host, struct rung_call *call,
                       const struct rung_task *task, const char *path, struct rung_text source,
                       struct rung_reply_result *out)
{
    struct rung_reply_request none = {.struct_size = sizeof(none), .task = task};
    struct cg_reading r = {.host = host, .call = call, .req = &none, .task = task, .out = out};
    clear(out);
    if (source.len > MAX_SOURCE)
        return cg_fault(&r, "reply.none", "The file is over 4 MiB long.");
    if (ends_with(path, ".py") || ends_with(path, ".md"))
        return read_as_reply(host, call, task, source, ends_with(path, ".py"), out);
    char *clean = cg_clean(source.ptr, source.len);
    int32_t status = clean ? read_file(&r, path, clean) : cg_no_memory(call->error);
    free(clean);
    return status;
}
