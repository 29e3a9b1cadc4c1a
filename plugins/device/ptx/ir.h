/*
 * ir.h - the flat program that warps run: one fixed-size record an instruction, operands as byte
 * offsets into a warp's frame.
 *
 * A frame is one block of memory a warp: predicates as 32-bit lane masks, then registers of 128
 * bytes (32 lanes of 32 bits; 8- and 16-bit registers too, upper bits unspecified) or 256 bytes (32
 * lanes of 64 bits). Immediates and special registers have slots of their own, filled beforehand,
 * so that every operand is read in the same way.
 */
#ifndef PTX_IR_H
#define PTX_IR_H

#include "arena.h"

#define PTX_LANES 32
#define PTX_MAX_OPERANDS 6

/*
 * A shared address: the offset, and from this bit on 1 + the rank of the block of the cluster whose
 * memory it is; 0: the block's own.
 */
#define PTX_RANK_SHIFT 24

/* Type tags of the operation tables: how a lane of a slot is read and written. */
enum ptx_tag {
    PTX_TAG_none = 0,
    PTX_TAG_u8,
    PTX_TAG_s8,
    PTX_TAG_u16,
    PTX_TAG_s16,
    PTX_TAG_u32,
    PTX_TAG_s32,
    PTX_TAG_f32,
    PTX_TAG_fz,
    PTX_TAG_fs,
    PTX_TAG_fzs, /* f32; flushing subnormals; saturating to [0,1]; both */
    PTX_TAG_h,
    PTX_TAG_hz,
    PTX_TAG_bf, /* f16 and bf16, seen as f32 */
    PTX_TAG_u64,
    PTX_TAG_s64,
    PTX_TAG_f64,
    PTX_TAG_p, /* predicate */
    PTX_TAG_x, /* tensor fragment: 8 registers of 32 bits side by side */
};

/* Width classes of slots. */
enum ptx_width { PTX_W_NONE = 0, PTX_W32, PTX_W64, PTX_WP, PTX_WX, PTX_N_WIDTHS };

uint32_t ptx_tag_width(uint32_t tag);

enum ptx_op {
#define LANE1(name, d, a, expr, text) PTX_OP_##name,
#define LANE2(name, d, a, b, expr, text) PTX_OP_##name,
#define LANE3(name, d, a, b, c, expr, text) PTX_OP_##name,
#define SETP(name, a, b, expr) PTX_OP_##name,
#define OTHER(name, class, defs, uses) PTX_OP_##name,
#include "ops.def"
    PTX_N_OPS
};

/* What an instruction counts as, for rung_counters. */
enum ptx_class {
    PTX_C_NONE = 0,
    PTX_C_INT,
    PTX_C_FP32,
    PTX_C_FP64,
    PTX_C_SPECIAL,
    PTX_C_TENSOR,
    PTX_C_BRANCH,
    PTX_C_BARRIER,
    PTX_C_LOAD,
    PTX_C_STORE,
    PTX_C_ATOMIC,
    PTX_C_FMA32,
};

struct ptx_tags {
    uint8_t n;
    uint8_t tag[PTX_MAX_OPERANDS];
};

struct ptx_opinfo {
    const char *name;
    const char
        *text; /* mnemonics that decode to it directly, separated by '|'; NULL: by decode's code */
    uint32_t class; /* ptx_class */
    uint32_t reserved;
    struct ptx_tags defs, uses; /* operands in this order */
};

extern const struct ptx_opinfo ptx_ops[PTX_N_OPS];

/* ptx_class of an operation, special functions and fused multiply-add told apart. */
uint32_t ptx_op_class(uint32_t op);

enum ptx_insn_flag {
    PTX_F_WEIGHT = 1u << 0,  /* counts as a PTX instruction; synthetic ones don't */
    PTX_F_NEGATED = 1u << 1, /* branch when the predicate is false */
    PTX_F_BACK = 1u << 2,    /* the target is not behind this instruction */
    PTX_F_ALIGNED = 1u << 3, /* bar.sync: the whole warp at once */
    PTX_F_STRONG = 1u << 4,  /* volatile, relaxed, acquire, release: no race by itself */
    PTX_F_ORDERS = 1u << 5,  /* acquire, release: orders other accesses too */
};

