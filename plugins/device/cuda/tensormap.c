/*
 * Tensor maps of the bulk copy engine. The driver's only answer to a wrong one is "invalid value",
 * so each limit of its reference (cuTensorMapEncodeTiled, CUDA 13) is looked at first and told
 * with its remedy.
 */
#include "cuda.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 16, MOST_BOX = 256, MOST_STEP = 8, SWIZZLES = 4, UNKNOWN = -1 };
#define MOST_DIM (UINT64_C(1) << 32)
#define END_STRIDE (UINT64_C(1) << 40)

static int refuse(struct rung_fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(struct rung_fault *fault, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    snprintf(fault->code, sizeof fault->code, "plan.error");
    vsnprintf(fault->message, sizeof fault->message, format, args);
    va_end(args);
    return 0;
}

/* CUtensorMapDataType, or UNKNOWN. */
static int type_of(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_I8:
    case RUNG_U8:
    case RUNG_BOOL:
        return 0; /* UINT8 */
    case RUNG_I32:
        return 3; /* INT32 */
    case RUNG_I64:
        return 5; /* INT64 */
    case RUNG_F16:
        return 6; /* FLOAT16 */
    case RUNG_F32:
        return 7; /* FLOAT32 */
    case RUNG_F64:
        return 8; /* FLOAT64 */
    case RUNG_BF16:
        return 9; /* BFLOAT16 */
    default:
        return UNKNOWN;
    }
}

static int is_float(uint32_t dtype)
{
    return dtype == RUNG_F64 || dtype == RUNG_F32 || dtype == RUNG_F16 || dtype == RUNG_BF16;
}

/* Place of bytes among 0, first, 2 first, 4 first; UNKNOWN. Both enumerations count so. */
static int place_of(uint32_t bytes, uint32_t first)
{
    for (int i = 1; i < SWIZZLES; i++, first *= 2)
        if (bytes == first)
            return i;
    return bytes == 0 ? 0 : UNKNOWN;
}

static int check_dim(const struct rung_tensormap *m, uint32_t i, struct rung_fault *fault)
{
    if (m->dims[i] == 0 || m->dims[i] > MOST_DIM)
        return refuse(fault,
                      "dims[%u] is %" PRIu64 ", but it must lie between 1 and 2^32: let when= "
                      "leave the launch out, or fold the tensor into other dims",
                      i, m->dims[i]);
    if (m->box[i] == 0 || m->box[i] > MOST_BOX)
        return refuse(fault,
                      "box[%u] is %u, but it must lie between 1 and %d: copy larger tiles in "
                      "several parts",
                      i, m->box[i], MOST_BOX);
    if (m->elements[i] == 0 || m->elements[i] > MOST_STEP)
        return refuse(fault, "elements[%u] is %u, but it must lie between 1 and %d", i,
                      m->elements[i], MOST_STEP);
    if (i == 0)
        return 1;
    if (m->strides[i] % ALIGNMENT)
        return refuse(fault,
                      "the stride of dimension %u is %" PRIu64 " bytes, no multiple of %d: such "
                      "shapes need a launch of another kernel, without the tensor map (when= with "
                      "%% tells them apart), or a copy in a temp with padded rows",
                      i, m->strides[i], ALIGNMENT);
    return m->strides[i] < END_STRIDE ||
           refuse(fault, "the stride of dimension %u is %" PRIu64 " bytes; it must be below 2^40",
                  i, m->strides[i]);
}

static int check_row(const struct rung_tensormap *m, uint32_t size, struct rung_fault *fault)
{
    uint32_t row = m->box[0] * size;
    if (row % ALIGNMENT)
        return refuse(fault,
                      "box[0] is %u elements of %u bytes, %u bytes in all, no multiple of %d: "
                      "take a multiple of %u elements",
                      m->box[0], size, row, ALIGNMENT, ALIGNMENT / size);
    if (place_of(m->swizzle, 32) == UNKNOWN)
        return refuse(fault, "swizzle is %u bytes, but it must be 0, 32, 64 or 128", m->swizzle);
    if (m->swizzle && row > m->swizzle)
        return refuse(fault,
                      "box[0] is %u elements of %u bytes, %u bytes in all, but with swizzle=%u it "
                      "must not pass %u bytes: take at most %u elements and several copies",
                      m->box[0], size, row, m->swizzle, m->swizzle, m->swizzle / size);
    return place_of(m->l2_promotion, 64) != UNKNOWN ||
           refuse(fault, "l2 is %u bytes, but it must be 0, 64, 128 or 256", m->l2_promotion);
}

/* 0 with a fault unless the hardware takes the map. */
static int check(const struct rung_tensormap *m, struct rung_fault *fault)
{
    uint32_t size = rung_dtype_bits(m->dtype) / 8;
    if (type_of(m->dtype) == UNKNOWN)
        return refuse(fault, "tensor maps have no elements of type %u", m->dtype);
    if (m->n_dims == 0 || m->n_dims > RUNG_TENSORMAP_DIMS)
        return refuse(fault, "%u dimensions, but a tensor map has 1 to %d: fold some into one",
                      m->n_dims, RUNG_TENSORMAP_DIMS);
    if (m->address % ALIGNMENT)
        return refuse(fault,
                      "the first element lies at an address that is no multiple of %d: the offset "
                      "must be a multiple of %u elements; start at the tensor and add the rest to "
                      "the coordinates in the kernel",
                      ALIGNMENT, ALIGNMENT / size);
    for (uint32_t i = 0; i < m->n_dims; i++)
        if (!check_dim(m, i, fault))
            return 0;
    if (m->fill_nan && !is_float(m->dtype))
        return refuse(fault, "oob=nan needs elements that are floats, but these are %s",
                      rung_dtype_name(m->dtype));
    return check_row(m, size, fault);
}

int32_t cuda_tensormap(void *ptr, struct rung_call *call, const struct rung_tensormap *m, void *out,
                       struct rung_fault *fault)
{
    struct cuda *self = ptr;
    alignas(64) char encoded[RUNG_TENSORMAP_BYTES];
    int32_t status = cuda_enter_queue(self, call);
    if (status != RUNG_OK)
        return status;
    if (!self->tensor_maps) {
        snprintf(fault->code, sizeof fault->code, "device.unsupported");
        snprintf(fault->message, sizeof fault->message, "%s with driver %s has no tensor maps",
                 self->name, self->version);
        return RUNG_OK;
    }
    if (!check(m, fault))
        return RUNG_OK;
    cu_result result = self->driver.tensormap(
        encoded, type_of(m->dtype), m->n_dims, (void *)(uintptr_t)m->address, m->dims,
        m->strides + 1, m->box, m->elements, 0, place_of(m->swizzle, 32),
        place_of(m->l2_promotion, 64), m->fill_nan != 0);
    cuda_fault(self, result, "tensor map", fault);
    if (result == CU_INVALID_VALUE)
        snprintf(fault->code, sizeof fault->code, "plan.error");
    if (result == CU_OK)
        memcpy(out, encoded, sizeof encoded);
    return RUNG_OK;
}
