/* Types of host code, as far as launches need them: see host.h. */
#include "host.h"
#include <string.h>

static const struct {
    const char *name;
    uint32_t dtype;
    int64_t bytes;
} number_types[] = {
    {"float", RUNG_F32, 4},
    {"double", RUNG_F64, 8},
    {"half", RUNG_F16, 2},
    {"__half", RUNG_F16, 2},
    {"Half", RUNG_F16, 2},
    {"nv_half", RUNG_F16, 2},
    {"__nv_bfloat16", RUNG_BF16, 2},
    {"nv_bfloat16", RUNG_BF16, 2},
    {"BFloat16", RUNG_BF16, 2},
    {"bfloat16", RUNG_BF16, 2},
    {"int", RUNG_I32, 4},
    {"int32_t", RUNG_I32, 4},
    {"uint32_t", RUNG_I32, 4},
    {"unsigned", RUNG_I32, 4},
    {"uint", RUNG_I32, 4},
    {"int64_t", RUNG_I64, 8},
    {"uint64_t", RUNG_I64, 8},
    {"size_t", RUNG_I64, 8},
    {"ssize_t", RUNG_I64, 8},
    {"ptrdiff_t", RUNG_I64, 8},
    {"uintptr_t", RUNG_I64, 8},
    {"intptr_t", RUNG_I64, 8},
    {"long", RUNG_I64, 8},
    {"char", RUNG_I8, 1},
    {"int8_t", RUNG_I8, 1},
    {"uint8_t", RUNG_U8, 1},
    {"byte", RUNG_U8, 1},
    {"bool", RUNG_BOOL, 1},
    {"short", 0, 2},
    {"int16_t", 0, 2},
    {"uint16_t", 0, 2},
    {"float2", RUNG_F32, 8},
    {"float3", RUNG_F32, 12},
    {"float4", RUNG_F32, 16},
    {"double2", RUNG_F64, 16},
    {"int2", RUNG_I32, 8},
    {"int4", RUNG_I32, 16},
    {"uint4", RUNG_I32, 16},
    {"uint2", RUNG_I32, 8},
    {"half2", RUNG_F16, 4},
    {"__half2", RUNG_F16, 4},
    {"__nv_bfloat162", RUNG_BF16, 4},
    {"kFloat", RUNG_F32, 4},
    {"kFloat32", RUNG_F32, 4},
    {"kDouble", RUNG_F64, 8},
    {"kFloat64", RUNG_F64, 8},
    {"kHalf", RUNG_F16, 2},
    {"kFloat16", RUNG_F16, 2},
    {"kBFloat16", RUNG_BF16, 2},
    {"kInt", RUNG_I32, 4},
    {"kInt32", RUNG_I32, 4},
    {"kLong", RUNG_I64, 8},
    {"kInt64", RUNG_I64, 8},
    {"kByte", RUNG_U8, 1},
    {"kChar", RUNG_I8, 1},
    {"kBool", RUNG_BOOL, 1},
    {"float32", RUNG_F32, 4},
    {"float16", RUNG_F16, 2},
    {"float64", RUNG_F64, 8},
    {"int32", RUNG_I32, 4},
    {"int64", RUNG_I64, 8},
};
enum { N_NUMBER_TYPES = sizeof(number_types) / sizeof(*number_types) };

const char *cg_c_type(uint32_t dtype)
{
    static const struct {
        uint32_t dtype;
        const char *name;
    } names[] = {{RUNG_F32, "float"},          {RUNG_F64, "double"},       {RUNG_F16, "__half"},
                 {RUNG_BF16, "__nv_bfloat16"}, {RUNG_I32, "int"},          {RUNG_I64, "long long"},
                 {RUNG_I8, "signed char"},     {RUNG_U8, "unsigned char"}, {RUNG_BOOL, "bool"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].dtype == dtype)
            return names[i].name;
    return "float";
}

int64_t cg_dtype_bytes(uint32_t dtype)
{
    return dtype ? rung_dtype_bits(dtype) / 8 : 0;
}

