/*
 * exec_tensor.c - tensor-core operations of one instruction-set level. Fragment layouts of mma.sync
 * and ldmatrix are those of the PTX ISA ("Matrix fragments for mma.m16n8k..."). The layouts of wmma
 * are not specified; here they are those of mma, two n8 halves side by side, and copies where the
 * instruction has more registers. Sums are made in f64 and rounded once: no less exact than
 * hardware.
 */
#include "exec_memory.h"

typedef uint32_t fragment[8][PTX_LANES];

static const struct ptx_insn *whole_warp(struct ptx_warp *w, const struct ptx_insn *in)
{
    if (w->mask == PTX_ALL)
        return in;
    if (w->live != PTX_ALL)
        return ptx_fault(w, in, (uint32_t)__builtin_ctz(w->mask), "sync.inactive_lane", 0,
                         "a tensor operation in a warp of which only lanes 0x%08x are alive",
                         w->live);
    return ptx_gather(w, in, PTX_ALL);
}

#define FRAGMENT(offset) (*(fragment *)(void *)(w->frame + (offset)))

/* ---- Packing --------------------------------------------------------------------------------- */

static const struct ptx_insn *pack_registers(struct ptx_warp *w, const struct ptx_insn *in,
                                             uint32_t first, uint32_t source)
{
    for (uint32_t k = 0; k < 4; k++)
        memcpy(FRAGMENT(in->r[0])[first + k], w->frame + in->r[source + k], 4 * PTX_LANES);
    return in + 1;
}

HANDLER(any_frag_pack)
{
    return pack_registers(w, in, 0, 1);
}

HANDLER(any_frag_pack_high)
{
    return pack_registers(w, in, 4, 2);
}

static const struct ptx_insn *unpack_registers(struct ptx_warp *w, const struct ptx_insn *in,
                                               uint32_t first)
{
    for (uint32_t k = 0; k < 4; k++)
        memcpy(w->frame + in->r[k], FRAGMENT(in->r[4])[first + k], 4 * PTX_LANES);
    return in + 1;
}

HANDLER(any_frag_unpack)
{
    return unpack_registers(w, in, 0);
}

HANDLER(any_frag_unpack_high)
{
    return unpack_registers(w, in, 4);
}

/* ---- Elements -------------------------------------------------------------------------------- */

/* How many elements of a type share a 32-bit register. */
static uint32_t per_register(uint32_t type)
{
    return 4 / ptx_type_bytes(type);
}

static double element(uint32_t word, uint32_t type, uint32_t part)
{
    switch (type) {
    case PTX_F16:
        return (double)half_to_f32(word >> (16 * part) & 0xffffu);
    case PTX_BF16:
        return (double)bf16_to_f32(word >> (16 * part) & 0xffffu);
    case PTX_S8:
        return (double)(int8_t)(word >> (8 * part));
    case PTX_U8:
        return (double)(uint8_t)(word >> (8 * part));
    case PTX_S32:
        return (double)(int32_t)word;
    case PTX_B32:
        return (double)bits_f32(word & 0xffffe000u); /* tf32 */
    default:
        return (double)bits_f32(word);
    }
}

/* Row and column of element `e` (register e / n, part e % n) of an m16 x k fragment of a. */
static void place_a(uint32_t lane, uint32_t e, uint32_t n, uint32_t *row, uint32_t *k)
{
    const uint32_t r = e / n;

    *row = lane / 4 + (r & 1) * 8;
    *k = lane % 4 * n + e % n + (r / 2) * 4 * n;
}

/* Row (k) and column of element e of a k x n8 fragment of b. */
static void place_b(uint32_t lane, uint32_t e, uint32_t n, uint32_t *k, uint32_t *column)
{
    *k = lane % 4 * n + e % n + (e / n) * 4 * n;
    *column = lane / 4;
}

