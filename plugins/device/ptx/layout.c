/*
 * layout.c - the order of basic blocks. Splits of a warp reconverge because the earliest split runs
 * first, so every join must stand behind all that leads to it and loops must be in one piece. That
 * is a weak topological order (Bourdoncle, "Efficient chaotic iteration strategies with widenings",
 * 1993): strongly connected parts in topological order, each its header first, then recursively.
 */
#include "decode_int.h"

#include <string.h>

#define MAX_NESTING 48u
#define NO_BLOCK UINT32_MAX

struct block {
    uint32_t start, end;  /* instructions, end exclusive */
    uint32_t taken, fall; /* successors or NO_BLOCK */
    uint32_t part;        /* which subgraph is being ordered */
    uint32_t index, low;  /* Tarjan */
    uint32_t on_stack;
    uint32_t place; /* position in the order; NO_BLOCK unreachable */
};

struct layout {
    struct ptx_decoder *d;
    struct block *blocks;
    uint32_t n;
    uint32_t *order, n_order;
    uint32_t n_parts, counter;
    uint32_t *stack, n_stack; /* Tarjan's */
    struct frame {
        uint32_t block, edge;
    } * frames;
};

/* ---- Blocks ---------------------------------------------------------------------------------- */

static int ends_block(uint32_t op)
{
    return op == PTX_OP_bra || op == PTX_OP_bra_if || op == PTX_OP_exit || op == PTX_OP_fell_off ||
           op == PTX_OP_trap;
}

static int is_branch(uint32_t op)
{
    return op == PTX_OP_bra || op == PTX_OP_bra_if;
}

/* Marks first instructions of blocks; returns how many, or 0 (unsupported or no memory). */
static uint32_t mark_leaders(struct ptx_decoder *d, uint8_t *leads)
{
    uint32_t n = 0;

    leads[0] = 1;
    for (uint32_t i = 0; i < d->n_code; i++) {
        const struct ptx_insn *in = &d->code[i];

        if (ends_block(in->op) && i + 1 < d->n_code)
            leads[i + 1] = 1;
        if (!is_branch(in->op))
            continue;
        if (in->target >= d->n_labels || d->labels[in->target] >= d->n_code) {
            ptx_unsupported(d, "goes to a label that does not exist");
            return 0;
        }
        leads[d->labels[in->target]] = 1;
    }
    for (uint32_t i = 0; i < d->n_code; i++)
        n += leads[i];
    return n;
}

