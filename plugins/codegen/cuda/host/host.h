/*
 * Reading host code: a walk over its tokens with symbolic values that collects launches instead of
 * making them. Where a condition depends on the dims, the walk is made once for each outcome.
 * Private to this folder. One thread; all results in the pool.
 */
#ifndef CODEGEN_CUDA_HOST_H
#define CODEGEN_CUDA_HOST_H

#include "items.h"
#include "sym.h"
#include <rung/task.h>

enum { CG_MAX_PATH_DECISIONS = 48, CG_MAX_STEPS = 64, CG_MAX_ARGS = 64 };

enum cg_class {
    CG_TYPE_OTHER,
    CG_TYPE_AUTO,
    CG_TYPE_VOID,
    CG_TYPE_INT,
    CG_TYPE_REAL,
    CG_TYPE_POINTER,
    CG_TYPE_TENSOR,
    CG_TYPE_DIM3,
};

struct cg_type {
    enum cg_class cls;
    uint32_t dtype; /* rung_dtype of the number or of what the pointer points at; 0: unknown */
    int64_t bytes;  /* of one element: 16 for float4; 0: unknown */
    bool is_const;  /* of what the pointer points at */
    bool reference;
    const char *text; /* as C++ */
};

/* Device memory: a tensor of the task or scratch. */
struct cg_buffer {
    struct cg_buffer *next;
    struct cg_buffer *same; /* what it turned out to be */
    const char *name;
    int tensor; /* of the task, or -1 */
    uint32_t dtype;
    const struct cg_sym *bytes; /* NULL: unknown */
    bool host;                  /* memory of the CPU */
    bool from_host, to_host;    /* copied from or to the CPU */
    bool managed;               /* seen by both */
    bool written, read_only;    /* met a kernel's pointer to data, to const data */
    bool returned;
};

enum cg_value_kind {
    CG_UNKNOWN, /* text: what is not understood */
    CG_NOTHING,
    CG_NUM,     /* sym */
    CG_POINTER, /* buffer, sym = offset in bytes, type = what it points at; buffer NULL: null */
    CG_DIM3,    /* list of 3 */
    CG_TENSOR,  /* buffer, list = shape, type = element */
    CG_CALLEE,  /* item, text = template arguments with <>; or a type's or function's name */
    CG_LAMBDA,  /* code, i = its '[' , frame */
    CG_ADDRESS, /* of the variable `text` of the frame */
    CG_LIST,
    CG_RECORD, /* a struct: list and names */
    CG_A_TYPE, /* type */
    CG_OPAQUE, /* streams, events, properties; text tells which */
};

struct cg_value {
    enum cg_value_kind kind;
    const struct cg_sym *sym;
    struct cg_buffer *buffer;
    struct cg_type type;
    const char *text;
    const struct cg_item *item;
    const struct cg_value *list;
    const char *const *names;
    uint32_t n;
    bool transposed; /* TENSOR: a view whose elements do not lie in its own order */
    const struct cg_tokens *code;
    uint32_t i;
    size_t frame;
};

struct cg_variable {
    const char *name; /* "config.attrs[0].id" */
    struct cg_value value;
    struct cg_type type;
};

enum cg_step_kind { CG_LAUNCH, CG_ZERO, CG_SYMBOL };

struct cg_launch {
    enum cg_step_kind kind;
    const struct cg_item *item;
    const char *name; /* kernel with template arguments; SYMBOL: the variable */
    const struct cg_sym *grid[3], *block[3], *cluster[3], *shared;
    bool cooperative;
    struct cg_value args[CG_MAX_ARGS]; /* ZERO, SYMBOL: args[0] the pointer */
    uint32_t n_args;
    const struct cg_sym *bytes; /* ZERO, SYMBOL: NULL = all */
};

struct cg_decision {
    const struct cg_sym *condition;
    bool value;
};

enum cg_flow { CG_NEXT, CG_BREAK, CG_CONTINUE, CG_RETURN };

struct cg_python;

struct cg_host {
    struct cg_pool *pool;
    const struct rung_task *task;
    const struct cg_tokens *tokens; /* the source */
    const struct cg_macros *macros;
    const struct cg_items *items;
    const struct cg_tokens **bodies; /* of the items' bodies with macros replaced, once asked for */
    const bool *reaches;             /* items: whether a launch can be reached */
    bool in_main;                    /* numbers that are named like dims are dims */

