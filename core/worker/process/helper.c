/*
 * A helper's main loop: INIT, READY, then one REQUEST after another, each served by a child that
 * was forked while the helper was idle.
 */
#include "worker/process/helper.h"
#include "base/arena.h"
#include "base/io.h"
#include "base/log.h"
#include "base/status.h"
#include "plugin/registry.h"
#include "worker/process/child.h"
#include "worker/process/program.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAY_MS ((uint64_t)86400000)
#define DEFAULT_RESPONSE ((uint64_t)64 << 20)

struct helper {
    const struct rung_helper_ops *ops;
    void *state;
    struct rung_buf in; /* bytes from the opener */
    struct process_child child;
};

/* ---- The host that a helper's plugin sees: log, arena and clock; its settings come in args ----
 */

static void host_log(const struct rung_host *host, uint32_t level, const char *message)
{
    rung_log(level, host->ctx, "%s", message);
}

static void *host_alloc(const struct rung_host *host, struct rung_arena *arena, uint64_t size,
                        uint64_t align)
{
    (void)host;
    return rung_arena_alloc(arena, size, align);
}

static uint64_t host_now(const struct rung_host *host)
{
    (void)host;
    return rung_now_ns();
}

static int32_t host_cancelled(const struct rung_host *host, const struct rung_cancel *cancel)
{
    (void)host;
    (void)cancel;
    return 0; /* a cancelled request's child is killed */
}

static const void *host_extension(const struct rung_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

/* Option and map slots stay NULL: a helper has neither. */
static struct rung_host helper_host(const char *name)
{
    return (struct rung_host){.struct_size = sizeof(struct rung_host),
                              .abi_major = RUNG_ABI_MAJOR,
                              .abi_draft = RUNG_ABI_DRAFT,
                              .name = "rung",
                              .version = "helper",
                              .data_dir = "",
                              .ctx = (void *)name,
                              .log = host_log,
                              .alloc = host_alloc,
                              .now_ns = host_now,
                              .is_cancelled = host_cancelled,
                              .get_extension = host_extension};
}

/* ---- One request ---------------------------------------------------------------------------- */

static bool fork_ahead(struct helper *h)
{
    return h->child.pid || process_child_fork(&h->child, h->ops, h->state, PROCESS_FD);
}

/* Hands the request to the waiting child; a child that died while it waited is replaced once. */
static bool hand_over(struct helper *h, const struct process_frame *frame, const char *body)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        if (!fork_ahead(h))
            return false;
        if (process_send(h->child.to, *frame, body, frame->length))
            return true;
        process_child_end(&h->child, 0);
    }
    return false;
}

static int wait_ms(uint64_t deadline)
{
    if (!deadline)
        return -1;
    uint64_t now = rung_now_ns();
    return now >= deadline ? 0 : (int)((deadline - now) / 1000000u + 1);
}

enum waited {
    WAITED_MORE,
    WAITED_FRAME,
    WAITED_DIED,
    WAITED_TOO_LARGE,
    WAITED_TIMEOUT,
    WAITED_CANCEL,
    WAITED_CLOSED
};

/* What the opener says while a request runs: only CANCEL, or that it is gone. */
static enum waited hear_opener(struct helper *h)
{
    struct process_frame frame;
    int ready = process_receive(PROCESS_FD, &h->in, PROCESS_MAX_BODY, &frame);
    if (ready < 0 || (ready > 0 && frame.type != PROCESS_CANCEL))
        return WAITED_CLOSED;
    if (ready == 0)
        return WAITED_MORE;
    rung_buf_drop(&h->in, sizeof(frame));
    return WAITED_CANCEL;
}

static enum waited wait_for_child(struct helper *h, const struct process_frame *request,
                                  struct rung_buf *out, struct process_frame *frame)
{
    uint64_t wall_ms = request->a < DAY_MS ? request->a : DAY_MS;
    uint64_t deadline = wall_ms ? rung_now_ns() + wall_ms * 1000000u : 0;
    uint64_t cap = request->c ? request->c : DEFAULT_RESPONSE;
    for (;;) {
        struct pollfd fds[2] = {{.fd = h->child.from, .events = POLLIN},
                                {.fd = PROCESS_FD, .events = POLLIN}};
        int timeout = wait_ms(deadline);
        int n = poll(fds, 2, timeout);
        if (n == 0 && timeout == 0)
            return WAITED_TIMEOUT;
        if (fds[1].revents) {
            enum waited heard = hear_opener(h);
            if (heard != WAITED_MORE)
                return heard;
        }
        if (!fds[0].revents)
            continue;
        int ready = process_receive(h->child.from, out, cap, frame);
        if (ready < 0)
            return errno == EMSGSIZE ? WAITED_TOO_LARGE : WAITED_DIED;
        if (ready > 0)
            return WAITED_FRAME;
    }
}

