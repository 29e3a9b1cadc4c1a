/* From the sums of a comparison to its figures. */
#include "session/conclude.h"

#include <math.h>

double session_half_over(uint32_t precision)
{
    switch (precision) {
    case RUNG_PRECISION_FP32:
        return 0x1p13;
    case RUNG_PRECISION_BF16:
        return 0x1p-3;
    case RUNG_PRECISION_FP64:
        return 0x1p42;
    default:
        return 1; /* tf32 and fp16 have 11 significant bits; integers have no rounding */
    }
}

/*
 * How many bad elements are counted as never written. Bytes equal their poison by chance once in
 * 256 wrong ones, so for 8-bit integers it takes more than that explains.
 */
static uint64_t unwritten(uint32_t dtype, uint64_t n_poison, uint64_t n_bad)
{
    if (dtype != RUNG_I8 && dtype != RUNG_U8)
        return n_poison;
    double chance = (double)n_bad / 256;
    return (double)n_poison > chance + 4 * sqrt(chance) ? n_poison : 0;
}

void session_conclude(struct rung_comparison *c, const struct session_sums *sums, uint32_t dtype)
{
    c->n_unwritten = unwritten(dtype, sums->n_poison, c->n_bad);
    c->fraction_out = c->n ? (double)c->n_bad / (double)c->n : 0;
    if (sums->n_finite)
        c->rmse = (double)sqrtl(sums->error2 / sums->n_finite);
    c->psnr = c->rmse == 0 ? INFINITY : 20 * log10(sums->peak / c->rmse);
    if (sums->got2 == 0 || sums->want2 == 0)
        c->cosine = sums->got2 == sums->want2 ? 1 : 0;
    else
        c->cosine = (double)(sums->got_want / (sqrtl(sums->got2) * sqrtl(sums->want2)));
}