    const struct cg_tokens *code; /* what is walked */
    uint32_t i, end;
    struct cg_variable *vars;
    size_t n_vars, cap_vars, frame;
    struct cg_variable *globals; /* those of the source that were met */
    size_t n_globals, cap_globals;
    int nesting, calls, aliases;
    enum cg_flow flow;
    struct cg_value result;

    struct cg_decision path[CG_MAX_PATH_DECISIONS];
    int n_path, at_path; /* recorded; already met in this walk */

    struct cg_launch *steps;
    uint32_t n_steps;
    struct cg_buffer *buffers; /* in order of their making */
    const struct cg_value *returned;
    uint32_t n_returned;
    const char *problem;      /* the first thing that stops the translation */
    const char *note;         /* "" or sentences */
    bool loose;               /* a snippet: names that nothing declares are the task's */
    struct cg_python *python; /* the module whose forward() is read; NULL: none */
};

/* ---- types.c ---- */

/* Reads a type at i (before end); returns what is behind, or i when there is none. */
uint32_t cg_read_type(struct cg_host *h, const struct cg_tokens *code, uint32_t i, uint32_t end,
                      struct cg_type *type);
/* The type of a parameter. */
struct cg_type cg_param_type(struct cg_host *h, const struct cg_tokens *code,
                             const struct cg_parameter *param);
const char *cg_c_type(uint32_t dtype);
int64_t cg_dtype_bytes(uint32_t dtype);
/* float, half, at::Half, scalar types of torch (kFloat); 0: no such type. */
uint32_t cg_dtype_of_name(const char *name);

/* ---- value.c ---- */

