/*
 * parse.h - PTX text as a tree: module variables and functions, each function a list of statements
 * whose operands are bound to symbols. No instruction is understood here: see decode.h.
 * Everything lives in the module's arena; a parsed module is never changed again but for the
 * addresses of its variables.
 */
#ifndef PTX_PARSE_H
#define PTX_PARSE_H

#include "lex.h"

enum ptx_type {
    PTX_NONE = 0,
    PTX_B8,
    PTX_B16,
    PTX_B32,
    PTX_B64,
    PTX_B128,
    PTX_U8,
    PTX_U16,
    PTX_U32,
    PTX_U64,
    PTX_S8,
    PTX_S16,
    PTX_S32,
    PTX_S64,
    PTX_F16,
    PTX_F16X2,
    PTX_BF16,
    PTX_BF16X2,
    PTX_F32,
    PTX_F64,
    PTX_PRED,
};

/* Type of a word such as ".f32" or "f32" of n characters; PTX_NONE when it is none. */
uint32_t ptx_type_of(const char *word, uint32_t n);

/* Width in bytes; 0 for PTX_NONE, 1 for PTX_PRED. */
uint32_t ptx_type_bytes(uint32_t type);

int ptx_type_is_float(uint32_t type);
int ptx_type_is_signed(uint32_t type);

enum ptx_space {
    PTX_GENERIC = 0,
    PTX_GLOBAL,
    PTX_SHARED,
    PTX_LOCAL,
    PTX_CONST,
    PTX_PARAM,
};

enum ptx_sym_kind { PTX_SYM_REG = 1, PTX_SYM_RANGE, PTX_SYM_PARAM, PTX_SYM_VAR, PTX_SYM_FUNC };

struct ptx_func;

/* A pointer to another variable inside an initialiser. */
struct ptx_fixup {
    struct ptx_fixup *next;
    struct ptx_sym *target;
    uint64_t at; /* byte in the initialiser; 8 bytes wide */
    int64_t add;
};

struct ptx_sym {
    uint32_t kind;  /* ptx_sym_kind */
    uint32_t type;  /* ptx_type of a register or of one element */
    uint32_t space; /* ptx_space of a variable */
    uint32_t align; /* bytes */
    uint64_t size;  /* bytes of a variable or parameter */
    uint64_t
        offset; /* PARAM of an entry: in the parameter block; SHARED and LOCAL: in their memory */
    uint32_t index; /* REG, PARAM: number in its function */
    uint32_t range; /* RANGE: how many registers */
    uint32_t name;
    uint32_t is_extern;                  /* extern .shared: the launch's dynamic memory */
    uint32_t is_formal;                  /* PARAM: of the function, not of a call */
    uint32_t depth;                      /* of the scope that declared it */
    struct ptx_sym *shadowed, *in_scope; /* for the parser */
    struct ptx_sym *next;                /* list of the module's or the function's variables */
    struct ptx_func *func;               /* FUNC */
    uint8_t *init;                       /* GLOBAL, CONST: size bytes, or NULL for zeros */
    struct ptx_fixup *fixups;
    uint64_t address; /* GLOBAL, CONST: given by the module at load */
};

enum ptx_operand_kind {
    PTX_O_SYM = 1, /* sym + imm */
    PTX_O_NAME,    /* a word that is bound to nothing: special register, label, function */
    PTX_O_INT,
    PTX_O_F32,
    PTX_O_F64,
    PTX_O_ADDRESS, /* [base + imm]; base in sym, or none */
    PTX_O_LIST,    /* {a, b} or (a, b) */
    PTX_O_PAIR,    /* a|b */
    PTX_O_SINK,    /* _ */
};

struct ptx_operand {
    uint32_t kind;
    uint32_t negated; /* !p */
    uint32_t name;    /* NAME and SYM */
    uint32_t n;       /* LIST, PAIR */
    struct ptx_sym *sym;
    struct ptx_operand *items;
    uint64_t imm; /* INT, F32 and F64 bits; offset of SYM and ADDRESS */
};

enum ptx_stmt_kind {
    PTX_S_INSN = 1,
    PTX_S_LABEL,
    PTX_S_BAD /* an instruction whose operands can't be read */
};

struct ptx_stmt {
    uint32_t kind;
    uint32_t name;  /* mnemonic or label */
    uint32_t scope; /* number of the scope in its function */
    uint32_t line;  /* source line; 0 not known */
    uint32_t ptx_line;
    uint32_t n_ops;
    uint32_t guard_negated;
    uint32_t label; /* LABEL: number in the function */
    struct ptx_sym *guard;
    struct ptx_operand *ops;
};

struct ptx_label {
    uint32_t name, scope;
    uint32_t next_same; /* 1 + index of an earlier label of that name; 0 none */
    uint32_t reserved;
};

struct ptx_func {
    struct ptx_func *next;
    uint32_t name;
    uint32_t is_entry, has_body;
    uint32_t n_regs, n_params; /* numbers given out */
    uint32_t n_formals, n_returns;
    uint32_t max_threads; /* .maxntid, .reqntid; 0 none */
    uint32_t cluster[3];  /* .reqnctapercluster; zeros: none */
    uint32_t n_stmts, cap_stmts;
    uint32_t n_labels, cap_labels;
    uint32_t n_scopes, cap_scopes;
    struct ptx_sym **formals, **returns;
    struct ptx_stmt *stmts;
    struct ptx_label *labels;
    uint32_t *scope_parent; /* [n_scopes]; scope 0 is the body */
    struct ptx_sym *vars;   /* shared and local variables of the body */
    uint64_t param_bytes;   /* entry: size of the parameter block */
    uint64_t local_bytes;   /* a thread */
};

struct ptx_text {
    struct ptx_arena arena;
    struct ptx_names names;
    struct ptx_func *funcs;
    struct ptx_sym *vars;  /* module scope */
    uint32_t problem_line; /* in the PTX text */
    uint32_t reserved;
    char problem[256]; /* empty when the text was read */
};

/*
 * Reads n bytes of PTX (hostile; copied). Returns 0, or -1 with out->problem filled; out must be
 * given to ptx_text_free in both cases.
 */
int ptx_parse(struct ptx_text *out, const char *text, size_t n);

void ptx_text_free(struct ptx_text *text);

/* The label number that `name` means at `scope`, innermost first; UINT32_MAX when there is none. */
uint32_t ptx_find_label(const struct ptx_func *func, const uint32_t *heads, uint32_t name,
                        uint32_t scope);

#endif
