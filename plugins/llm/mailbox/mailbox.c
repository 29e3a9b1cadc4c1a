/*
 * llm_mailbox: a model behind a folder. Each request becomes KEY.prompt.md and KEY.json in the
 * folder (renamed in, so that readers see whole files); whoever answers renames KEY.reply.md in. A
 * reply that is already there is taken at once, which is how a resumed run goes on.
 *
 * The instance holds only options, so that calls may run at once, one file name a key.
 */
#include "../common/prompt_hash.h"
#include "../common/text.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_KEY = 100,       /* bytes */
    MAX_PATH = 4096,     /* bytes, with the closing NUL */
    MAX_REPLY = 1 << 20, /* bytes */
    MAX_NOTE = 64 << 10, /* bytes of KEY.json that are looked at */
    MAX_SLEEP_MS = 100,  /* between two looks at the cancel token */
};

struct mailbox {
    const struct rung_host *host;
    char *dir;
    double timeout_s; /* 0: none */
    double poll_s;
};

/* The folder's name of a key: '/' becomes '_', and '_' becomes "__" so that no two keys meet. */
static bool file_stem(const char *key, char stem[2 * MAX_KEY + 1])
{
    size_t n = 0;
    if (strlen(key) > MAX_KEY || key[0] == '.' || key[0] == '/')
        return false;
    for (const char *c = key; *c; ++c) {
        if (!isalnum((unsigned char)*c) && !strchr("._-/", *c))
            return false;
        if (*c == '_')
            stem[n++] = '_';
        stem[n++] = *c == '/' ? '_' : *c;
    }
    stem[n] = 0;
    return true;
}

static bool path_of(char path[MAX_PATH], const struct mailbox *box, const char *stem,
                    const char *tail)
{
    const int n = snprintf(path, MAX_PATH, "%s/%s%s", box->dir, stem, tail);
    return n > 0 && n < MAX_PATH;
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        const ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

/* Writes a file under another name and renames it in. */
static int32_t post(const struct mailbox *box, const char *stem, const char *tail,
                    const struct llm_text *text, struct rung_error *error)
{
    char path[MAX_PATH], temporary[MAX_PATH], tmp_tail[64];
    snprintf(tmp_tail, sizeof tmp_tail, "%s.tmp", tail);
    if (text->failed || !text->ptr)
        return llm_fail(error, RUNG_ENOMEM, "mailbox.memory", "no memory for %s%s", stem, tail);
    if (!path_of(path, box, stem, tail) || !path_of(temporary, box, stem, tmp_tail))
        return llm_fail(error, RUNG_ECONFIG, "mailbox.path", "the folder's path is too long: %s",
                        box->dir);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    bool fine = fd >= 0 && write_all(fd, text->ptr, text->len);
    int reason = errno;
    if (fd >= 0 && close(fd) != 0 && fine) {
        fine = false;
        reason = errno;
    }
    if (fine && rename(temporary, path) != 0) {
        fine = false;
        reason = errno;
    }
    if (fine)
        return RUNG_OK;
    unlink(temporary);
    return llm_fail(error, RUNG_EIO, "mailbox.write", "%s: %s", path, strerror(reason));
}

static void prompt_text(const struct rung_llm_request *request, struct llm_text *text)
{
    for (uint32_t m = 0; m < request->n_messages; ++m) {
        const struct rung_message *message = &request->messages[m];
        if (m)
            llm_text_puts(text, "\n\n");
        llm_text_printf(text, "# %s\n\n", llm_message_role(message->role));
        for (uint32_t p = 0; p < message->n_parts; ++p)
            if (message->parts[p].kind == RUNG_PART_TEXT)
                llm_text_add(text, message->parts[p].text.ptr, message->parts[p].text.len);
    }
    llm_text_puts(text, "\n");
}

/* A JSON text; other bytes than plain ASCII become escapes of the byte. */
static void json_text(struct llm_text *text, const char *value)
{
    llm_text_puts(text, "\"");
    for (const unsigned char *c = (const unsigned char *)value; *c; ++c) {
        if (*c < 0x20 || *c >= 0x7f || *c == '"' || *c == '\\')
            llm_text_printf(text, "\\u%04x", *c);
        else
            llm_text_add(text, c, 1);
    }
    llm_text_puts(text, "\"");
}

static void note_text(const struct rung_llm_request *request, const char *stem, const char *hash,
                      struct llm_text *text)
{
    llm_text_puts(text, "{\"key\":");
    json_text(text, request->key);
    llm_text_puts(text, ",\"role\":");
    json_text(text, request->role);
    llm_text_printf(text, ",\"prompt_sha256\":\"%s\",\"reply\":\"%s.reply.md\"}\n", hash, stem);
}

/*
 * The bytes of a regular file of at most limit bytes, on the heap. RUNG_ENOTFOUND when it isn't
 * there.
 */
static int32_t read_file(const char *path, size_t limit, char **bytes, size_t *n,
                         struct rung_error *error)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return llm_fail(error, RUNG_ENOTFOUND, "mailbox.no_reply", "%s is not there", path);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > limit) {
        const int32_t status =
            llm_fail(error, RUNG_EIO, "mailbox.read", "%s: %s", path,
                     fd < 0 ? strerror(errno) : "not a plain file, or too large");
        if (fd >= 0)
            close(fd);
        return status;
    }
    char *text = malloc((size_t)st.st_size + 1);
    size_t len = 0;
    ssize_t got = 1;
    while (text && len < (size_t)st.st_size && got > 0) {
        got = read(fd, text + len, (size_t)st.st_size - len);
        len += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (!text || got < 0) {
        free(text);
        return llm_fail(error, text ? RUNG_EIO : RUNG_ENOMEM, "mailbox.read", "%s can't be read",
                        path);
    }
    text[len] = 0;
    *bytes = text;
    *n = len;
    return RUNG_OK;
}

