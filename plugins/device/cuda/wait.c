/* Waiting with a deadline, and what the driver's errors mean. */
#include "cuda.h"

#include <stdio.h>
#include <time.h>

int32_t cuda_enter_queue(struct cuda *self, struct rung_call *call)
{
    if (self->dead) {
        call->error->code = RUNG_EUNAVAILABLE;
        snprintf(call->error->symbol, sizeof call->error->symbol, "cuda.lost");
        snprintf(call->error->message, sizeof call->error->message,
                 "%s is out of use after a fault; a new process is needed", self->name);
        return RUNG_EUNAVAILABLE;
    }
    cu_result result = self->driver.context_set(self->context);
    if (result != CU_OK)
        return cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, "cuCtxSetCurrent", result);
    return RUNG_OK;
}

int32_t cuda_enter(struct cuda *self, struct rung_call *call)
{
    if (!self->recording || self->dead)
        return cuda_enter_queue(self, call);
    call->error->code = RUNG_EMISUSE;
    snprintf(call->error->symbol, sizeof call->error->symbol, "cuda.recording");
    snprintf(call->error->message, sizeof call->error->message,
             "a graph is being recorded: only launches, fills and copies until it ends");
    return RUNG_EMISUSE;
}

/* The GPU, its driver or the server before it went away; nothing of the kernel's doing. */
static int lost(cu_result result)
{
    switch (result) {
    case CU_NOT_INITIALIZED:
    case CU_DEINITIALIZED:
    case CU_DEVICE_UNAVAILABLE:
    case CU_INVALID_CONTEXT:
    case CU_ECC_UNCORRECTABLE:
    case CU_NVLINK_UNCORRECTABLE:
    case CU_CONTAINED:
    case CU_CONTEXT_IS_DESTROYED:
    case CU_SYSTEM_NOT_READY:
    case CU_EXTERNAL_DEVICE:
    case CU_KEY_ROTATION:
        return 1;
    default:
        return result >= CU_MPS_FIRST && result <= CU_MPS_LAST;
    }
}

/* Errors after which the context can't be used (CUDA driver API reference, CUresult). */
static int sticky(cu_result result)
{
    switch (result) {
    case CU_ILLEGAL_ADDRESS:
    case CU_LAUNCH_TIMEOUT:
    case CU_ASSERT:
    case CU_HARDWARE_STACK_ERROR:
    case CU_ILLEGAL_INSTRUCTION:
    case CU_MISALIGNED_ADDRESS:
    case CU_INVALID_ADDRESS_SPACE:
    case CU_INVALID_PC:
    case CU_LAUNCH_FAILED:
    case CU_TENSOR_MEMORY_LEAK:
        return 1;
    default:
        return lost(result);
    }
}

/* Spins for short kernels, then sleeps longer and longer, at most a millisecond. */
static void pause_for(unsigned round)
{
    if (round < 2000)
        return;
    long ns = round < 4000 ? 20000 : 1000000;
    struct timespec t = {0, ns};
    nanosleep(&t, NULL);
}

int32_t cuda_wait(struct cuda *self, struct rung_call *call, cu_result *result)
{
    for (unsigned round = 0;; round++) {
        *result = self->driver.stream_query(self->stream);
        if (*result != CU_NOT_READY)
            break;
        if (call->deadline_ns && self->host->now_ns(self->host) > call->deadline_ns) {
            *result = CU_LAUNCH_TIMEOUT;
            break;
        }
        if (call->cancel && self->host->is_cancelled(self->host, call->cancel)) {
            self->dead = 1; /* what is still running can't be stopped */
            call->error->code = RUNG_ECANCELLED;
            snprintf(call->error->message, sizeof call->error->message,
                     "cancelled while the GPU was at work");
            return RUNG_ECANCELLED;
        }
        pause_for(round < UINT32_MAX - 1 ? round : UINT32_MAX - 1);
    }
    self->dead |= *result != CU_OK;
    return RUNG_OK;
}

int32_t cuda_settle(struct cuda *self, struct rung_call *call, const char *what)
{
    cu_result result;
    int32_t status = cuda_wait(self, call, &result);
    if (status == RUNG_OK && result != CU_OK)
        status = cuda_fail(&self->driver, call->error, RUNG_EUNAVAILABLE, what, result);
    return status;
}

static const char *code_of(cu_result result)
{
    switch (result) {
    case CU_ILLEGAL_ADDRESS:
    case CU_INVALID_ADDRESS_SPACE:
        return "mem.out_of_bounds";
    case CU_MISALIGNED_ADDRESS:
        return "mem.misaligned";
    case CU_LAUNCH_TIMEOUT:
        return "run.timeout";
    case CU_LAUNCH_OUT_OF_RESOURCES:
    case CU_COOPERATIVE_TOO_LARGE:
    case CU_INVALID_CLUSTER_SIZE:
        return "launch.resources";
    case CU_NO_BINARY_FOR_GPU:
    case CU_INVALID_PTX:
    case CU_INVALID_IMAGE:
    case CU_UNSUPPORTED_PTX_VERSION:
    case CU_JIT_COMPILER_NOT_FOUND:
    case CU_JIT_DISABLED:
    case CU_INVALID_SOURCE:
    case CU_NOT_SUPPORTED:
        return "device.unsupported";
    case CU_OUT_OF_MEMORY:
        return "device.memory";
    case CU_INVALID_VALUE:
    case CU_NOT_FOUND:
        return "launch.error";
    default:
        if (result >= CU_CAPTURE_FIRST && result <= CU_CAPTURE_LAST)
            return "device.unsupported";
        return lost(result) ? "device.lost" : "run.crash";
    }
}

/* What a kernel's author should know beyond the driver's words. */
static const char *remark(cu_result result)
{
    switch (result) {
    case CU_ILLEGAL_ADDRESS:
        return "; the kernel read or wrote outside its buffers";
    case CU_MISALIGNED_ADDRESS:
        return "; a vector access needs an address that is a multiple of its size";
    case CU_LAUNCH_TIMEOUT:
        return "; the kernel did not end in time";
    case CU_LAUNCH_OUT_OF_RESOURCES:
        return "; too many registers or threads for one block";
    case CU_INVALID_CLUSTER_SIZE:
        return "; so many blocks a cluster, with their shared memory, do not fit: take fewer";
    case CU_LAUNCH_FAILED:
        return "; often an access outside shared or local memory";
    case CU_NO_BINARY_FOR_GPU:
        return "; the code was compiled for other GPUs";
    case CU_ASSERT:
        return "; an assert() of the kernel failed";
    case CU_TENSOR_MEMORY_LEAK:
        return "; each block must free the tensor memory that it allocates";
    default:
        if (result >= CU_CAPTURE_FIRST && result <= CU_CAPTURE_LAST)
            return "; this can't be recorded as a graph";
        return lost(result) ? "; not the kernel's doing: a new process is needed" : "";
    }
}

void cuda_fault(struct cuda *self, cu_result result, const char *what, struct rung_fault *fault)
{
    if (result == CU_OK)
        return;
    snprintf(fault->code, sizeof fault->code, "%s", code_of(result));
    snprintf(fault->message, sizeof fault->message, "%s: %s (%s)%s", what,
             cuda_name(&self->driver, result), cuda_text(&self->driver, result), remark(result));
    fault->sticky = sticky(result) || self->dead;
    self->dead |= (int)fault->sticky;
}
