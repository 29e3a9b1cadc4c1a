/*
 * rung/tensor.h - element types and views of tensors. Only data, no functions that allocate.
 */
#ifndef RUNG_TENSOR_H
#define RUNG_TENSOR_H

#include <rung/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUNG_MAX_DIMS 8

/* Numbers are stable. Room is left for fp8 and sub-byte types; bits() is the only width source. */
enum rung_dtype {
    RUNG_F64 = 1,
    RUNG_F32 = 2,
    RUNG_F16 = 3,
    RUNG_BF16 = 4,
    RUNG_I8 = 16,
    RUNG_U8 = 17,
    RUNG_I32 = 18,
    RUNG_I64 = 19,
    RUNG_BOOL = 20, /* one byte, 0 or 1 */
};

/* [pure] Width in bits, or 0 for an unknown type. */
static inline uint32_t rung_dtype_bits(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_F64:
    case RUNG_I64:
        return 64;
    case RUNG_F32:
    case RUNG_I32:
        return 32;
    case RUNG_F16:
    case RUNG_BF16:
        return 16;
    case RUNG_I8:
    case RUNG_U8:
    case RUNG_BOOL:
        return 8;
    default:
        return 0;
    }
}

/* [pure] Name as it stands in task files, or NULL. */
static inline const char *rung_dtype_name(uint32_t dtype)
{
    switch (dtype) {
    case RUNG_F64:
        return "f64";
    case RUNG_F32:
        return "f32";
    case RUNG_F16:
        return "f16";
    case RUNG_BF16:
        return "bf16";
    case RUNG_I8:
        return "i8";
    case RUNG_U8:
        return "u8";
    case RUNG_I32:
        return "i32";
    case RUNG_I64:
        return "i64";
    case RUNG_BOOL:
        return "bool";
    default:
        return NULL;
    }
}

/* A tensor's memory seen from the host. data is readable for the extent that dims and strides give.
 */
struct rung_tensor_view {
    uint32_t struct_size;
    uint32_t dtype;                 /* rung_dtype */
    uint32_t n_dims;                /* 0 = scalar */
    uint32_t device_index;          /* which device of the executor holds it; 0 */
    uint64_t alignment;             /* bytes */
    int64_t offset;                 /* elements from data to the first element */
    int64_t dims[RUNG_MAX_DIMS];    /* elements */
    int64_t strides[RUNG_MAX_DIMS]; /* elements */
    const void *data;               /* host memory, or NULL where only the handle exists */
    void *handle;                   /* the device plugin's buffer, or NULL */
};

#ifdef __cplusplus
}
#endif
#endif