/* Why a child died without an answer. Most of its memory allowance in use counts as "out of
 * memory". */
static void explain_death(const struct process_frame *request, const struct process_end *end,
                          struct process_frame *reply, char *detail, size_t size)
{
    bool memory = request->b && end->peak_bytes > request->b - request->b / 4;
    reply->a = memory ? RUNG_HELPER_MEMORY : RUNG_HELPER_CRASHED;
    if (memory)
        snprintf(detail, size, "out of memory: it held %llu MiB when it died",
                 (unsigned long long)(end->peak_bytes >> 20));
    else if (WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGXCPU)
        reply->a = RUNG_HELPER_TIMEOUT;
    else if (WIFSIGNALED(end->status))
        snprintf(detail, size, "signal %d (%s)", WTERMSIG(end->status),
                 strsignal(WTERMSIG(end->status)));
    else
        snprintf(detail, size, "exit status %d without an answer", WEXITSTATUS(end->status));
}

static bool reply_outcome(struct helper *h, const struct process_frame *request, enum waited waited)
{
    struct process_frame reply = process_frame_of(PROCESS_RESPONSE, RUNG_OK);
    char detail[160] = "";
    struct process_end end = process_child_end(&h->child, waited == WAITED_DIED ? 2000 : 0);
    if (waited == WAITED_DIED) {
        explain_death(request, &end, &reply, detail, sizeof(detail));
    } else if (waited == WAITED_TIMEOUT) {
        reply.a = RUNG_HELPER_TIMEOUT;
    } else if (waited == WAITED_TOO_LARGE) {
        reply.a = RUNG_HELPER_TOO_LARGE;
        snprintf(detail, sizeof(detail), "the response passed its limit");
    } else {
        reply.a = PROCESS_CANCELLED;
    }
    if (reply.a == RUNG_HELPER_TIMEOUT)
        snprintf(detail, sizeof(detail), "killed after %llu ms", (unsigned long long)request->a);
    return process_send(PROCESS_FD, reply, detail, strlen(detail));
}

/* false when the opener is gone. */
static bool handle(struct helper *h, const struct process_frame *request, const char *body)
{
    struct process_frame frame;
    struct rung_buf out = {0};
    bool going = false;
    if (!hand_over(h, request, body)) {
        struct rung_error err = rung_error_init();
        rung_fail(&err, RUNG_EUNAVAILABLE, "helper.fork", "the helper can't fork: %s",
                  strerror(errno));
        process_error_write(&out, &err);
        frame = process_frame_of(PROCESS_RESPONSE, err.code);
        going = process_send(PROCESS_FD, frame, out.ptr, out.len);
        rung_buf_free(&out);
        return going;
    }
    enum waited waited = wait_for_child(h, request, &out, &frame);
    if (waited == WAITED_FRAME) {
        bool memory = frame.status == RUNG_ENOMEM;
        frame = process_frame_of(PROCESS_RESPONSE, memory ? RUNG_OK : frame.status);
        frame.a = memory ? RUNG_HELPER_MEMORY : RUNG_HELPER_DONE;
        going = process_send(PROCESS_FD, frame, out.ptr + sizeof(frame), out.len - sizeof(frame));
        process_child_end(&h->child, 0);
    } else if (waited == WAITED_CLOSED) {
        process_child_end(&h->child, 0);
    } else {
        going = reply_outcome(h, request, waited);
    }
    rung_buf_free(&out);
    return going;
}

/* ---- Start and loop ------------------------------------------------------------------------- */

/* The next whole frame of the opener's; false when it is gone. */
static bool next_frame(struct helper *h, struct process_frame *frame)
{
    int ready;
    do
        ready = process_receive(PROCESS_FD, &h->in, PROCESS_MAX_BODY, frame);
    while (ready == 0);
    return ready > 0;
}

/* The frame's bytes, out of the input; what stands behind it (a CANCEL) stays. */
static struct rung_buf take_frame(struct helper *h, const struct process_frame *frame)
{
    size_t size = sizeof(*frame) + frame->length;
    struct rung_buf taken = h->in;
    h->in = (struct rung_buf){0};
    if (taken.len > size)
        rung_buf_add(&h->in, taken.ptr + size, taken.len - size);
    taken.len = size;
    return taken;
}