struct cg_value cg_unknown(struct cg_host *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct cg_value cg_number(const struct cg_sym *sym);
struct cg_value cg_int(struct cg_host *h, int64_t value);
struct cg_value cg_opaque(const char *what);
struct cg_value cg_pointer(struct cg_host *h, struct cg_buffer *buffer, struct cg_type type);
struct cg_value cg_dim3(struct cg_host *h, const struct cg_value *parts, uint32_t n);
struct cg_buffer *cg_new_buffer(struct cg_host *h, const char *name);
/* What the buffer turned out to be. */
struct cg_buffer *cg_real_buffer(struct cg_buffer *buffer);
/* A tensor of the task as a value. */
struct cg_value cg_task_tensor(struct cg_host *h, uint32_t index);
struct cg_buffer *cg_tensor_buffer(struct cg_host *h, uint32_t index);
/* Elements of a shape. */
const struct cg_sym *cg_product(struct cg_host *h, const struct cg_value *list, uint32_t n);

struct cg_variable *cg_find_variable(struct cg_host *h, const char *name);
/* Declares in the frame, or changes the nearest one of that name. */
void cg_declare(struct cg_host *h, const char *name, struct cg_value value, struct cg_type type);
void cg_assign(struct cg_host *h, const char *name, struct cg_value value);
/* A variable, one of its members, or a constant of the source. */
struct cg_value cg_read_variable(struct cg_host *h, const char *name);
/* ---- class.c ---- */

/* Sets the members of the class that a method belongs to as its constructor does. */
void cg_enter_class(struct cg_host *h, const struct cg_item *method);

/* A constant of the source: its initializer, evaluated outside of all frames. */
bool cg_read_constant(struct cg_host *h, const char *name, struct cg_value *out);

/* ---- record.c ---- */

/* A struct of the source from its members' values, its defaults for those left out. */
bool cg_struct_value(struct cg_host *h, const char *type, const struct cg_value *args, uint32_t n,
                     struct cg_value *out);
/* A variable whose members were assigned one by one. */
bool cg_gather_record(struct cg_host *h, const char *name, struct cg_value *out);
/* Makes a global variable of that name known, with its first value. */
void cg_import_global(struct cg_host *h, const char *name);

/* ---- value.c, again ---- */

/* Makes all that [from, to) assigns unknown; why: what it depends on. */
void cg_forget(struct cg_host *h, uint32_t from, uint32_t to, const char *why);
void cg_problem(struct cg_host *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cg_note(struct cg_host *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Narrows lo..hi of `a` by what one decided condition says of it. */
void cg_narrow(const struct cg_decision *d, const struct cg_sym *a, int64_t *lo, int64_t *hi);
/* Whether the condition holds on this walk. */
bool cg_decide(struct cg_host *h, const struct cg_sym *condition);

/* ---- eval.c ---- */

/* The expression at h->i, without commas. */
struct cg_value cg_eval(struct cg_host *h);
/* [from, to) of the code at hand as one expression; unknown when it is none. */
struct cg_value cg_eval_range(struct cg_host *h, uint32_t from, uint32_t to);
/* The expressions between the brackets at h->i; moves behind. */
const struct cg_value *cg_eval_list(struct cg_host *h, uint32_t *n);
struct cg_value cg_binary(struct cg_host *h, const struct cg_token *op, struct cg_value a,
                          struct cg_value b);
struct cg_value cg_cast(struct cg_host *h, struct cg_type type, struct cg_value v);
/* c ? a : b as min(a, b) or max(a, b); NULL when it is neither. */
const struct cg_sym *cg_min_max(struct cg_host *h, const struct cg_sym *c, const struct cg_sym *a,
                                const struct cg_sym *b);
/* The value as a number whose dims are constants, as templates need it. */
bool cg_fixed(const struct cg_value *v, int64_t *out);

/* ---- call.c ---- */

struct cg_value cg_call(struct cg_host *h, struct cg_value callee, const struct cg_value *args,
                        uint32_t n);
struct cg_value cg_call_item(struct cg_host *h, const struct cg_item *item, const char *templates,
                             const struct cg_value *args, uint32_t n);
/* "<256, float>" as values: numbers, types, or unknown with the text as it stands. */
uint32_t cg_template_values(struct cg_host *h, const char *text, struct cg_value *values,
                            uint32_t max);
/*
 * All template arguments of a call: those given, those that the arguments tell, the defaults.
 * values has CG_MAX_ARGS; returns how many were found from the first on.
 */
uint32_t cg_template_args(struct cg_host *h, const struct cg_item *item, const char *templates,
                          const struct cg_value *args, uint32_t n, struct cg_value *values);
struct cg_value cg_call_lambda(struct cg_host *h, struct cg_value lambda,
                               const struct cg_value *args, uint32_t n);

/* ---- cuda.c, torch.c: false when there is no such function ---- */

bool cg_call_cuda(struct cg_host *h, const char *name, const struct cg_value *args, uint32_t n,
                  struct cg_value *out);
bool cg_call_torch(struct cg_host *h, const char *name, const struct cg_value *args, uint32_t n,
                   struct cg_value *out);
bool cg_call_method(struct cg_host *h, struct cg_value self, const char *name,
                    const struct cg_value *args, uint32_t n, struct cg_value *out);
struct cg_value cg_member(struct cg_host *h, struct cg_value self, const char *name);

/* ---- launch.c ---- */

struct cg_launch_spec {
    struct cg_value kernel, grid, block, shared, cluster;
    bool cooperative;
};

void cg_add_launch(struct cg_host *h, const struct cg_launch_spec *spec,
                   const struct cg_value *args, uint32_t n);
void cg_add_zero(struct cg_host *h, struct cg_value pointer, const struct cg_sym *bytes);
void cg_add_symbol(struct cg_host *h, const char *name, struct cg_value pointer,
                   const struct cg_sym *bytes);

/* ---- walk.c ---- */

/* Statements from h->i to `end`. */
void cg_walk(struct cg_host *h, uint32_t end);
/* Drops steps from `from` on that only repeat those before, as warm-ups and timing do. */
void cg_drop_repeats(struct cg_host *h, uint32_t from);
/* Whether [from, to) can launch, copy or allocate. */
bool cg_has_effect(struct cg_host *h, uint32_t from, uint32_t to);

/* ---- python.c ---- */

/* self.weight, self.linear.weight, self.eps as the task or the module's __init__ says. */
struct cg_value cg_python_attribute(struct cg_host *h, const char *path);

/* ---- bind.c ---- */

/* A parameter that wants a value of the task. */
struct cg_slot {
    const char *name;
    struct cg_type type;
    bool written;          /* the kernel writes to it; false: not known to */
    struct cg_value value; /* out; CG_NOTHING: none found */
};

/* By name first, then by role and order. */
void cg_bind(struct cg_host *h, struct cg_slot *slots, uint32_t n);
/* The tensor, dim or parameter that a name stands for, or CG_NOTHING. */
struct cg_value cg_bind_name(struct cg_host *h, const char *name);
int cg_bind_tensor(struct cg_host *h, const char *name);
/* The same for names that are alike but for case and decoration. */
struct cg_value cg_bind_plain(struct cg_host *h, const char *name);
/* A dim's or a parameter's symbol; an expression of the task's file. */
const struct cg_sym *cg_dim(struct cg_host *h, uint32_t index);
const struct cg_sym *cg_task_expr(struct cg_host *h, const char *text);

#endif