struct ptx_insn {
    uint16_t op;   /* ptx_op */
    uint8_t flags; /* ptx_insn_flag */
    uint8_t sub;   /* meaning by op: element size, atomic operation, shuffle mode, rounding */
    uint32_t line; /* source line, 0 not known */
    uint32_t r[PTX_MAX_OPERANDS]; /* byte offsets in the frame: results, then sources */
    int64_t imm;                  /* address offset, look-up table, ... */
    uint32_t target;              /* branches: index of an instruction */
    uint32_t count; /* PTX instructions from the block's start to this one, inclusive */
    uint32_t hint;  /* global accesses: which entry of the worker's segment cache */
    uint32_t space; /* ptx_space of a memory access */
    int32_t second; /* cp.async: offset of the shared address; tensor operations: struct ptx_tile */
    uint32_t ptx_line;
};

/* What fills a slot before a warp runs. */
enum ptx_fill_kind {
    PTX_FILL_CONST = 1, /* the same value in every lane */
    PTX_FILL_PARAM,     /* bytes of the parameter block */
    PTX_FILL_SPECIAL,   /* a special register of the launch or warp */
    PTX_FILL_BLOCK,     /* a special register of the block */
    PTX_FILL_ZERO,      /* a register that may be read before it is written: zero at each block */
};

enum ptx_special {
    PTX_SR_TID_X = 1,
    PTX_SR_TID_Y,
    PTX_SR_TID_Z,
    PTX_SR_NTID_X,
    PTX_SR_NTID_Y,
    PTX_SR_NTID_Z,
    PTX_SR_CTAID_X,
    PTX_SR_CTAID_Y,
    PTX_SR_CTAID_Z,
    PTX_SR_NCTAID_X,
    PTX_SR_NCTAID_Y,
    PTX_SR_NCTAID_Z,
    PTX_SR_LANEID,
    PTX_SR_WARPID,
    PTX_SR_NWARPID,
    PTX_SR_SMID,
    PTX_SR_NSMID,
    PTX_SR_GRIDID,
    PTX_SR_MASK_EQ,
    PTX_SR_MASK_LE,
    PTX_SR_MASK_LT,
    PTX_SR_MASK_GE,
    PTX_SR_MASK_GT,
    PTX_SR_DYNAMIC_SHARED,
    PTX_SR_TOTAL_SHARED,
    PTX_SR_ENVREG1, /* high half of the grid's workspace */
    PTX_SR_ENVREG2, /* low half */
    PTX_SR_CLUSTERID_X,
    PTX_SR_CLUSTERID_Y,
    PTX_SR_CLUSTERID_Z,
    PTX_SR_NCLUSTERID_X,
    PTX_SR_NCLUSTERID_Y,
    PTX_SR_NCLUSTERID_Z,
    PTX_SR_CLUSTER_CTAID_X,
    PTX_SR_CLUSTER_CTAID_Y,
    PTX_SR_CLUSTER_CTAID_Z,
    PTX_SR_CLUSTER_NCTAID_X,
    PTX_SR_CLUSTER_NCTAID_Y,
    PTX_SR_CLUSTER_NCTAID_Z,
    PTX_SR_CLUSTER_CTARANK,
    PTX_SR_CLUSTER_NCTARANK,
    PTX_SR_CLOCK,
    PTX_SR_CLOCK64,
    PTX_SR_CLOCK_HI,
    PTX_SR_TIMER,
    PTX_SR_TIMER_LO, /* read at run time */
};

struct ptx_fill {
    uint32_t kind;      /* ptx_fill_kind */
    uint32_t width;     /* ptx_width */
    uint32_t offset;    /* in the frame */
    uint32_t special;   /* ptx_special */
    uint64_t value;     /* CONST: bits; PARAM: byte offset */
    uint32_t bytes;     /* PARAM: 1, 2, 4 or 8 */
    uint32_t is_signed; /* PARAM */
};

/* A kernel ready to run. Immutable; shared by workers. */
struct ptx_program {
    struct ptx_insn *code;
    uint32_t n_code;
    uint32_t n_hints;
    struct ptx_fill *fills;
    uint32_t n_fills;
    uint32_t frame_bytes;
    uint64_t static_shared;  /* bytes */
    uint64_t dynamic_offset; /* where the launch's dynamic part starts; at least static_shared */
    uint64_t local_bytes;    /* a thread */
    uint32_t param_bytes;
    uint32_t max_threads; /* .maxntid; 0 none */
    uint32_t shared_unit; /* bytes of the smallest shared access: 1, 2 or 4 */
    uint32_t cluster[3];  /* .reqnctapercluster; zeros: none */
};

#endif