static int32_t init_plugin(struct helper *h, const char *path, const char *name, const char *kind,
                           const struct rung_host *host, struct rung_text args,
                           struct rung_error *err)
{
    const struct rung_plugin *plugin;
    struct rung_registry *registry = rung_registry_new();
    /* The opener has this file loaded: whether it may be has been decided. */
    rung_registry_allow_insecure(registry);
    int32_t status = rung_registry_open(registry, path, &plugin, err);
    if (status != RUNG_OK)
        return status;
    const struct rung_factory *factory = NULL;
    for (size_t i = 0; plugin->factories[i]; i++)
        if (!strcmp(plugin->factories[i]->name, name) && !strcmp(plugin->factories[i]->kind, kind))
            factory = plugin->factories[i];
    if (factory && factory->get_extension)
        h->ops = factory->get_extension(RUNG_HELPER);
    if (!h->ops || !h->ops->init || !h->ops->serve)
        return rung_fail(err, RUNG_EMISUSE, "helper.missing", "%s: %s %s offers no %s", path, kind,
                         name, RUNG_HELPER);
    return h->ops->init(host, args, err, &h->state);
}

/* Before a fork: the plugin may make what its children share. */
static void prepare(struct helper *h, const struct rung_buf *last)
{
    size_t header = sizeof(struct process_frame);
    struct rung_text request = {"", 0};
    if (last->len > header)
        request = (struct rung_text){last->ptr + header, last->len - header};
    if (!h->child.pid && RUNG_HAS(h->ops, prepare) && h->ops->prepare)
        h->ops->prepare(h->state, request);
}

/* The loop: answers, forks the next child while the opener works, waits. */
static void serve_all(struct helper *h)
{
    struct process_frame frame;
    struct rung_buf last = {0};
    bool going = true;
    while (going) {
        prepare(h, &last);
        rung_buf_free(&last);
        fork_ahead(h); /* a failure is told when a request needs the child */
        if (!next_frame(h, &frame))
            return;
        if (frame.type == PROCESS_REQUEST) {
            last = take_frame(h, &frame);
            going = handle(h, &frame, last.ptr + sizeof(frame));
        } else { /* a CANCEL that crossed the answer */
            rung_buf_drop(&h->in, sizeof(frame) + frame.length);
        }
    }
    rung_buf_free(&last);
}

/* Descriptors: nothing but standard error, the socket, and an empty standard input. */
static void own_process(void)
{
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_NAME, "rung-helper");
    dup2(2, 1);
    close_range(PROCESS_FD + 1, ~0u, 0);
    /* Keep freed heap: a child then compiles in memory that it has already made its own. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

int rung_helper_main(const char *plugin_path, const char *factory_name, const char *kind)
{
    struct helper h = {0};
    struct process_frame frame;
    struct rung_buf reason = {0};
    struct rung_error err = rung_error_init();
    own_process();
    if (!next_frame(&h, &frame) || frame.type != PROCESS_INIT)
        return 0;
    struct rung_host host = helper_host(factory_name);
    struct rung_text args = {h.in.ptr + sizeof(frame), frame.length};
    int32_t status = init_plugin(&h, plugin_path, factory_name, kind, &host, args, &err);
    rung_buf_drop(&h.in, sizeof(frame) + frame.length);
    if (status != RUNG_OK)
        process_error_write(&reason, &err);
    bool told =
        process_send(PROCESS_FD, process_frame_of(PROCESS_READY, status), reason.ptr, reason.len);
    rung_buf_free(&reason);
    if (told && status == RUNG_OK)
        serve_all(&h);
    if (h.child.pid)
        process_child_end(&h.child, 0);
    rung_buf_free(&h.in);
    return status == RUNG_OK ? 0 : 3;
}

int rung_helper_command(int argc, char **argv)
{
    const char *plugin = NULL, *factory = NULL, *kind = NULL;
    int words = argc && !strcmp(argv[0], "helper") ? 1 : 0;
    if (argc > words + 1 && !strcmp(argv[words], "--program") && fcntl(PROCESS_FD, F_GETFD) >= 0)
        return process_keeper_main(argv + words + 1);
    for (int i = words; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--plugin"))
            plugin = argv[i + 1];
        else if (!strcmp(argv[i], "--factory"))
            factory = argv[i + 1];
        else if (!strcmp(argv[i], "--kind"))
            kind = argv[i + 1];
    }
    if (!plugin || !factory || !kind || (argc - words) % 2 || fcntl(PROCESS_FD, F_GETFD) < 0) {
        fprintf(stderr, "rung helper is started by rung itself\n");
        return 2;
    }
    return rung_helper_main(plugin, factory, kind);
}
