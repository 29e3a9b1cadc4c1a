/* What `-Xptxas -v` says about kernels. */
#ifndef NVRTC_PTXAS_H
#define NVRTC_PTXAS_H

#include <rung/bundle.h>

/* Fills registers, static_shared, local_bytes and spill_bytes of those kernels that the log names.
 */
void nv_ptxas_read(const char *log, struct rung_kernel *kernels, uint32_t n);

/*
 * The most static shared memory that one kernel of the log uses, in bytes: with -v, ptxas of CUDA
 * 13 refuses too much of it without a word.
 */
uint32_t nv_ptxas_most_shared(const char *log);

/* Removes in place the lines that only report ("ptxas info", "ptxas   . "); errors and warnings
 * stay. */
void nv_ptxas_strip(char *log);

#endif
