/*
 * optable.c - the hash from mnemonics to operations, built from the table in ops.c.
 */
#include "decode.h"

#include <string.h>

static int add(struct ptx_optable *t, const char *text, uint32_t n, uint32_t op)
{
    uint32_t name = ptx_name_of(&t->names, text, n);

    if (name == UINT32_MAX || name >= t->cap)
        return -1;
    t->ops[name] = (uint16_t)op;
    return 0;
}

/* "add.u32|add.s32" and the operation's own name, which decoders compose ("set_lt_u32"). */
static int add_op(struct ptx_optable *t, uint32_t op)
{
    const char *text = ptx_ops[op].text;

    if (add(t, ptx_ops[op].name, (uint32_t)strlen(ptx_ops[op].name), op))
        return -1;
    while (text && *text) {
        uint32_t n = (uint32_t)strcspn(text, "|");

        if (add(t, text, n, op))
            return -1;
        text += n + (text[n] == '|');
    }
    return 0;
}

int ptx_optable_init(struct ptx_optable *t)
{
    memset(t, 0, sizeof *t);
    t->names.arena = &t->arena;
    t->cap = PTX_N_OPS * 16;
    t->ops = ptx_arena_array(&t->arena, t->cap, sizeof *t->ops);
    if (!t->ops)
        return -1;
    for (uint32_t op = 0; op < PTX_N_OPS; op++)
        if (add_op(t, op))
            return -1;
    return 0;
}

void ptx_optable_end(struct ptx_optable *t)
{
    ptx_arena_free(&t->arena);
}

uint32_t ptx_optable_find(const struct ptx_optable *t, const char *text, uint32_t n)
{
    uint32_t name = ptx_name_find(&t->names, text, n);

    return name == UINT32_MAX ? PTX_N_OPS : t->ops[name];
}