uint32_t cg_dtype_of_name(const char *name)
{
    for (size_t i = 0; i < N_NUMBER_TYPES; i++)
        if (!strcmp(number_types[i].name, name))
            return number_types[i].dtype;
    return 0;
}

static bool number_type(const char *name, struct cg_type *type)
{
    for (size_t i = 0; i < N_NUMBER_TYPES; i++) {
        if (strcmp(number_types[i].name, name) != 0)
            continue;
        uint32_t d = number_types[i].dtype;
        bool real = d == RUNG_F32 || d == RUNG_F64 || d == RUNG_F16 || d == RUNG_BF16;
        bool lanes = d && number_types[i].bytes != cg_dtype_bytes(d);
        type->cls = lanes ? CG_TYPE_OTHER : real ? CG_TYPE_REAL : CG_TYPE_INT;
        type->dtype = d;
        type->bytes = number_types[i].bytes;
        return true;
    }
    return false;
}

static bool is_word(const struct cg_token *t, const char *const *words)
{
    for (; *words; words++)
        if (cg_is(t, *words))
            return true;
    return false;
}

static bool is_qualifier(const struct cg_token *t)
{
    static const char *const words[] = {"const",        "constexpr",  "static",   "volatile",
                                        "inline",       "struct",     "typename", "register",
                                        "thread_local", "mutable",    "class",    "extern",
                                        "__restrict__", "__restrict", "enum",     "restrict",
                                        "__host__",     "__device__", NULL};
    return is_word(t, words);
}

/* int, unsigned long long, ... at i; returns what is behind. */
static uint32_t read_integer(const struct cg_tokens *code, uint32_t i, uint32_t end,
                             struct cg_type *type)
{
    static const char *const words[] = {"unsigned", "signed", "long",   "short",
                                        "int",      "char",   "double", NULL};
    int longs = 0, shorts = 0, chars = 0, doubles = 0;
    uint32_t from = i;
    for (; i < end && is_word(&code->t[i], words); i++) {
        longs += cg_is(&code->t[i], "long");
        shorts += cg_is(&code->t[i], "short");
        chars += cg_is(&code->t[i], "char");
        doubles += cg_is(&code->t[i], "double");
    }
    if (i == from)
        return i;
    type->cls = doubles ? CG_TYPE_REAL : CG_TYPE_INT;
    type->dtype = doubles  ? RUNG_F64
                  : longs  ? RUNG_I64
                  : chars  ? (cg_is(&code->t[from], "unsigned") ? RUNG_U8 : RUNG_I8)
                  : shorts ? 0
                           : RUNG_I32;
    type->bytes = shorts ? 2 : cg_dtype_bytes(type->dtype);
    return i;
}

static const struct cg_item *find_type_item(const struct cg_host *h, const struct cg_token *t)
{
    for (size_t i = 0; h->items && i < h->items->n; i++)
        if (h->items->list[i].kind == CG_TYPE && cg_is(t, h->items->list[i].name))
            return &h->items->list[i];
    return NULL;
}

/* using NAME = type; and typedef type NAME; of the source. */
static bool global_alias(struct cg_host *h, const struct cg_token *name, struct cg_type *type)
{
    const struct cg_token *t = h->tokens ? h->tokens->t : NULL;
    for (size_t k = 0; h->items && k < h->items->n; k++) {
        const struct cg_item *it = &h->items->list[k];
        if (it->kind != CG_USING || it->to < it->from + 4 || h->aliases > 8)
            continue;
        bool typedefs = cg_is(&t[it->from], "typedef");
        const struct cg_token *own = typedefs ? &t[it->to - 2] : &t[it->from + 1];
        if (own->n != name->n || memcmp(own->s, name->s, name->n) != 0 || own == name)
            continue;
        uint32_t from = it->from + (typedefs ? 1 : 3), to = it->to - (typedefs ? 2 : 1);
        h->aliases++;
        bool good = from < to && cg_read_type(h, h->tokens, from, to, type) == to;
        h->aliases--;
        return good;
    }
    return false;
}

