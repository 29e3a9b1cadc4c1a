/*
 * A cold last-level cache: twice its size of scratch memory is overwritten, which drives out all
 * else, and the lines that this left are discarded, so that none of them waits to be written back
 * while the next kernel runs (PTX ISA, discard; the method of pygpubench). GPUs that can't discard
 * read the scratch once instead: each line that comes in drives out a written one.
 */
#include "cuda.h"

enum { LINE = 128, THREADS = 256, DISCARD_FROM = 8 /* compute capability */ };

/* A thread a line, in strides of the grid; %d4 is the line's address. */
#define OVER_LINES(name, body)                                                                     \
    ".address_size 64\n.visible .entry " name "(.param .u64 at, .param .u64 lines)\n{\n"           \
    " .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>;\n"                                          \
    " ld.param.u64 %d0, [at]; ld.param.u64 %d1, [lines]; cvta.to.global.u64 %d0, %d0;\n"           \
    " mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"                         \
    " mov.u32 %r3, %nctaid.x; cvt.u64.u32 %d2, %r2; mad.wide.u32 %d2, %r0, %r1, %d2;\n"            \
    " mul.wide.u32 %d3, %r3, %r1;\n"                                                               \
    "NEXT: setp.ge.u64 %p, %d2, %d1; @%p ret;\n"                                                   \
    " shl.b64 %d4, %d2, 7; add.s64 %d4, %d4, %d0;\n" body " add.s64 %d2, %d2, %d3; bra NEXT;\n}\n"

static const char discard_ptx[] =
    ".version 7.4\n.target sm_80\n" OVER_LINES("discard", " discard.global.L2 [%d4], 128;\n");
static const char sweep_ptx[] = ".version 6.0\n.target sm_50\n" OVER_LINES(
    "sweep", " ld.volatile.global.u32 %r4, [%d4]; ld.volatile.global.u32 %r5, [%d4+32];\n"
             " ld.volatile.global.u32 %r6, [%d4+64]; ld.volatile.global.u32 %r7, [%d4+96];\n");

static uint64_t scratch_bytes(const struct cuda *self)
{
    return 2 * (uint64_t)self->info.l2_bytes / LINE * LINE;
}

/* Scratch, and the kernel that goes over it. */
static cu_result prepare(struct cuda *self)
{
    struct cuda_flush *f = &self->flush;
    int can = self->info.compute_major >= DISCARD_FROM;
    cu_result result = self->driver.mem_alloc(&f->scratch, scratch_bytes(self));
    if (result != CU_OK) {
        f->scratch = 0;
        return result;
    }
    if (self->driver.module_load(&f->module, can ? discard_ptx : sweep_ptx, 0, NULL, NULL) ==
            CU_OK &&
        self->driver.module_function(&f->clean, f->module, can ? "discard" : "sweep") == CU_OK)
        return CU_OK;
    f->clean = NULL;
    self->host->log(self->host, RUNG_LOG_WARN,
                    "the driver compiles no PTX, so that flushing the L2 cache leaves lines in it "
                    "that are written back while the next kernel runs");
    return CU_OK;
}

static cu_result clean(struct cuda *self)
{
    struct {
        uint64_t at, lines;
    } params = {self->flush.scratch, scratch_bytes(self) / LINE};
    size_t bytes = sizeof params;
    void *extra[] = {(void *)(uintptr_t)1, &params, (void *)(uintptr_t)2, &bytes, NULL};
    return self->driver.launch(self->flush.clean, 8 * self->info.sm_count, 1, 1, THREADS, 1, 1, 0,
                               self->stream, NULL, extra);
}

/* Best effort: GPUs and drivers without persisting lines have none to lose. */
static void end_persistence(struct cuda *self)
{
    if (self->driver.limit_set)
        self->driver.limit_set(CU_LIMIT_PERSISTING_L2, 0);
    if (self->driver.persisting_reset)
        self->driver.persisting_reset();
}

int32_t cuda_flush(void *ptr, struct rung_call *call)
{
    struct cuda *self = ptr;
    int32_t status = cuda_enter(self, call);
    if (status != RUNG_OK || !scratch_bytes(self))
        return status;
    cu_result result = self->flush.scratch ? CU_OK : prepare(self);
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error,
                         result == CU_OUT_OF_MEMORY ? RUNG_ENOMEM : RUNG_EUNAVAILABLE,
                         "what flushes the L2 cache", result);
    end_persistence(self);
    result = self->driver.set8(self->flush.scratch, 0, scratch_bytes(self), self->stream);
    if (result == CU_OK && self->flush.clean)
        result = clean(self);
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "flushing the L2 cache",
                         result);
    return RUNG_OK;
}

void cuda_flush_free(struct cuda *self)
{
    struct cuda_flush *f = &self->flush;
    if (f->module)
        self->driver.module_unload(f->module);
    if (f->scratch)
        self->driver.mem_free(f->scratch);
    *f = (struct cuda_flush){0};
}