static int make_blocks(struct layout *l)
{
    struct ptx_decoder *d = l->d;
    uint8_t *leads = ptx_arena_alloc(&d->scratch, d->n_code);
    uint32_t *block_of = ptx_arena_array(&d->scratch, d->n_code, sizeof *block_of);
    uint32_t b = NO_BLOCK;

    if (!leads || !block_of)
        return ptx_no_memory(d);
    l->n = mark_leaders(d, leads);
    l->blocks = l->n ? ptx_arena_array(&d->scratch, l->n, sizeof *l->blocks) : NULL;
    if (!l->blocks)
        return ptx_no_memory(d);
    for (uint32_t i = 0; i < d->n_code; i++) {
        if (leads[i])
            l->blocks[++b] =
                (struct block){.start = i, .taken = NO_BLOCK, .fall = NO_BLOCK, .place = NO_BLOCK};
        block_of[i] = b;
        l->blocks[b].end = i + 1;
    }
    for (b = 0; b < l->n; b++) {
        const struct ptx_insn *last = &d->code[l->blocks[b].end - 1];

        if (is_branch(last->op))
            l->blocks[b].taken = block_of[d->labels[last->target]];
        if ((last->op == PTX_OP_bra_if || !ends_block(last->op)) && b + 1 < l->n)
            l->blocks[b].fall = b + 1;
    }
    return 0;
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* Successor by edge number: the branch's target first, so that the block behind comes out next to
 * this one. */
static uint32_t successor(const struct layout *l, uint32_t b, uint32_t edge)
{
    return edge == 0 ? l->blocks[b].taken : l->blocks[b].fall;
}

static void visit(struct layout *l, uint32_t b)
{
    struct block *k = &l->blocks[b];

    k->index = k->low = ++l->counter;
    k->on_stack = 1;
    l->stack[l->n_stack++] = b;
}

/*
 * Strongly connected components of the blocks of `part` that are reachable from root, in reverse
 * topological order, appended to list; ends[] gets the end of each in list.
 */
static void components(struct layout *l, uint32_t root, uint32_t part, uint32_t *list,
                       uint32_t *n_list, uint32_t *ends, uint32_t *n_ends)
{
    uint32_t depth = 1;

    visit(l, root);
    l->frames[0] = (struct frame){root, 0};
    while (depth) {
        struct frame *f = &l->frames[depth - 1];
        struct block *k = &l->blocks[f->block];

        if (f->edge < 2) {
            uint32_t s = successor(l, f->block, f->edge++);

            if (s == NO_BLOCK || l->blocks[s].part != part)
                continue;
            if (!l->blocks[s].index) {
                visit(l, s);
                l->frames[depth++] = (struct frame){s, 0};
            } else if (l->blocks[s].on_stack && l->blocks[s].index < k->low) {
                k->low = l->blocks[s].index;
            }
            continue;
        }
        if (k->low == k->index) {
            uint32_t top;

            do {
                top = l->stack[--l->n_stack];
                l->blocks[top].on_stack = 0;
                list[(*n_list)++] = top;
            } while (top != f->block);
            ends[(*n_ends)++] = *n_list;
        }
        depth--;
        if (depth && k->low < l->blocks[l->frames[depth - 1].block].low)
            l->blocks[l->frames[depth - 1].block].low = k->low;
    }
}

static void put(struct layout *l, uint32_t b)
{
    l->blocks[b].place = l->n_order;
    l->order[l->n_order++] = b;
}

static int order_part(struct layout *l, const uint32_t *roots, uint32_t n_roots, uint32_t n,
                      uint32_t depth);

/* One component of more than one block: its header, which the search entered first, then the rest.
 */
static int order_loop(struct layout *l, uint32_t *nodes, uint32_t n, uint32_t depth)
{
    uint32_t header = nodes[n - 1], part = ++l->n_parts;
    uint32_t *roots;

    put(l, header);
    if (depth >= MAX_NESTING) {
        for (uint32_t i = n - 1; i-- > 0;)
            put(l, nodes[i]);
        return 0;
    }
    roots = ptx_arena_array(&l->d->scratch, (size_t)n + 1, sizeof *roots);
    if (!roots)
        return ptx_no_memory(l->d);
    for (uint32_t i = 0; i + 1 < n; i++) {
        l->blocks[nodes[i]].part = part;
        l->blocks[nodes[i]].index = 0;
        roots[i] = nodes[i];
    }
    l->blocks[header].part = 0;
    uint32_t n_roots = n - 1;
    for (uint32_t edge = 0; edge < 2; edge++) {
        uint32_t s = successor(l, header, edge);

        if (s != NO_BLOCK && l->blocks[s].part == part)
            roots[n_roots++] = s;
    }
    return order_part(l, roots, n_roots, n - 1, depth + 1);
}

/* Orders n blocks of one part, searched from the last root backwards: earlier roots are only for
 * what is left. */
static int order_part(struct layout *l, const uint32_t *roots, uint32_t n_roots, uint32_t n,
                      uint32_t depth)
{
    uint32_t *list = ptx_arena_array(&l->d->scratch, n, sizeof *list);
    uint32_t *ends = ptx_arena_array(&l->d->scratch, n, sizeof *ends);
    uint32_t n_list = 0, n_ends = 0, part = l->blocks[roots[n_roots - 1]].part;

    if (!list || !ends)
        return ptx_no_memory(l->d);
    for (uint32_t i = n_roots > 2 ? n_roots - 2 : 0; i < n_roots; i++)
        if (!l->blocks[roots[i]].index)
            components(l, roots[i], part, list, &n_list, ends, &n_ends);
    for (uint32_t i = 0; i < n_roots; i++)
        if (!l->blocks[roots[i]].index)
            components(l, roots[i], part, list, &n_list, ends, &n_ends);
    while (n_ends) {
        uint32_t start = --n_ends ? ends[n_ends - 1] : 0, size = ends[n_ends] - start;

        if (size == 1)
            put(l, list[start]);
        else if (order_loop(l, list + start, size, depth))
            return -1;
    }
    return 0;
}

/* ---- New code -------------------------------------------------------------------------------- */

/* Ends a block whose successor does not stand behind it. */
static void end_block(struct layout *l, struct ptx_insn *out, uint32_t *n, const struct block *b,
                      uint32_t next)
{
    struct ptx_insn *last = &out[*n - 1];

    if (last->op == PTX_OP_bra_if && b->taken == next && b->fall != next && b->fall != NO_BLOCK) {
        last->flags ^= PTX_F_NEGATED;
        last->target = b->fall;
        return;
    }
    if (is_branch(last->op))
        last->target = b->taken;
    if (b->fall != NO_BLOCK && b->fall != next) {
        struct ptx_insn jump = {
            .op = PTX_OP_bra, .target = b->fall, .line = last->line, .ptx_line = last->ptx_line};

        out[(*n)++] = jump;
    }
    (void)l;
}

static int emit_order(struct layout *l)
{
    struct ptx_decoder *d = l->d;
    struct ptx_insn *out = ptx_arena_array(d->out, (size_t)d->n_code + l->n, sizeof *out);
    uint32_t *start = ptx_arena_array(&d->scratch, l->n, sizeof *start);
    uint32_t n = 0, count = 0;

    if (!out || !start)
        return ptx_no_memory(d);
    for (uint32_t k = 0; k < l->n_order; k++) {
        const struct block *b = &l->blocks[l->order[k]];
        uint32_t next = k + 1 < l->n_order ? l->order[k + 1] : NO_BLOCK;

        start[l->order[k]] = n;
        memcpy(out + n, d->code + b->start, (b->end - b->start) * sizeof *out);
        n += b->end - b->start;
        end_block(l, out, &n, b, next);
    }
    for (uint32_t i = 0; i < n; i++) {
        count += (out[i].flags & PTX_F_WEIGHT) != 0;
        out[i].count = count;
        if (!is_branch(out[i].op))
            continue;
        out[i].target = start[out[i].target];
        if (out[i].target <= i)
            out[i].flags |= PTX_F_BACK;
    }
    d->code = out;
    d->n_code = n;
    return 0;
}

int ptx_layout(struct ptx_decoder *d)
{
    struct layout l = {.d = d};
    const uint32_t root = 0;

    if (make_blocks(&l))
        return -1;
    l.order = ptx_arena_array(&d->scratch, l.n, sizeof *l.order);
    l.stack = ptx_arena_array(&d->scratch, l.n, sizeof *l.stack);
    l.frames = ptx_arena_array(&d->scratch, (size_t)l.n + 1, sizeof *l.frames);
    if (!l.order || !l.stack || !l.frames)
        return ptx_no_memory(d);
    for (uint32_t b = 0; b < l.n; b++)
        l.blocks[b].part = 1;
    l.n_parts = 1;
    return order_part(&l, &root, 1, l.n, 0) || emit_order(&l) ? -1 : 0;
}
