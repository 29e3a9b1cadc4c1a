/*
 * What a comparison sums up over its elements and the figures that follow from it, the same for
 * outputs compared on the host and on the device. Pure.
 */
#ifndef SESSION_CONCLUDE_H
#define SESSION_CONCLUDE_H

#include <rung/session.h>

/* Sums of one comparison; long double, so that squares of float64 extremes stay finite. */
struct session_sums {
    long double error2, got_want, got2, want2;
    double peak;
    uint64_t n_finite;
    uint64_t n_poison; /* bad elements whose bits are poison */
};

/* Unit roundoff of float16 over that of the task's precision: 2^-11 / 2^-24 for fp32. */
double session_half_over(uint32_t precision);
/* Fills n_unwritten, fraction_out, rmse, psnr and cosine; n and n_bad are there. */
void session_conclude(struct rung_comparison *c, const struct session_sums *sums, uint32_t dtype);

#endif
