/* The table of operators; see signature.h. */
#include "signature.h"
#include <string.h>

#define REDUCTION(n)                                                                               \
    {                                                                                              \
        n,                                                                                         \
        {                                                                                          \
            {"x", NULL}, {"axis", NULL},                                                           \
            {                                                                                      \
                "keepdim", "0"                                                                     \
            }                                                                                      \
        }                                                                                          \
    }

static const struct signature signatures[] = {
    {"softmax", {{"x", NULL}, {"axis", NULL}}},
    {"log_softmax", {{"x", NULL}, {"axis", NULL}}},
    {"layernorm",
     {{"x", NULL}, {"weight", NULL}, {"bias", NULL}, {"axis", "-1"}, {"eps", "1e-05"}}},
    {"matmul", {{"a", NULL}, {"b", NULL}, {"transpose_a", "0"}, {"transpose_b", "0"}}},
    {"conv2d",
     {{"x", NULL},
      {"w", NULL},
      {"bias", NULL},
      {"stride", "1"},
      {"pad", "0"},
      {"dilation", "1"},
      {"groups", "1"}}},
    {"maxpool2d",
     {{"x", NULL},
      {"kernel", NULL},
      {"stride", "=kernel"},
      {"pad", "0"},
      {"dilation", "1"},
      {"ceil_mode", "0"}}},
    {"avgpool2d",
     {{"x", NULL},
      {"kernel", NULL},
      {"stride", "=kernel"},
      {"pad", "0"},
      {"count_include_pad", "1"},
      {"ceil_mode", "0"}}},
    {"attention",
     {{"q", NULL}, {"k", NULL}, {"v", NULL}, {"causal", "0"}, {"scale", NULL}, {"mask", NULL}}},
    {"transpose", {{"x", NULL}, {"dim0", "-2"}, {"dim1", "-1"}}},
    {"relu", {{"x", NULL}}},
    REDUCTION("sum"),
    REDUCTION("mean"),
    REDUCTION("max"),
    REDUCTION("min"),
    REDUCTION("argmax"),
    REDUCTION("argmin"),
    REDUCTION("logsumexp"),
};

static uint32_t n_params(const struct signature *signature)
{
    uint32_t n = 0;
    while (n < SIGNATURE_MAX_PARAMS && signature->params[n].name)
        ++n;
    return n;
}

/* Names that other libraries give, without their underscores. */
static const struct {
    const char *other, *name;
} aliases[] = {
    {"bmm", "matmul"},
    {"dim", "axis"},
    {"kernelsize", "kernel"},
    {"padding", "pad"},
    {"iscausal", "causal"},
    {"attnmask", "mask"},
    {"b", "bias"},
    {"scaleddotproductattention", "attention"},
};

/* Whether two names are one but for underscores. */
static bool same_name(struct llm_span given, const char *name)
{
    for (size_t i = 0;; ++i, ++name) {
        while (i < given.len && given.ptr[i] == '_')
            ++i;
        while (*name == '_')
            ++name;
        if (i >= given.len || !*name)
            return i >= given.len && !*name;
        if (given.ptr[i] != *name)
            return false;
    }
}

bool signature_means(struct llm_span given, const char *name)
{
    if (same_name(given, name))
        return true;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; ++i)
        if (same_name(given, aliases[i].other) && strcmp(aliases[i].name, name) == 0)
            return true;
    return false;
}

const struct signature *signature_find(struct llm_span name)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; ++i)
        if (signature_means(name, signatures[i].name))
            return &signatures[i];
    return NULL;
}

const struct graph_node *signature_arg(const struct signature *signature, const struct graph *graph,
                                       const struct graph_node *call, uint32_t param)
{
    uint32_t position = 0;
    for (uint32_t i = 0; i < call->n_args; ++i) {
        const bool positional = call->keywords[i].len == 0;
        if (positional ? position++ == param
                       : signature_means(call->keywords[i], signature->params[param].name))
            return &graph->nodes[call->args[i]];
    }
    return NULL;
}

bool signature_fits(const struct signature *signature, const struct graph_node *call)
{
    const uint32_t known = n_params(signature);
    uint32_t seen = 0, position = 0;
    for (uint32_t i = 0; i < call->n_args; ++i) {
        uint32_t at = 0;
        if (call->keywords[i].len == 0)
            at = position++;
        else
            while (at < known && !signature_means(call->keywords[i], signature->params[at].name))
                ++at;
        if (at >= known || seen >> at & 1)
            return false;
        seen |= 1u << at;
    }
    return true;
}
