/* Tensors of PyTorch in host code: see host.h. */
#include "host.h"
#include <string.h>

static bool is(const char *a, const char *b)
{
    return !strcmp(a, b);
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(name, *list))
            return true;
    return false;
}

static struct cg_value shape_list(const struct cg_value *t)
{
    return (struct cg_value){.kind = CG_LIST, .list = t->list, .n = t->n};
}

/* Axis number of an argument; negative ones count from the end. */
static bool axis_of(const struct cg_value *self, const struct cg_value *arg, uint32_t *axis)
{
    int64_t k;
    if (arg->kind != CG_NUM || !cg_sym_constant(arg->sym, &k))
        return false;
    k = k < 0 ? k + self->n : k;
    *axis = (uint32_t)k;
    return k >= 0 && k < self->n;
}

static struct cg_value with_shape(struct cg_value self, const struct cg_value *list, uint32_t n)
{
    self.list = list;
    self.n = n;
    return self;
}

/* view and reshape; one -1 is what the others leave. */
static struct cg_value view(struct cg_host *h, struct cg_value self, const struct cg_value *args,
                            uint32_t n)
{
    int64_t k;
    const struct cg_sym *rest = cg_product(h, self.list, self.n);
    if (n == 1 && args[0].kind == CG_LIST)
        return view(h, self, args[0].list, args[0].n);
    struct cg_value *list = cg_take(h->pool, (n + 1) * sizeof(*list));
    uint32_t open = n;
    for (uint32_t i = 0; i < n; i++) {
        list[i] = args[i];
        if (args[i].kind == CG_NUM && cg_sym_constant(args[i].sym, &k) && k == -1)
            open = i;
        else
            rest = cg_sym(h->pool, SYM_DIV, rest, args[i].kind == CG_NUM ? args[i].sym : NULL);
    }
    if (open < n)
        list[open] = cg_number(rest);
    return self.transposed ? cg_unknown(h, "a view of a transposed tensor")
                           : with_shape(self, list, n);
}

static struct cg_value transpose(struct cg_host *h, struct cg_value self,
                                 const struct cg_value *args, uint32_t n)
{
    uint32_t a = 0, b = 1;
    if (n == 2 && (!axis_of(&self, &args[0], &a) || !axis_of(&self, &args[1], &b)))
        return cg_unknown(h, "transpose");
    if (self.n < 2 || a >= self.n || b >= self.n)
        return self;
    struct cg_value *list = cg_take(h->pool, self.n * sizeof(*list));
    memcpy(list, self.list, self.n * sizeof(*list));
    list[a] = self.list[b];
    list[b] = self.list[a];
    self.transposed = !self.transposed;
    return with_shape(self, list, self.n);
}

/* flatten(first, last) */
static struct cg_value flatten(struct cg_host *h, struct cg_value self, const struct cg_value *args,
                               uint32_t n)
{
    uint32_t first = 0, last = self.n ? self.n - 1 : 0;
    if ((n > 0 && !axis_of(&self, &args[0], &first)) ||
        (n > 1 && !axis_of(&self, &args[1], &last)) || first > last || !self.n)
        return cg_unknown(h, "flatten");
    struct cg_value *list = cg_take(h->pool, (self.n + 1) * sizeof(*list));
    uint32_t count = 0;
    for (uint32_t i = 0; i < first; i++)
        list[count++] = self.list[i];
    list[count++] = cg_number(cg_product(h, self.list + first, last - first + 1));
    for (uint32_t i = last + 1; i < self.n; i++)
        list[count++] = self.list[i];
    return with_shape(self, list, count);
}

static struct cg_value unsqueeze(struct cg_host *h, struct cg_value self,
                                 const struct cg_value *args, uint32_t n)
{
    int64_t k;
    if (n != 1 || args[0].kind != CG_NUM || !cg_sym_constant(args[0].sym, &k))
        return cg_unknown(h, "unsqueeze");
    k = k < 0 ? k + self.n + 1 : k;
    if (k < 0 || k > self.n)
        return cg_unknown(h, "unsqueeze");
    struct cg_value *list = cg_take(h->pool, (self.n + 1) * sizeof(*list));
    for (uint32_t i = 0; i <= self.n; i++)
        list[i] = i == k ? cg_int(h, 1) : self.list[i - (i > k)];
    return with_shape(self, list, self.n + 1);
}

