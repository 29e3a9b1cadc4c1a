/*
 * rung/reference.h - the slow, trusted result, in float64, with the error that honest arithmetic of
 * the task's precision explains.
 */
#ifndef RUNG_REFERENCE_H
#define RUNG_REFERENCE_H

#include <rung/device.h>
#include <rung/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A box of a tensor: elements start[d] .. start[d] + count[d] - 1 along each of its n_dims axes.
 * Where skip is 1 nothing of the tensor is wanted and the output's n is 0.
 */
struct rung_region {
    uint32_t struct_size;
    uint32_t n_dims; /* the tensor's own */
    int64_t start[RUNG_MAX_DIMS];
    int64_t count[RUNG_MAX_DIMS];
    uint32_t skip;
    uint32_t reserved;
};

struct rung_reference_request {
    uint32_t struct_size;
    uint32_t n_inputs; /* tensors with data; the array has one entry a task tensor in any case */
    const struct rung_task *task;
    const int64_t *dims;                    /* dims vector */
    const struct rung_tensor_view *tensors; /* one a task tensor; outputs have data = NULL */
    /*
     * One a task tensor, those of outputs count; NULL: everything. An output's n is then the
     * box's count of elements, row-major inside the box, with the same bits as in a whole
     * evaluation. RUNG_EUNSUPPORTED: boxes are not offered; the caller asks for everything.
     */
    const struct rung_region *regions;
};

/*
 * One output. value[i] is the result in float64; bound[i] >= 0 the largest absolute error of an
 * honest kernel (DESIGN section 10: any summation order; each elementary function at an argument
 * perturbed by 8 units in the last place, plus 4; subnormals may flush). NaN and inf in value must
 * be matched exactly; where bound is infinite nothing can be asked, but that the element was
 * written. Row-major, dense, n = product of the output's dims.
 */
struct rung_reference_output {
    uint32_t struct_size;
    uint32_t tensor; /* index in the task */
    uint64_t n;
    const double *value;
    const double *bound;
};

/* An output on the device: value and bound of all its elements, float64, row-major, dense. */
struct rung_reference_device_output {
    uint32_t struct_size;
    uint32_t tensor; /* index in the task */
    uint64_t n;
    struct rung_buffer *value, *bound; /* the caller frees them, through the device service */
};

/* Least work of the task at some dims. */
struct rung_work {
    uint32_t struct_size;
    uint32_t reserved;
    double flops;     /* floating-point operations, fma = 2, elementary function = 1 */
    double min_bytes; /* every input read once, every output written once */
};

struct rung_reference_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /*
     * [worker] Checks the task's graph: names, shapes at the default dims, operators. Returns
     * RUNG_ECONFIG with the message "graph:COLUMN: what, remedy" when it can't be computed.
     */
    int32_t (*check)(void *self, struct rung_call *, const struct rung_task *);
    /* [worker] All outputs, in task order; memory in call->arena or owned until the next call. */
    int32_t (*evaluate)(void *self, struct rung_call *, const struct rung_reference_request *,
                        struct rung_reference_output *outputs, uint32_t n_outputs);
    int32_t (*work)(void *self, struct rung_call *, const struct rung_task *, const int64_t *dims,
                    struct rung_work *out);
    /*
     * [worker] May be NULL. evaluate on the device of rung.host.device/0: each input's view has its
     * buffer in `handle` and its device address in `data`, regions is NULL. Everything is queued
     * on the device's stream or done when it returns. RUNG_EUNSUPPORTED when some operator has no
     * form there, RUNG_ENOMEM when the device has too little room: the caller goes to evaluate.
     */
    int32_t (*evaluate_device)(void *self, struct rung_call *,
                               const struct rung_reference_request *,
                               struct rung_reference_device_output *outputs, uint32_t n_outputs);
};

#ifdef __cplusplus
}
#endif
#endif
