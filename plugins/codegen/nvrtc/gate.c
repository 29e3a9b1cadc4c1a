/* Opening for a child that can open nothing: see gate.h. */
#include "gate.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define GATE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define GATE_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef GATE_ARCH

/* One child, one gate; the handler reads it, and sets descriptors to -1 once handed out. */
static struct nv_gate gate;

struct arguments {
    unsigned long a[6];
};

#if defined(__x86_64__)
static struct arguments arguments_of(const ucontext_t *context)
{
    static const int places[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    struct arguments args;
    for (int i = 0; i < 6; i++)
        args.a[i] = (unsigned long)context->uc_mcontext.gregs[places[i]];
    return args;
}

static void give(ucontext_t *context, long value)
{
    context->uc_mcontext.gregs[REG_RAX] = value;
}
#else
static struct arguments arguments_of(const ucontext_t *context)
{
    struct arguments args;
    for (int i = 0; i < 6; i++)
        args.a[i] = (unsigned long)context->uc_mcontext.regs[i];
    return args;
}

static void give(ucontext_t *context, long value)
{
    context->uc_mcontext.regs[0] = (unsigned long long)value;
}
#endif

static int hand_out(int *fd)
{
    int given = *fd;
    *fd = -1;
    return given >= 0 ? given : -EMFILE;
}

/*
 * The compiler makes its heap's file new, for reading and writing, before anything of the source is
 * read; the precompiled header is the only other file that a source which is served from memory
 * needs.
 */
static long opened(unsigned long path, unsigned long flags)
{
    if ((flags & (O_ACCMODE | O_CREAT)) == (O_RDWR | O_CREAT))
        return hand_out(&gate.scratch);
    if ((flags & (O_ACCMODE | O_CREAT)) == O_RDONLY && !strcmp((const char *)path, gate.path))
        return hand_out(&gate.file);
    return -EMFILE;
}

/* Maps a piece of the file to a fixed place: once, since the piece is gone then. */
static long mapped(const struct arguments *args)
{
    unsigned long to = args->a[0], n = args->a[1], offset = args->a[5];
    if (!(args->a[3] & MAP_FIXED) || offset > gate.n_staged || n > gate.n_staged - offset)
        return -ENOMEM;
    void *at = mremap(gate.staged + offset, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)to);
    return at == MAP_FAILED ? -errno : (long)to;
}

/*
 * Writes to the scratch only lengthen it, and it has its length; the name that the compiler removes
 * was never made.
 */
static void on_call(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    int kept = errno;
    struct arguments args = arguments_of(context);
    long result = 0;
    if (info->si_syscall == __NR_openat)
        result = opened(args.a[1], args.a[2]);
#ifdef __NR_open
    else if (info->si_syscall == __NR_open)
        result = opened(args.a[0], args.a[1]);
#endif
    else if (info->si_syscall == __NR_write)
        result = (long)args.a[2];
    else if (info->si_syscall == __NR_mmap)
        result = mapped(&args);
    errno = kept;
    give(context, result);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skipped))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, (action))

/* Calls that the handler always answers. */
static const uint32_t trapped[] = {
    __NR_openat,
    __NR_unlinkat,
#ifdef __NR_open
    __NR_open,
    __NR_unlink,
#endif
};
enum { N_TRAPPED = sizeof(trapped) / sizeof(*trapped), N_RULE = 4 };

/*
 * A rule: `call` with `fd` as the argument at `place` is trapped. Only the low half of the argument
 * is looked at: these machines are little-endian.
 */
static void add_rule(struct sock_filter *to, uint32_t call, size_t place, int fd)
{
    const struct sock_filter rule[N_RULE + 1] = {
        UNLESS(call, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)place),
        UNLESS((uint32_t)fd, 1),
        ANSWER(SECCOMP_RET_TRAP),
        LOAD(nr),
    };
    memcpy(to, rule, sizeof(rule));
}

static bool filter(const struct nv_gate *g)
{
    struct sock_filter program[N_TRAPPED * 2 + 2 * (N_RULE + 1) + 4] = {
        LOAD(arch), UNLESS(GATE_ARCH, 0), LOAD(nr)};
    unsigned short n = 3;
    for (size_t i = 0; i < N_TRAPPED; i++) {
        program[n++] = (struct sock_filter)UNLESS(trapped[i], 1);
        program[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_TRAP);
    }
    add_rule(program + n, __NR_write, offsetof(struct seccomp_data, args[0]), g->scratch);
    n += N_RULE + 1;
    if (g->staged) {
        add_rule(program + n, __NR_mmap, offsetof(struct seccomp_data, args[4]), g->file);
        n += N_RULE + 1;
    }
    program[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    program[1].jf = (uint8_t)(n - 3); /* another machine's numbers: to the end */
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){n, program}, 0, 0) == 0;
}

bool nv_gate_possible(void)
{
    uint32_t action = SECCOMP_RET_TRAP;
    return syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool nv_gate_set(const struct nv_gate *wanted)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART}, before;
    action.sa_sigaction = on_call;
    if (wanted->file < 0 || wanted->scratch < 0 || lseek(wanted->file, 0, SEEK_SET) != 0 ||
        sigaction(SIGSYS, &action, &before))
        return false;
    gate = *wanted;
    if (filter(wanted))
        return true;
    sigaction(SIGSYS, &before, NULL);
    return false;
}

#else

bool nv_gate_possible(void)
{
    return false;
}

bool nv_gate_set(const struct nv_gate *wanted)
{
    (void)wanted;
    return false;
}

#endif

int nv_gate_scratch(size_t bytes)
{
    int fd = memfd_create("rung-scratch", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
        close(fd);
        fd = -1;
    }
    return fd;
}