/* Row and column of element e (0 to 3) of a 16 x 8 accumulator. */
static void place_c(uint32_t lane, uint32_t e, uint32_t *row, uint32_t *column)
{
    *row = lane / 4 + (e / 2) * 8;
    *column = lane % 4 * 2 + (e & 1);
}

static void read_a(fragment from, struct ptx_tile t, double a[16][32])
{
    const uint32_t n = per_register(t.type), elements = 16u * t.k / PTX_LANES;

    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        for (uint32_t e = 0; e < elements; e++) {
            uint32_t row, k;

            place_a(lane, e, n, &row, &k);
            a[row][k] = element(from[e / n][lane], t.type, e % n);
        }
}

static void read_b(fragment from, uint32_t first, struct ptx_tile t, double b[32][8])
{
    const uint32_t n = per_register(t.type), elements = 8u * t.k / PTX_LANES;

    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        for (uint32_t e = 0; e < elements; e++) {
            uint32_t k, column;

            place_b(lane, e, n, &k, &column);
            b[k][column] = element(from[first + e / n][lane], t.type, e % n);
        }
}

/* Registers of an accumulator of 16 x 8: 4, or 2 when halves are packed. */
static uint32_t accumulator_registers(uint32_t type)
{
    return 4 / per_register(type);
}

static void read_c(fragment from, uint32_t first, uint32_t type, double c[16][8])
{
    const uint32_t n = per_register(type);

    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        for (uint32_t e = 0; e < 4; e++) {
            uint32_t row, column;

            place_c(lane, e, &row, &column);
            c[row][column] = element(from[first + e / n][lane], type, e % n);
        }
}

static uint32_t narrow(double v, uint32_t type)
{
    if (type == PTX_S32)
        return (uint32_t)(int64_t)v; /* below 2^53, so exact; wraps as hardware does */
    return type == PTX_F16 ? f64_to_half(v) : f32_bits((float)v);
}

static void write_d(fragment to, uint32_t first, uint32_t type, double d[16][8])
{
    const uint32_t n = per_register(type);

    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        for (uint32_t e = 0; e < 4; e++) {
            uint32_t row, column, *word = &to[first + e / n][lane];

            place_c(lane, e, &row, &column);
            if (n == 1)
                *word = narrow(d[row][column], type);
            else
                *word = (*word & ~(0xffffu << (16 * (e & 1)))) | narrow(d[row][column], type)
                                                                     << (16 * (e & 1));
        }
}

static void multiply(double d[16][8], double a[16][32], double b[32][8], uint32_t depth)
{
    for (uint32_t row = 0; row < 16; row++)
        for (uint32_t k = 0; k < depth; k++)
            for (uint32_t column = 0; column < 8; column++)
                d[row][column] += a[row][k] * b[k][column];
}

HANDLER(any_mma)
{
    const struct ptx_tile t = ptx_tile_of(in);
    double a[16][32], b[32][8], c[2][16][8];

    if (whole_warp(w, in) != in)
        return NULL;
    read_a(FRAGMENT(in->r[1]), t, a);
    for (uint32_t half = 0; half < in->sub; half++) {
        read_b(FRAGMENT(in->r[2]), half * 8u * t.k / PTX_LANES / per_register(t.type), t, b);
        read_c(FRAGMENT(in->r[3]), half * accumulator_registers(t.c), t.c, c[half]);
        multiply(c[half], a, b, t.k);
    }
    for (uint32_t half = 0; half < in->sub; half++)
        write_d(FRAGMENT(in->r[0]), half * accumulator_registers(t.d), t.d, c[half]);
    return in + 1;
}

/* ---- ldmatrix -------------------------------------------------------------------------------- */

/* sub: matrices (1, 2 or 4); second: 1 transposes. Lane 8 * m + r gives the address of row r of
 * matrix m. */