static bool shape_method(struct cg_host *h, struct cg_value self, const char *name,
                         const struct cg_value *args, uint32_t n, struct cg_value *out)
{
    uint32_t axis;
    if (is(name, "size") || is(name, "stride")) {
        bool good = n == 1 && axis_of(&self, &args[0], &axis);
        bool stride = is(name, "stride");
        *out = !good ? (n == 0 && !stride ? shape_list(&self) : cg_unknown(h, "an axis"))
               : stride && self.transposed ? cg_unknown(h, "a stride of a transposed tensor")
               : stride ? cg_number(cg_product(h, self.list + axis + 1, self.n - axis - 1))
                        : self.list[axis];
    } else if (is(name, "sizes")) {
        *out = shape_list(&self);
    } else if (is(name, "numel") || is(name, "nelement")) {
        *out = cg_number(cg_product(h, self.list, self.n));
    } else if (is(name, "nbytes")) {
        *out = cg_number(cg_sym(h->pool, SYM_MUL, cg_product(h, self.list, self.n),
                                cg_sym_int(h->pool, self.type.bytes)));
    } else if (is(name, "dim") || is(name, "ndimension")) {
        *out = cg_int(h, self.n);
    } else if (is(name, "element_size") || is(name, "itemsize")) {
        *out = cg_int(h, self.type.bytes);
    } else if (is(name, "view") || is(name, "reshape")) {
        *out = view(h, self, args, n);
    } else if (is(name, "flatten")) {
        *out = flatten(h, self, args, n);
    } else if (is(name, "t") || is(name, "transpose")) {
        *out = transpose(h, self, args, n);
    } else if (is(name, "unsqueeze")) {
        *out = unsqueeze(h, self, args, n);
    } else {
        return false;
    }
    return true;
}

static struct cg_value new_tensor(struct cg_host *h, const struct cg_value *shape, uint32_t n,
                                  struct cg_type type)
{
    struct cg_buffer *b = cg_new_buffer(h, "");
    const struct cg_sym *elements = cg_product(h, shape, n);
    type.bytes = cg_dtype_bytes(type.dtype);
    type.cls = CG_TYPE_REAL;
    b->dtype = type.dtype;
    b->bytes = cg_sym(h->pool, SYM_MUL, elements, cg_sym_int(h->pool, type.bytes));
    return (struct cg_value){.kind = CG_TENSOR,
                             .buffer = b,
                             .type = type,
                             .list = shape,
                             .n = n,
                             .sym = cg_sym_int(h->pool, 0)};
}

/* Shape and type of empty({...}, options), empty(m, n, dtype=...), empty_like(x). */
static struct cg_value make(struct cg_host *h, bool like, const struct cg_value *args, uint32_t n)
{
    struct cg_type type = {.dtype = RUNG_F32, .text = "float"};
    const struct cg_value *shape = args;
    uint32_t n_shape = 0;
    for (uint32_t k = 0; k < n; k++)
        if ((args[k].kind == CG_A_TYPE || args[k].kind == CG_OPAQUE) && args[k].type.dtype)
            type = args[k].type;
    if (like) {
        if (!n || args[0].kind != CG_TENSOR)
            return cg_unknown(h, "the shape of a new tensor");
        return new_tensor(h, args[0].list, args[0].n, args[0].type);
    }
    if (n && args[0].kind == CG_LIST) {
        shape = args[0].list;
        n_shape = args[0].n;
    } else {
        while (n_shape < n && args[n_shape].kind == CG_NUM)
            n_shape++;
    }
    for (uint32_t k = 0; k < n_shape; k++)
        if (shape[k].kind != CG_NUM)
            return cg_unknown(h, "the shape of a new tensor: %.80s",
                              shape[k].kind == CG_UNKNOWN ? shape[k].text : "");
    return new_tensor(h, shape, n_shape, type);
}

/* Of memory with strides, what these mean is no plain view. */
static bool needs_dense(const struct cg_host *h, const struct cg_value *self, const char *name)
{
    static const char *const names[] = {
        "contiguous", "is_contiguous", "clone",     "stride",    "view",    "reshape", "flatten",
        "t",          "transpose",     "unsqueeze", "expand_as", "view_as", "nbytes",  NULL};
    const struct cg_buffer *b = cg_real_buffer(self->buffer);
    return b && b->tensor >= 0 && h->task->tensors[b->tensor].stride[0] && is_one_of(name, names);
}

