/*
 * The test suite's fake compiler, which also notes when each compile began: a line "REPLY NS"
 * (CLOCK_MONOTONIC) in the file that RUNG_BENCH_STAMPS names, by the number in the source's
 * "// reply N".
 */
#include "fake.h"

#pragma push_macro("FAKE_PLUGIN")
#undef FAKE_PLUGIN
#define FAKE_PLUGIN(...) static const void *const fake_ops = &ops;
#include "compiler_fake.c"
#pragma pop_macro("FAKE_PLUGIN")

#include <fcntl.h>
#include <unistd.h>

static void stamp(const char *text, const struct timespec *now)
{
    static const char mark[] = "// reply ";
    const char *at = strstr(text, mark), *path = getenv("RUNG_BENCH_STAMPS");
    int file = at && path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (file < 0)
        return;
    dprintf(file, "%ld %lld\n", strtol(at + sizeof mark - 1, NULL, 10),
            (long long)now->tv_sec * 1000000000LL + now->tv_nsec);
    close(file);
}

static int32_t stamped(void *self, struct rung_call *call,
                       const struct rung_compile_request *request, struct rung_compile_result *out)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    stamp(request->bundle->files[request->bundle->entry].text.ptr, &now);
    return ((const struct rung_compiler_ops *)fake_ops)->compile(self, call, request, out);
}

static const struct rung_compiler_ops stamped_ops = {.struct_size = sizeof stamped_ops,
                                                     .compile = stamped};
FAKE_PLUGIN(RUNG_KIND_COMPILER, "stamp", 0, NULL, stamped_ops)
