/* Waiting with a deadline, and what the driver's errors mean. */
#include "cuda.h"

#include <stdio.h>
#include <time.h>

int32_t cuda_enter(struct cuda *self, struct rung_call *call)
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

/* Errors after which the context is lost (CUDA driver API reference, CUresult). */
static int sticky(cu_result result)
{
    switch (result) {
    case CU_ECC_UNCORRECTABLE:
    case CU_NVLINK_UNCORRECTABLE:
    case CU_ILLEGAL_ADDRESS:
    case CU_LAUNCH_TIMEOUT:
    case CU_ASSERT:
    case CU_HARDWARE_STACK_ERROR:
    case CU_ILLEGAL_INSTRUCTION:
    case CU_MISALIGNED_ADDRESS:
    case CU_INVALID_ADDRESS_SPACE:
    case CU_INVALID_PC:
    case CU_LAUNCH_FAILED:
        return 1;
    default:
        return 0;
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
    case CU_NOT_SUPPORTED:
        return "device.unsupported";
    case CU_OUT_OF_MEMORY:
        return "device.memory";
    case CU_ECC_UNCORRECTABLE:
    case CU_NVLINK_UNCORRECTABLE:
        return "device.lost";
    case CU_INVALID_VALUE:
    case CU_NOT_FOUND:
        return "launch.error";
    default:
        return "run.crash";
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
    default:
        return "";
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
