/*
 * A compiler whose helper does what the request says: echo, crash, hang, eat memory, try to open
 * things. For tests of helper processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <rung/host.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct rung_host *helper_host; /* set once in the helper */

static int32_t fail(struct rung_error *err, int32_t code, const char *message)
{
    err->code = code;
    snprintf(err->symbol, sizeof(err->symbol), "moody.test");
    snprintf(err->message, sizeof(err->message), "%s", message);
    return code;
}

static int32_t init(const struct rung_host *host, struct rung_text args, struct rung_error *err,
                    void **state)
{
    helper_host = host;
    *state = NULL;
    if (!strcmp(args.ptr, "refuse"))
        return fail(err, RUNG_EUNAVAILABLE, "no mood for it");
    if (!strcmp(args.ptr, "die")) {
        fprintf(stderr, "moody: last words\n");
        abort();
    }
    if (!strcmp(args.ptr, "sleep"))
        sleep(100);
    return RUNG_OK;
}

static int32_t say(struct rung_call *call, const char *text, size_t n, struct rung_text *out)
{
    char *copy = helper_host->alloc(helper_host, call->arena, n + 1, 1);
    if (!copy)
        return fail(call->error, RUNG_ENOMEM, "out of memory");
    if (text)
        memcpy(copy, text, n);
    *out = (struct rung_text){copy, n};
    return RUNG_OK;
}

static void eat(void)
{
    for (;;) {
        char *p = malloc(1 << 20);
        if (!p)
            abort();
        memset(p, 1, 1 << 20);
    }
}

static char prepared[64];

static int32_t serve(void *state, struct rung_call *call, struct rung_text request,
                     struct rung_text *out)
{
    char text[128];
    (void)state;
    if (!strncmp(request.ptr, "echo ", 5))
        return say(call, request.ptr + 5, request.len - 5, out);
    if (!strcmp(request.ptr, "prepared"))
        return say(call, prepared, strlen(prepared), out);
    if (!strcmp(request.ptr, "crash"))
        abort();
    if (!strcmp(request.ptr, "exit"))
        _exit(7);
    if (!strcmp(request.ptr, "hang"))
        for (;;)
            sleep(1);
    if (!strcmp(request.ptr, "spin"))
        for (volatile int i = 0;; i = i + 1)
            ;
    if (!strcmp(request.ptr, "eat"))
        eat();
    if (!strcmp(request.ptr, "full"))
        return fail(call->error, RUNG_ENOMEM, "full");
    if (!strcmp(request.ptr, "fail"))
        return fail(call->error, RUNG_EUNSUPPORTED, "not this");
    if (!strncmp(request.ptr, "big ", 4))
        return say(call, NULL, strtoul(request.ptr + 4, NULL, 10), out);
    if (!strncmp(request.ptr, "stderr ", 7)) {
        fprintf(stdout, "moody says %s\n", request.ptr + 7); /* descriptor 1 is descriptor 2 */
        fflush(stdout);
        return say(call, "", 0, out);
    }
    if (!strcmp(request.ptr, "kill parent")) {
        kill(getppid(), 9);
        sleep(10);
    }
    int fd = !strcmp(request.ptr, "socket") ? socket(AF_INET, SOCK_STREAM, 0)
                                            : open(request.ptr, O_RDONLY);
    snprintf(text, sizeof(text), fd < 0 ? "refused %d" : "opened %d", fd < 0 ? errno : fd);
    return say(call, text, strlen(text), out);
}

/* What later children find: the request before theirs. */
static void prepare(void *state, struct rung_text request)
{
    (void)state;
    snprintf(prepared, sizeof(prepared), "%.*s", (int)request.len, request.ptr);
}

static const struct rung_helper_ops helper = {
    .struct_size = sizeof(helper), .init = init, .serve = serve, .prepare = prepare};

static int32_t compile(void *self, struct rung_call *call,
                       const struct rung_compile_request *request,
                       struct rung_compile_result *result)
{
    (void)self;
    (void)request;
    (void)result;
    return fail(call->error, RUNG_EUNSUPPORTED, "only the helper is of use");
}

static int32_t create(const struct rung_host *host, const struct rung_options *options,
                      struct rung_error *err, void **self)
{
    (void)options;
    (void)err;
    *self = (void *)host;
    return RUNG_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static const void *get_extension(const char *id)
{
    return strcmp(id, RUNG_HELPER) ? NULL : &helper;
}

static const struct rung_compiler_ops ops = {.struct_size = sizeof(ops), .compile = compile};
static const struct rung_factory factory = {.struct_size = sizeof(factory),
                                            .thread_model = RUNG_SERIAL_INSTANCE,
                                            .kind = RUNG_KIND_COMPILER,
                                            .name = "moody",
                                            .summary = "Misbehaves on request.",
                                            .ops = &ops,
                                            .create = create,
                                            .destroy = destroy,
                                            .get_extension = get_extension};
static const struct rung_factory *const factories[] = {&factory, NULL};
static const struct rung_plugin plugin = {.magic = RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof(plugin),
                                          .abi_major = RUNG_ABI_MAJOR,
                                          .abi_draft = RUNG_ABI_DRAFT,
                                          .id = "org.rung.test.moody",
                                          .version = "1",
                                          .vendor = "rung",
                                          .licence = "see LICENSE",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t host_major, uint32_t host_draft)
{
    return host_major == RUNG_ABI_MAJOR && host_draft == RUNG_ABI_DRAFT ? &plugin : NULL;
}