HANDLER(any_ldmatrix)
{
    const uint64_t *at = SLOT(const uint64_t, in->r[4]);
    uint16_t rows[4][8][8];

    if (whole_warp(w, in) != in)
        return NULL;
    for (uint32_t i = 0; i < 8u * in->sub; i++) {
        const uint64_t v = at[i] + (uint64_t)in->imm;
        const uint8_t *host = span(w->x, in, v, 16, 1, 0);

        if (!host || (v & 15))
            return ptx_memory_fault(w, in, i, v, 16);
        memcpy(rows[i / 8][i % 8], host, 16);
    }
    for (uint32_t m = 0; m < in->sub; m++) {
        uint32_t *to = SLOT(uint32_t, in->r[m]);

        for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
            const uint32_t r = lane / 4, c = lane % 4 * 2;
            const uint32_t low = in->second ? rows[m][c][r] : rows[m][r][c];

            to[lane] = low | (uint32_t)(in->second ? rows[m][c + 1][r] : rows[m][r][c + 1]) << 16;
        }
    }
    return in + 1;
}

/* ---- wmma tiles ------------------------------------------------------------------------------ */

/* Row and column, in the 16 x 16 (or 16 x 8, 8 x 16) tile, of element e of a lane. */
static void place_tile(struct ptx_tile t, uint32_t lane, uint32_t e, uint32_t *row,
                       uint32_t *column)
{
    const uint32_t n = per_register(t.type);

    if (t.c == 'a') {
        place_a(lane, e % (16u * t.k / PTX_LANES), n, row, column);
    } else if (t.c == 'b') {
        const uint32_t half = 8u * t.k / PTX_LANES;

        e %= 2 * half;
        place_b(lane, e % half, n, row, column);
        *column += e / half * 8;
    } else {
        place_c(lane, e % 4, row, column);
        *column += e / 4 * 8;
    }
}

static const struct ptx_insn *move_tile(struct ptx_warp *w, const struct ptx_insn *in,
                                        uint32_t address, uint32_t tile, uint32_t stride,
                                        int writes)
{
    const struct ptx_tile t = ptx_tile_of(in);
    const uint32_t n = per_register(t.type), bytes = ptx_type_bytes(t.type);
    const uint64_t window = in->space == PTX_SHARED ? PTX_SHARED_WINDOW : 0;

    if (whole_warp(w, in) != in)
        return NULL;
    for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
        const uint64_t base = SLOT(const uint64_t, address)[lane] + (uint64_t)in->imm + window;
        const uint64_t step = SLOT(const uint32_t, stride)[lane];

        for (uint32_t e = 0; e < in->sub * n; e++) {
            uint32_t row, column, *word = &FRAGMENT(tile)[e / n][lane];

            place_tile(t, lane, e, &row, &column);
            const uint64_t v = base + (t.d ? column * step + row : row * step + column) * bytes;
            uint8_t *host = ptx_resolve(w, lane, v, bytes, writes);

            if (!host || (v & (bytes - 1)))
                return ptx_memory_fault(w, in, lane, v - window, bytes);
            if (writes)
                memcpy(host, (const uint8_t *)word + e % n * bytes, bytes);
            else
                memcpy((uint8_t *)word + e % n * bytes, host, bytes);
        }
    }
    return in + 1;
}

HANDLER(any_tile_load)
{
    return move_tile(w, in, in->r[1], in->r[0], in->r[2], 0);
}

HANDLER(any_tile_store)
{
    return move_tile(w, in, in->r[0], in->r[1], in->r[2], 1);
}

#define ANY(name) isa->full[PTX_OP_##name] = isa->masked[PTX_OP_##name] = any_##name

void LEVEL(ptx_fill_tensor)(struct ptx_isa *isa)
{
    ANY(frag_pack);
    ANY(frag_pack_high);
    ANY(frag_unpack);
    ANY(frag_unpack_high);
    ANY(mma);
    ANY(ldmatrix);
    ANY(tile_load);
    ANY(tile_store);
}