static bool tensor_method(struct cg_host *h, struct cg_value self, const char *name,
                          const struct cg_value *args, uint32_t n, struct cg_value *out)
{
    static const char *const same[] = {
        "contiguous", "cuda",   "detach",         "data",      "to",      "float",
        "half",       "double", "requires_grad_", "expand_as", "view_as", NULL};
    static const char *const pointers[] = {"data_ptr", "const_data_ptr", "mutable_data_ptr", NULL};
    static const char *const yes[] = {"is_cuda", "defined", "has_value", NULL};
    if (needs_dense(h, &self, name)) {
        *out = cg_unknown(h, "%s of a tensor with strides", name);
        return true;
    }
    if (shape_method(h, self, name, args, n, out))
        return true;
    if (is_one_of(name, pointers)) {
        *out = cg_pointer(h, self.buffer, self.type);
        out->sym = self.sym;
    } else if (is_one_of(name, same)) {
        *out = is(name, "contiguous") && self.transposed
                   ? cg_unknown(h, "a copy of a transposed tensor")
                   : self;
        if (is(name, "data"))
            *out = n ? self : cg_pointer(h, self.buffer, self.type);
    } else if (is(name, "scalar_type") || is(name, "dtype")) {
        *out = (struct cg_value){.kind = CG_A_TYPE, .type = self.type};
    } else if (is(name, "options")) {
        *out = (struct cg_value){.kind = CG_OPAQUE, .text = "options", .type = self.type};
    } else if (is(name, "zero_") || is(name, "fill_")) {
        int64_t k = 0;
        if (n && (args[0].kind != CG_NUM || !cg_fixed(&args[0], &k) || k))
            cg_problem(h, "a fill with another value than 0");
        struct cg_value p = cg_pointer(h, self.buffer, self.type);
        cg_add_zero(h, p, NULL);
        *out = self;
    } else if (is_one_of(name, yes)) {
        *out = cg_int(h, 1);
    } else if (is(name, "is_contiguous")) {
        *out = cg_int(h, !self.transposed);
    } else if (is(name, "value") || is(name, "value_or")) { /* of an optional */
        *out = self;
    } else if (is(name, "new_empty") || is(name, "new_zeros")) {
        *out = make(h, false, args, n);
        if (out->kind == CG_TENSOR) {
            *out = new_tensor(h, out->list, out->n, self.type);
            if (is(name, "new_zeros"))
                cg_add_zero(h, cg_pointer(h, out->buffer, out->type), NULL);
        }
    } else {
        return false;
    }
    return true;
}

/* x.sizes().back(), shape.size() */
static bool list_method(struct cg_host *h, struct cg_value self, const char *name,
                        const struct cg_value *args, uint32_t n, struct cg_value *out)
{
    int64_t k = 0;
    if (is(name, "size")) {
        *out = cg_int(h, self.n);
    } else if ((is(name, "back") || is(name, "front")) && self.n) {
        *out = self.list[is(name, "back") ? self.n - 1 : 0];
    } else if (is(name, "at") && n == 1 && cg_fixed(&args[0], &k) && k >= 0 && k < self.n) {
        *out = self.list[k];
    } else if (is(name, "vec")) {
        *out = self;
    } else {
        return false;
    }
    return true;
}

bool cg_call_method(struct cg_host *h, struct cg_value self, const char *name,
                    const struct cg_value *args, uint32_t n, struct cg_value *out)
{
    if (self.kind == CG_TENSOR)
        return tensor_method(h, self, name, args, n, out);
    if (self.kind == CG_POINTER && (is(name, "data") || is(name, "get"))) {
        *out = self;
        return true;
    }
    if (self.kind == CG_POINTER && is(name, "size") && self.buffer && self.type.bytes > 0) {
        *out = cg_number(
            cg_sym(h->pool, SYM_DIV, self.buffer->bytes, cg_sym_int(h->pool, self.type.bytes)));
        return true;
    }
    if (self.kind == CG_LIST && list_method(h, self, name, args, n, out))
        return true;
    if (self.kind == CG_OPAQUE) { /* options().dtype(...), stream.stream() */
        *out = self;
        for (uint32_t k = 0; k < n; k++)
            if (args[k].kind == CG_A_TYPE)
                out->type = args[k].type;
        return strcmp(self.text, "device properties") != 0;
    }
    return false;
}

/* ---- Functions ------------------------------------------------------------------------------ */

bool cg_call_torch(struct cg_host *h, const char *name, const struct cg_value *args, uint32_t n,
                   struct cg_value *out)
{
    static const char *const streams[] = {"getCurrentCUDAStream",
                                          "getDefaultCUDAStream",
                                          "TensorOptions",
                                          "device_of",
                                          "CUDAGuard",
                                          "OptionalCUDAGuard",
                                          "current_stream",
                                          NULL};
    bool torch = !strncmp(name, "torch::", 7);
    const char *bare = torch ? name + 7 : name;
    if (is_one_of(bare, streams)) {
        *out = cg_opaque("torch");
        return true;
    }
    if (is(bare, "getCurrentDeviceProperties") || is(bare, "getDeviceProperties")) {
        *out = cg_opaque("device properties");
        return true;
    }
    if (is(bare, "device") || is(bare, "dtype")) {
        *out = cg_opaque("options");
        if (n && args[0].kind == CG_A_TYPE)
            out->type = args[0].type;
        return true;
    }
    if (!torch)
        return false;
    if (is(bare, "empty") || is(bare, "empty_like")) {
        *out = make(h, is(bare, "empty_like"), args, n);
    } else if (is(bare, "zeros") || is(bare, "zeros_like")) {
        *out = make(h, is(bare, "zeros_like"), args, n);
        if (out->kind == CG_TENSOR)
            cg_add_zero(h, cg_pointer(h, out->buffer, out->type), NULL);
    } else {
        return false;
    }
    return true;
}