/* Says so when a reply that was waiting belongs to another prompt than this one. */
static void warn_of_other_prompt(const struct mailbox *box, const char *stem, const char *hash)
{
    char path[MAX_PATH];
    struct rung_error quiet = {.struct_size = sizeof quiet};
    char *note = NULL;
    size_t n = 0;
    if (!path_of(path, box, stem, ".json") ||
        read_file(path, MAX_NOTE, &note, &n, &quiet) != RUNG_OK)
        return;
    if (!strstr(note, hash))
        llm_log(box->host, RUNG_LOG_WARN, "the reply to %s answers an earlier prompt", stem);
    free(note);
}

static int32_t take_reply(const struct mailbox *box, struct rung_call *call,
                          const struct rung_llm_request *request, const char *stem,
                          struct rung_llm_response *out)
{
    char path[MAX_PATH];
    char *reply = NULL;
    size_t n = 0;
    if (!path_of(path, box, stem, ".reply.md"))
        return llm_fail(call->error, RUNG_ECONFIG, "mailbox.path", "the folder's path is too long");
    int32_t status = read_file(path, MAX_REPLY, &reply, &n, call->error);
    if (status != RUNG_OK)
        return status;
    status = llm_answer(box->host, call, request, reply, n, RUNG_FINISH_STOP, "mailbox", out);
    free(reply);
    return status;
}

static void nap(uint64_t ns)
{
    const struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
                               .tv_nsec = (long)(ns % 1000000000u)};
    nanosleep(&t, NULL);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Looks for the reply every poll, for cancellation at least every MAX_SLEEP_MS. */
static int32_t wait_for_reply(const struct mailbox *box, struct rung_call *call,
                              const struct rung_llm_request *request, const char *stem,
                              struct rung_llm_response *out)
{
    const struct rung_host *host = box->host;
    const uint64_t begin = host->now_ns(host);
    uint64_t end = box->timeout_s > 0 ? begin + (uint64_t)(box->timeout_s * 1e9) : UINT64_MAX;
    if (call->deadline_ns)
        end = least(end, call->deadline_ns);
    uint64_t next_look = begin;
    for (;;) {
        const uint64_t now = host->now_ns(host);
        if (call->cancel && host->is_cancelled(host, call->cancel))
            return llm_fail(call->error, RUNG_ECANCELLED, "mailbox.cancelled",
                            "waiting for %s was cancelled", request->key);
        if (now >= next_look || now >= end) {
            const int32_t status = take_reply(box, call, request, stem, out);
            if (status != RUNG_ENOTFOUND)
                return status;
            next_look = now + (uint64_t)(box->poll_s * 1e9);
        }
        if (now >= end)
            return llm_fail(call->error, RUNG_ETIMEOUT, "mailbox.timeout",
                            "no %s.reply.md in %s after %.1f s", stem, box->dir,
                            (double)(now - begin) * 1e-9);
        nap(least(least(next_look - now, end - now), MAX_SLEEP_MS * 1000000ull));
    }
}

static int32_t post_request(const struct mailbox *box, const struct rung_llm_request *request,
                            const char *stem, const char *hash, struct rung_error *error)
{
    struct llm_text prompt = {0}, note = {0};
    prompt_text(request, &prompt);
    note_text(request, stem, hash, &note);
    int32_t status = post(box, stem, ".prompt.md", &prompt, error);
    if (status == RUNG_OK)
        status = post(box, stem, ".json", &note, error);
    llm_text_free(&prompt);
    llm_text_free(&note);
    return status;
}

