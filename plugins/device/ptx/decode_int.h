/*
 * decode_int.h - what the decoder's files share.
 *
 * While decoding, ptx_insn.r[] holds virtual register numbers and ptx_insn.target label numbers;
 * layout.c and slots.c turn them into instruction indices and frame offsets.
 */
#ifndef PTX_DECODE_INT_H
#define PTX_DECODE_INT_H

#include "decode.h"

#define PTX_MAX_CODE (2u << 20)
#define PTX_MAX_INLINE_DEPTH 16u
#define PTX_NO_VREG UINT32_MAX

struct ptx_vreg {
    uint8_t width;    /* ptx_width */
    uint8_t is_fixed; /* filled beforehand: constants, parameters, special registers */
    uint16_t reserved;
    uint32_t fill;   /* is_fixed: index in fills */
    uint32_t offset; /* in the frame, from slots.c */
};

/* A piece of a call's parameter memory: kept in a register of its own. */
struct ptx_piece {
    struct ptx_piece *next;
    uint64_t offset;
    uint32_t bytes, vreg;
};

struct ptx_block_param {
    struct ptx_piece *pieces;
};

/* One function body while it is decoded: the entry, or a call that is expanded in place. */
struct ptx_instance {
    const struct ptx_func *func;
    struct ptx_instance *caller;
    uint32_t *regs;       /* [n_regs] vreg or PTX_NO_VREG */
    uint32_t *heads;      /* labels by name, for ptx_find_label */
    uint32_t first_label; /* of the function's labels */
    uint32_t end_label;
    uint32_t carry; /* vreg of the carry flag, or PTX_NO_VREG */
    uint32_t depth;
    uint64_t local_base;
    struct ptx_block_param **params; /* [n_params] */
};

struct ptx_decoder {
    struct ptx_arena *out; /* for the program */
    struct ptx_arena scratch;
    const struct ptx_optable *table;
    const struct ptx_text *text;
    struct ptx_instance *in; /* current */
    const struct ptx_stmt *stmt;
    struct ptx_insn *code;
    uint32_t n_code, cap_code;
    struct ptx_vreg *vregs;
    uint32_t n_vregs, cap_vregs;
    struct ptx_fill *fills;
    uint32_t n_fills, cap_fills;
    uint32_t *fill_slots; /* hash of fills: vreg + 1 */
    uint32_t n_fill_slots;
    uint32_t n_hash;
    uint32_t *labels; /* instruction index by label */
    uint32_t n_labels, cap_labels;
    uint32_t n_hints;
    uint32_t shared_unit; /* bytes of the smallest access that may be to shared memory; 0 none */
    uint32_t weighted;    /* the statement's instruction has been counted */
    uint64_t local_bytes;
    uint64_t static_shared, dynamic_offset;
    struct ptx_problem *problem;
};

/* The mnemonic of the current statement, cut at its dots. */
struct ptx_words {
    const char *text;
    uint32_t len;
    uint32_t n;
    struct {
        const char *ptr;
        uint32_t len;
    } word[16];
};

/* ---- decode.c, decode_operand.c ---------------------------------------------------------------
 */

/* Records why the entry is unsupported, naming the current instruction; returns -1. */
int ptx_unsupported(struct ptx_decoder *d, const char *why);
int ptx_no_memory(struct ptx_decoder *d);

/* New register; PTX_NO_VREG when memory is out. */
uint32_t ptx_new_vreg(struct ptx_decoder *d, uint32_t width);

/* Register with a constant, a parameter's bytes or a special register in it. */
uint32_t ptx_fill_vreg(struct ptx_decoder *d, const struct ptx_fill *fill);
uint32_t ptx_const_vreg(struct ptx_decoder *d, uint32_t width, uint64_t value);

/*
 * Appends an instruction: defs, then uses, as the operation's table says. NULL when memory or room
 * is out, or a vreg is PTX_NO_VREG. The first of a statement counts as its PTX instruction.
 */
struct ptx_insn *ptx_emit(struct ptx_decoder *d, uint32_t op, const uint32_t *vregs);
/* The same with up to 4 registers given one by one; surplus ones are ignored. */
struct ptx_insn *ptx_emit_n(struct ptx_decoder *d, uint32_t op, uint32_t a, uint32_t b, uint32_t c,
                            uint32_t e);

uint32_t ptx_new_label(struct ptx_decoder *d);
void ptx_place_label(struct ptx_decoder *d, uint32_t label);

/* Register number of a destination or source operand of this tag, or PTX_NO_VREG (unsupported
 * noted). */
uint32_t ptx_def(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t tag);
uint32_t ptx_use(struct ptx_decoder *d, const struct ptx_operand *op, uint32_t tag);

/* Width class of a register operand; PTX_W_NONE when it is none. */
uint32_t ptx_operand_width(const struct ptx_operand *op);

void ptx_split_words(const struct ptx_decoder *d, struct ptx_words *words);
int ptx_word_is(const struct ptx_words *words, uint32_t i, const char *text);
/* Whether any word but the first is this one. */
int ptx_has_word(const struct ptx_words *words, const char *text);
/* Index of the text in a NULL-terminated list, or -1. */
int ptx_word_in(const struct ptx_words *words, uint32_t i, const char *const *list);

/* Decodes the operands of a plain operation. */
int ptx_decode_plain(struct ptx_decoder *d, uint32_t op);

/* Statements of a function body, in the current instance. */
int ptx_decode_body(struct ptx_decoder *d);

/* decode_call.c: a function's body in place: a new instance, its statements, its end label. */
struct ptx_call_site {
    const struct ptx_func *func;
    struct ptx_sym **arguments, **results; /* .param symbols of the caller; NULL for an entry */
};
int ptx_expand(struct ptx_decoder *d, const struct ptx_call_site *site);

/* The parameter memory of a .param symbol that belongs to a call, or NULL for an entry's own. */
struct ptx_block_param *ptx_call_param(struct ptx_decoder *d, const struct ptx_sym *sym);
/* The register that holds these bytes of it; PTX_NO_VREG and unsupported when pieces overlap. */
uint32_t ptx_param_piece(struct ptx_decoder *d, struct ptx_block_param *param, uint64_t offset,
                         uint32_t bytes);

/* Address register and offset of a "[base + n]" operand (decode_mem.c). */
uint32_t ptx_address(struct ptx_decoder *d, const struct ptx_operand *op, int64_t *offset);

/* ---- Families; each returns 0 or -1 ---------------------------------------------------------- */

typedef int (*ptx_family)(struct ptx_decoder *d, const struct ptx_words *words);

int ptx_decode_load(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_store(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_atom(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_cp(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_cvt(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_cvta(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_mov(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_setp(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_set(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_testp(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_isspacep(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_logic(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_carry(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_bits(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_shfl(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_vote(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_match(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_redux(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_active(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_elect(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_bar(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_bra(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_end(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_call(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_mma(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_wmma(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_ldmatrix(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_nothing(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_policy(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_fence(struct ptx_decoder *d, const struct ptx_words *words);
int ptx_decode_mapa(struct ptx_decoder *d, const struct ptx_words *words);

/* ---- layout.c, slots.c ----------------------------------------------------------------------- */

/* Orders blocks, resolves labels; code becomes final but for registers. */
int ptx_layout(struct ptx_decoder *d);

/* Gives registers their places; fills *out. */
int ptx_assign_slots(struct ptx_decoder *d, struct ptx_program *out);

#endif
