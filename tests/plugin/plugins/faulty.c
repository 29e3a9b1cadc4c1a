/*
 * One verifier with one fault, which FAULT_* names at compile time: a descriptor that is wrong, or
 * behaviour that breaks the contract.
 */
#include <rung/verifier.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#define FAULT(name) (FAULT_IS == FAULT_##name)
enum {
    FAULT_DRAFT,
    FAULT_MAJOR,
    FAULT_MAGIC,
    FAULT_SLOT,
    FAULT_SHORT_OPS,
    FAULT_OPS,
    FAULT_CREATE,
    FAULT_ANSWER,
    FAULT_FACTORIES,
    FAULT_KIND,
    FAULT_NAME,
    FAULT_ENUM,
    FAULT_REQUIRED,
    FAULT_THREADS,
    FAULT_SIZE,
    FAULT_LICENCE,
    FAULT_CRASH,
    FAULT_SILENT,
    FAULT_FPENV,
    FAULT_FPLOAD,
    FAULT_LOAD,
    FAULT_EXIT,
};

#if defined(__SSE__)
#define FLUSH_TO_ZERO 0x8040u /* FTZ and DAZ of MXCSR */
static void flush_subnormals(void)
{
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | FLUSH_TO_ZERO);
}
#else
#include <fenv.h>
static void flush_subnormals(void)
{
    fesetround(FE_DOWNWARD);
}
#endif

/* FPLOAD is what the start-up code of -ffast-math does to the process that loads it. */
__attribute__((constructor)) static void on_load(void)
{
    if (FAULT(FPLOAD))
        flush_subnormals();
    if (FAULT(LOAD)) /* SIGSEGV, also where a sanitizer handles that signal */
        signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
    if (FAULT(EXIT))
        _exit(0);
}

static int32_t create(const struct rung_host *host, const struct rung_options *o,
                      struct rung_error *err, void **self)
{
    (void)host;
    (void)o;
    (void)err;
    if (FAULT(CRASH))
        *(volatile int *)(uintptr_t)16 = 1;
    static const int dummy = 0;
    *self = (void *)(uintptr_t)&dummy;
    return FAULT(SILENT) ? RUNG_ECONFIG : RUNG_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static int32_t check(void *self, struct rung_call *call, const struct rung_session *session,
                     struct rung_verdict *out)
{
    (void)self;
    (void)call;
    (void)session;
    out->status = RUNG_PASS;
    if (FAULT(FPENV))
        flush_subnormals();
    return RUNG_OK;
}

static const struct rung_verifier_ops ops = {
    .struct_size = FAULT(SHORT_OPS) ? offsetof(struct rung_verifier_ops, check) : sizeof ops,
    .check = FAULT(SLOT) ? NULL : check};

static const char *const no_values[] = {NULL};
static const struct rung_option option = {.struct_size = sizeof option,
                                          .type = FAULT(ENUM) ? RUNG_OPT_ENUM : RUNG_OPT_STRING,
                                          .name = "mode",
                                          .summary = "A mode.",
                                          .values = no_values,
                                          .flags = FAULT(REQUIRED) ? RUNG_OPT_REQUIRED : 0,
                                          .default_text = FAULT(REQUIRED) ? "x" : NULL};
static const struct rung_option *const options[] = {&option, NULL};

static const struct rung_factory factory = {.struct_size = FAULT(SIZE) ? 16 : sizeof factory,
                                            .thread_model = FAULT(THREADS) ? 9 : RUNG_PARALLEL,
                                            .kind =
                                                FAULT(KIND) ? "rung.oracle/0" : RUNG_KIND_VERIFIER,
                                            .name = FAULT(NAME) ? "Not A Name" : "faulty",
                                            .summary = "Has one fault.",
                                            .options = options,
                                            .ops = FAULT(OPS) ? NULL : &ops,
                                            .create = FAULT(CREATE) ? NULL : create,
                                            .destroy = destroy};

static const struct rung_factory *const factories[] = {FAULT(FACTORIES) ? NULL : &factory, NULL};

static const struct rung_plugin plugin = {.magic = FAULT(MAGIC) ? 0x12345678 : RUNG_PLUGIN_MAGIC,
                                          .struct_size = sizeof plugin,
                                          .abi_major = FAULT(MAJOR) ? 7 : RUNG_ABI_MAJOR,
                                          .abi_draft =
                                              FAULT(DRAFT) ? RUNG_ABI_DRAFT + 1000 : RUNG_ABI_DRAFT,
                                          .id = "org.rung.tests.faulty",
                                          .version = "1.0",
                                          .vendor = "rung tests",
                                          .licence = FAULT(LICENCE) ? NULL : "MIT",
                                          .factories = factories};

RUNG_PLUGIN_ENTRY(uint32_t major, uint32_t draft)
{
    (void)major;
    (void)draft;
    return FAULT(ANSWER) ? NULL : &plugin;
}
