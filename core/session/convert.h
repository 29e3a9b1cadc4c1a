/*
 * Between element types and float64. Pure; any thread. Arrays are dense and may be unaligned.
 */
#ifndef SESSION_CONVERT_H
#define SESSION_CONVERT_H

#include <rung/tensor.h>
#include <stdbool.h>

/*
 * n elements of dtype to float64. Exact, but for i64 past 2^53, which rounds to nearest even.
 * false for an unknown dtype (nothing is written).
 */
bool rung_convert_load(uint32_t dtype, const void *from, uint64_t n, double *to);
/*
 * n float64 values to dtype. Floating types round to nearest even, overflow to inf and keep NaN
 * (as a quiet one); integers truncate toward zero and saturate, NaN becomes 0; bool is v != 0.
 * false for an unknown dtype.
 */
bool rung_convert_store(uint32_t dtype, const double *from, uint64_t n, void *to);
/* v as the dtype would hold it; v itself for integer types. */
double rung_convert_round(uint32_t dtype, double v);
bool rung_dtype_is_float(uint32_t dtype);

#endif
