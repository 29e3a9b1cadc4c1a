/*
 * ops.c - the operation table, made from ops.def.
 */
#include "ir.h"

#include <string.h>

#define TAG(t) PTX_TAG_##t
#define TAGS0                                                                                      \
    {                                                                                              \
        0,                                                                                         \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define TAGS1(a)                                                                                   \
    {                                                                                              \
        1,                                                                                         \
        {                                                                                          \
            TAG(a)                                                                                 \
        }                                                                                          \
    }
#define TAGS2(a, b)                                                                                \
    {                                                                                              \
        2,                                                                                         \
        {                                                                                          \
            TAG(a), TAG(b)                                                                         \
        }                                                                                          \
    }
#define TAGS3(a, b, c)                                                                             \
    {                                                                                              \
        3,                                                                                         \
        {                                                                                          \
            TAG(a), TAG(b), TAG(c)                                                                 \
        }                                                                                          \
    }
#define TAGS4(a, b, c, d)                                                                          \
    {                                                                                              \
        4,                                                                                         \
        {                                                                                          \
            TAG(a), TAG(b), TAG(c), TAG(d)                                                         \
        }                                                                                          \
    }
#define TAGS5(a, b, c, d, e)                                                                       \
    {                                                                                              \
        5,                                                                                         \
        {                                                                                          \
            TAG(a), TAG(b), TAG(c), TAG(d), TAG(e)                                                 \
        }                                                                                          \
    }

/* A lane operation's class follows from its types; the pipes of special functions are named below.
 */
#define CLASS(t)                                                                                   \
    (PTX_TAG_##t >= PTX_TAG_f32 && PTX_TAG_##t <= PTX_TAG_bf ? PTX_C_FP32                          \
     : PTX_TAG_##t == PTX_TAG_f64                            ? PTX_C_FP64                          \
                                                             : PTX_C_INT)

const struct ptx_opinfo ptx_ops[PTX_N_OPS] = {
#define LANE1(n, d, a, expr, t) {#n, t, CLASS(a), 0, TAGS1(d), TAGS1(a)},
#define LANE2(n, d, a, b, expr, t) {#n, t, CLASS(a), 0, TAGS1(d), TAGS2(a, b)},
#define LANE3(n, d, a, b, c, expr, t) {#n, t, CLASS(a), 0, TAGS1(d), TAGS3(a, b, c)},
#define SETP(n, a, b, expr) {#n, NULL, CLASS(a), 0, TAGS1(p), TAGS2(a, b)},
#define OTHER(n, class, defs, uses) {#n, NULL, class, 0, defs, uses},
#include "ops.def"
};

uint32_t ptx_tag_width(uint32_t tag)
{
    switch (tag) {
    case PTX_TAG_none:
        return PTX_W_NONE;
    case PTX_TAG_p:
        return PTX_WP;
    case PTX_TAG_x:
        return PTX_WX;
    case PTX_TAG_u64:
    case PTX_TAG_s64:
    case PTX_TAG_f64:
        return PTX_W64;
    default:
        return PTX_W32;
    }
}

uint32_t ptx_op_class(uint32_t op)
{
    static const char special[][8] = {"div_", "rcp_", "sqrt_", "rsqrt_", "ex2_",
                                      "lg2_", "sin_", "cos_",  "tanh_"};
    const struct ptx_opinfo *info = &ptx_ops[op];

    if (info->class == PTX_C_FP32 && !strncmp(info->name, "fma_", 4))
        return PTX_C_FMA32;
    if (info->class == PTX_C_FP32)
        for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
            if (!strncmp(info->name, special[i], strlen(special[i])))
                return PTX_C_SPECIAL;
    return info->class;
}