static int32_t complete(void *self, struct rung_call *call, const struct rung_llm_request *request,
                        struct rung_llm_response *out)
{
    const struct mailbox *box = self;
    char stem[2 * MAX_KEY + 1];
    char hash[LLM_SHA256_HEX];
    int32_t status = llm_check_request(request, call->error);
    if (status != RUNG_OK)
        return status;
    if (!file_stem(request->key, stem))
        return llm_fail(call->error, RUNG_EINVAL, "mailbox.key",
                        "key '%.120s' makes no file name: at most %d of A-Z a-z 0-9 . _ - /",
                        request->key, MAX_KEY);
    llm_prompt_sha256(request, hash);
    status = take_reply(box, call, request, stem, out);
    if (status == RUNG_OK)
        warn_of_other_prompt(box, stem, hash);
    if (status != RUNG_ENOTFOUND)
        return status;
    status = post_request(box, request, stem, hash, call->error);
    if (status != RUNG_OK)
        return status;
    status = wait_for_reply(box, call, request, stem, out);
    if (status == RUNG_OK)
        *call->error = (struct rung_error){.struct_size = call->error->struct_size};
    return status;
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *error, void **self)
{
    struct mailbox *box = calloc(1, sizeof *box);
    if (box)
        box->dir = strdup(host->opt_string(host, options, "dir"));
    if (!box || !box->dir) {
        free(box);
        return llm_fail(error, RUNG_ENOMEM, "mailbox.memory", "no memory");
    }
    box->host = host;
    box->timeout_s = host->opt_float(host, options, "timeout");
    box->poll_s = host->opt_float(host, options, "poll");
    *self = box;
    return RUNG_OK;
}

static int32_t start(void *self, struct rung_error *error)
{
    const struct mailbox *box = self;
    struct stat st;
    if (mkdir(box->dir, 0777) != 0 && errno != EEXIST)
        return llm_fail(error, RUNG_EIO, "mailbox.dir", "%s can't be made: %s", box->dir,
                        strerror(errno));
    if (stat(box->dir, &st) != 0 || !S_ISDIR(st.st_mode) ||
        access(box->dir, R_OK | W_OK | X_OK) != 0)
        return llm_fail(error, RUNG_EIO, "mailbox.dir", "%s is no folder that can be written",
                        box->dir);
    return RUNG_OK;
}

static void destroy(void *self)
{
    struct mailbox *box = self;
    free(box->dir);
    free(box);
}

static const struct rung_option opt_dir = {
    .struct_size = sizeof opt_dir,
    .type = RUNG_OPT_PATH,
    .flags = RUNG_OPT_REQUIRED,
    .name = "dir",
    .summary =
        "Folder where prompts are left and replies are looked for; made when it is not there.",
};
static const struct rung_option opt_timeout = {
    .struct_size = sizeof opt_timeout,
    .type = RUNG_OPT_DURATION,
    .name = "timeout",
    .default_text = "1h",
    .unit = "s",
    .summary = "How long a reply is waited for; 0 waits until the call's own deadline.",
    .max = 31536000,
};
static const struct rung_option opt_poll = {
    .struct_size = sizeof opt_poll,
    .type = RUNG_OPT_DURATION,
    .name = "poll",
    .default_text = "200ms",
    .unit = "s",
    .summary = "Time between two looks for the reply.",
    .min = 0.001,
    .max = 3600,
};
static const struct rung_option *const options[] = {&opt_dir, &opt_timeout, &opt_poll, NULL};

static const struct rung_llm_ops ops = {.struct_size = sizeof ops, .complete = complete};

static const struct rung_factory factory = {
    .struct_size = sizeof factory,
    .thread_model = RUNG_PARALLEL,
    .capabilities = RUNG_LLM_FREE,
    .kind = RUNG_KIND_LLM,
    .name = "mailbox",
    .summary = "Leaves prompts in a folder and waits for replies to be put there.",
    .doc =
        "A request with key code/12/0 becomes code_12_0.prompt.md (text of all messages) and "
        "code_12_0.json (key, role, prompt_sha256). Write the reply to code_12_0.reply.md.tmp and "
        "rename it to code_12_0.reply.md; at most 1 MiB. A reply that is already there is used at "
        "once.",
    .options = options,
    .ops = &ops,
    .create = create,
    .start = start,
    .destroy = destroy,
};
static const struct rung_factory *const factories[] = {&factory, NULL};

static const struct rung_plugin plugin = {
    .magic = RUNG_PLUGIN_MAGIC,
    .struct_size = sizeof plugin,
    .abi_major = RUNG_ABI_MAJOR,
    .abi_draft = RUNG_ABI_DRAFT,
    .id = "org.rung.llm.mailbox",
    .version = "0.1.0",
    .vendor = "rung",
    .licence = "Apache-2.0",
    .factories = factories,
};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
