/* A helper's child: see child.h. Runs single-threaded; everything after fork() ends in _exit. */
#include "worker/process/child.h"
#include "base/arena.h"
#include "base/io.h"
#include "base/status.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Heap that a waiting child faults in ahead, beyond what it inherits. */
#define SPARE_HEAP ((size_t)8 << 20)
#define RESERVED (256ul << 20)          /* mappings of this size are address space kept free */
#define OWN_STEP ((uintptr_t)512 << 10) /* between looks for a request */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif

#ifndef UNDER_SANITIZER
/* Bytes of address space in use, from /proc; 0 when it can't be told. */
static uint64_t address_space(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    if (fscanf(f, "%llu", &pages) != 1)
        pages = 0;
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool request_waits(int in)
{
    return poll(&(struct pollfd){.fd = in, .events = POLLIN}, 1, 0) > 0;
}

/*
 * Makes the pages of [from, to) this process' own, until a request comes in. Older kernels can't
 * (before 5.14): there the pages fault when they are used.
 */
static void own_pages(uintptr_t from, uintptr_t to, int in)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    from = (from + page - 1) & ~(page - 1);
    to &= ~(page - 1);
    while (from < to && !request_waits(in)) {
        uintptr_t n = to - from < OWN_STEP ? to - from : OWN_STEP;
        madvise((void *)from, n, MADV_POPULATE_WRITE);
        from += n;
    }
}

/*
 * Takes the page faults while nobody waits: every private writable mapping that the child shares
 * copy-on-write with its parent, and some fresh heap. Large mappings are skipped: they are reserved
 * rather than used.
 */
static void settle_memory(int in)
{
    char line[512];
    char *spare = malloc(SPARE_HEAP);
    if (spare)
        own_pages((uintptr_t)spare, (uintptr_t)spare + SPARE_HEAP, in);
    free(spare);
    FILE *f = fopen("/proc/self/maps", "re");
    if (!f)
        return;
    while (!request_waits(in) && fgets(line, sizeof(line), f)) {
        unsigned long from, to;
        char mode[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 && !strcmp(mode, "rw-p") &&
            to - from < RESERVED && !strstr(line, "[stack]"))
            own_pages(from, to, in);
    }
    fclose(f);
}
#else
/* A sanitizer's shadow is terabytes of address space: no limit on it, no touching of it. */
static uint64_t address_space(void)
{
    return 0;
}

static void settle_memory(int in)
{
    (void)in;
}
#endif

static bool limit(int what, rlim_t value)
{
    return setrlimit(what, &(struct rlimit){value, value}) == 0;
}

/*
 * From here on nothing can be opened (files, sockets), written to disk, dumped or gained. The wall
 * limit is the parent's; processor time ends a child whose parent can't.
 */
static bool shut_in(const struct process_frame *request, uint64_t space)
{
    bool ok = limit(RLIMIT_NOFILE, 0) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_CORE, 0);
    ok = ok && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    if (request->a)
        ok = ok && limit(RLIMIT_CPU, request->a / 1000 + 2);
    if (request->b && space)
        ok = ok && limit(RLIMIT_AS, space + request->b);
    return ok;
}

static void answer(int fd, int32_t status, const struct rung_error *err, struct rung_text body)
{
    struct process_frame frame = process_frame_of(PROCESS_RESPONSE, status);
    struct rung_buf reason = {0};
    if (status != RUNG_OK) {
        process_error_write(&reason, err);
        body = (struct rung_text){reason.ptr, reason.len};
    }
    process_send(fd, frame, body.ptr, body.len);
}

static void serve(int in, int out, const struct rung_helper_ops *ops, void *state)
{
    struct process_frame frame;
    struct rung_buf request = {0};
    struct rung_error err = rung_error_init();
    uint64_t space = address_space();
    int ready;
    do
        ready = process_receive(in, &request, PROCESS_MAX_BODY, &frame);
    while (ready == 0);
    if (ready < 0)
        return;
    struct rung_arena *arena = rung_arena_new();
    struct rung_text body = {request.ptr + sizeof(frame), frame.length};
    struct rung_text response = {"", 0};
    struct rung_call call = {.struct_size = sizeof(call), .arena = arena, .error = &err};
    if (frame.a)
        call.deadline_ns = rung_now_ns() + frame.a * 1000000u;
    int32_t status;
    if (!shut_in(&frame, space))
        status =
            rung_fail(&err, RUNG_EIO, "helper.limits", "can't set limits: %s", strerror(errno));
    else
        status = ops->serve(state, &call, body, &response);
    answer(out, status, &err, response);
}

static _Noreturn void run(int in, int out, pid_t parent, const struct rung_helper_ops *ops,
                          void *state)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(1);
    settle_memory(in);
    serve(in, out, ops, state);
    _exit(0);
}

bool process_child_fork(struct process_child *child, const struct rung_helper_ops *ops, void *state,
                        int close_fd)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC))
        return false;
    if (pipe2(out, O_CLOEXEC)) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        close(close_fd);
        close(in[1]);
        close(out[0]);
        run(in[0], out[1], self, ops, state);
    }
    close(in[0]);
    close(out[1]);
    if (pid < 0) {
        close(in[1]);
        close(out[0]);
        return false;
    }
    *child = (struct process_child){.pid = pid, .to = in[1], .from = out[0]};
    return true;
}

struct process_end process_child_end(struct process_child *child, int grace_ms)
{
    struct process_end end = {0};
    struct rusage usage = {0};
    uint64_t until = rung_now_ns() + (uint64_t)grace_ms * 1000000u;
    pid_t got = 0;
    while (grace_ms && (got = wait4(child->pid, &end.status, WNOHANG, &usage)) == 0 &&
           rung_now_ns() < until)
        usleep(500);
    if (got != child->pid) {
        kill(-child->pid, SIGKILL);
        kill(child->pid, SIGKILL); /* when it has not made its group yet */
        while (wait4(child->pid, &end.status, 0, &usage) < 0 && errno == EINTR)
            ;
    }
    end.peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    close(child->to);
    close(child->from);
    *child = (struct process_child){0};
    return end;
}
