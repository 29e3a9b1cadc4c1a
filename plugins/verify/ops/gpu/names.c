/* What the functions of maps are called in the kernels' source. */
#include "gpu.h"

#define NAME(f)                                                                                    \
    {                                                                                              \
        f, #f                                                                                      \
    }

static const struct {
    ops_unary f;
    const char *name;
} unary[] = {
    NAME(ops_neg),       NAME(ops_abs),         NAME(ops_exp),      NAME(ops_log),
    NAME(ops_sqrt),      NAME(ops_sin),         NAME(ops_cos),      NAME(ops_erf),
    NAME(ops_tanh),      NAME(ops_relu),        NAME(ops_sigmoid),  NAME(ops_silu),
    NAME(ops_softplus),  NAME(ops_mish),        NAME(ops_gelu),     NAME(ops_gelu_tanh),
    NAME(ops_rsqrt),     NAME(ops_reciprocal),  NAME(ops_square),   NAME(ops_log2),
    NAME(ops_log1p),     NAME(ops_exp2),        NAME(ops_expm1),    NAME(ops_floor),
    NAME(ops_ceil),      NAME(ops_round),       NAME(ops_sign),     NAME(ops_relu6),
    NAME(ops_selu),      NAME(ops_hardsigmoid), NAME(ops_softsign), NAME(ops_logsigmoid),
    NAME(ops_hardswish),
};
static const struct {
    ops_binary f;
    const char *name;
} binary[] = {
    NAME(ops_add),       NAME(ops_sub),        NAME(ops_sub_in_exp), NAME(ops_add_in_exp),
    NAME(ops_mul),       NAME(ops_div),        NAME(ops_pow),        NAME(ops_max),
    NAME(ops_min),       NAME(ops_leaky_relu), NAME(ops_elu),        NAME(ops_huber),
    NAME(ops_smooth_l1), NAME(ops_xlogy),      NAME(ops_gt),         NAME(ops_ge),
    NAME(ops_lt),        NAME(ops_le),         NAME(ops_eq),         NAME(ops_ne),
    NAME(ops_one_minus),
};
static const struct {
    ops_ternary f;
    const char *name;
} ternary[] = {NAME(ops_where)};

#define FIND(table, wanted)                                                                        \
    do {                                                                                           \
        for (uint32_t i = 0; i < sizeof table / sizeof *table; i++)                                \
            if (table[i].f == (wanted))                                                            \
                return table[i].name;                                                              \
        return NULL;                                                                               \
    } while (0)

const char *ops_gpu_unary_name(ops_unary f)
{
    FIND(unary, f);
}

const char *ops_gpu_binary_name(ops_binary f)
{
    FIND(binary, f);
}

const char *ops_gpu_ternary_name(ops_ternary f)
{
    FIND(ternary, f);
}
