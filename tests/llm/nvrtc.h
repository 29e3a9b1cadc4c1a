/* NVRTC for tests that only ask whether a source compiles. Opened with dlopen; one thread. */
#ifndef TESTS_LLM_NVRTC_H
#define TESTS_LLM_NVRTC_H

#include <stdbool.h>
#include <stdint.h>

/* false when no NVRTC is found (RUNG_CUDA_HOME, the loader's path, the usual toolkit folder). */
bool nvrtc_open(void);
/*
 * Compiles for compute_90 with these name expressions. NULL when it compiles and every expression
 * has a lowered name; else the log, on the heap.
 */
char *nvrtc_compile(const char *source, const char *const *expressions, uint32_t n);

#endif