/* A type's name with :: and <>; sets cls to OTHER for what it does not know. */
static uint32_t read_named(struct cg_host *h, const struct cg_tokens *code, uint32_t i,
                           uint32_t end, struct cg_type *type, bool *known)
{
    uint32_t last = i;
    while (i < end && code->t[i].kind == CG_NAME) {
        last = i++;
        if (i < end && cg_is(&code->t[i], "<")) {
            uint32_t close = cg_close_angle(code, i, end);
            i = close > i ? close : i;
        }
        if (i + 1 >= end || !cg_is(&code->t[i], "::"))
            break;
        i++;
    }
    char *name = cg_token_text(h->pool, &code->t[last]);
    struct cg_variable *alias = cg_find_variable(h, name);
    *known = true;
    if (alias && alias->value.kind == CG_A_TYPE) {
        bool is_const = type->is_const;
        *type = alias->value.type;
        type->is_const |= is_const;
    } else if (number_type(name, type)) {
        return i;
    } else if (!cg_find_variable(h, name) && global_alias(h, &code->t[last], type)) {
        return i;
    } else if (!strcmp(name, "auto")) {
        type->cls = CG_TYPE_AUTO;
    } else if (!strcmp(name, "void")) {
        type->cls = CG_TYPE_VOID;
        type->bytes = 1;
    } else if (!strcmp(name, "dim3")) {
        type->cls = CG_TYPE_DIM3;
    } else if (!strcmp(name, "Tensor") ||
               (!strcmp(name, "optional") && cg_is(&code->t[last + 1], "<"))) {
        type->cls = CG_TYPE_TENSOR;
    } else {
        type->cls = CG_TYPE_OTHER;
        *known = find_type_item(h, &code->t[last]) || !strncmp(name, "cuda", 4);
    }
    return i;
}

uint32_t cg_read_type(struct cg_host *h, const struct cg_tokens *code, uint32_t i, uint32_t end,
                      struct cg_type *type)
{
    uint32_t from = i;
    bool known = true;
    *type = (struct cg_type){.text = ""};
    for (; i < end && is_qualifier(&code->t[i]); i++)
        type->is_const |= cg_is(&code->t[i], "const") || cg_is(&code->t[i], "constexpr");
    uint32_t base = i;
    i = read_integer(code, i, end, type);
    if (i == base && i < end && code->t[i].kind == CG_NAME)
        i = read_named(h, code, i, end, type, &known);
    if (i == base)
        return from;
    if (!type->text[0])
        type->text = cg_tokens_text(h->pool, &code->t[base], &code->t[i]);
    bool foreign = strstr(type->text, "Half") || strstr(type->text, "BFloat16");
    if (type->dtype && foreign) /* names of PyTorch */
        type->text = cg_c_type(type->dtype);
    for (; i < end; i++) {
        const struct cg_token *t = &code->t[i];
        if (cg_is(t, "*")) {
            bool again = type->cls == CG_TYPE_POINTER;
            type->cls = CG_TYPE_POINTER;
            type->bytes = again ? 8 : type->bytes;
        } else if (cg_is(t, "&") || cg_is(t, "&&")) {
            type->reference = true;
        } else if (is_qualifier(t)) {
            type->is_const |= cg_is(t, "const") && type->cls != CG_TYPE_POINTER;
        } else {
            break;
        }
    }
    return known || type->cls == CG_TYPE_POINTER || type->reference || code->t[i].kind == CG_NAME
               ? i
               : from;
}

struct cg_type cg_param_type(struct cg_host *h, const struct cg_tokens *code,
                             const struct cg_parameter *param)
{
    struct cg_type type;
    cg_read_type(h, code, param->from, param->to, &type);
    for (uint32_t i = param->from; i < param->to; i++)
        if (cg_is(&code->t[i], "[") && type.cls != CG_TYPE_POINTER) {
            type.cls = CG_TYPE_POINTER;
            break;
        }
    return type;
}
