/*
 * decode.h - from a parsed entry to a program. Unknown mnemonics make the entry unsupported, which
 * is data: the module's other entries stay usable.
 */
#ifndef PTX_DECODE_H
#define PTX_DECODE_H

#include "ir.h"
#include "parse.h"

/* Mnemonics and operation names to enum ptx_op; made once an instance, then only read. */
struct ptx_optable {
    struct ptx_arena arena;
    struct ptx_names names; /* the keys */
    uint16_t *ops;          /* by name number */
    uint32_t cap;
    uint32_t reserved;
};

/* Returns 0, or -1 when memory is out. */
int ptx_optable_init(struct ptx_optable *table);
void ptx_optable_end(struct ptx_optable *table);

/* The operation that this text of n characters names, or PTX_N_OPS. */
uint32_t ptx_optable_find(const struct ptx_optable *table, const char *text, uint32_t n);

struct ptx_problem {
    uint32_t line; /* source line; 0 not known */
    uint32_t ptx_line;
    char message[300]; /* "instruction 'x.y.z' ..." ; empty: none */
};

/*
 * Decodes one entry. The program's memory comes from `arena` and lives as long. Returns 0, or -1
 * with *problem filled.
 */
int ptx_decode(struct ptx_arena *arena, const struct ptx_optable *table,
               const struct ptx_text *text, const struct ptx_func *entry, struct ptx_program *out,
               struct ptx_problem *problem);

#endif
