/*
 * The numeric verifier over a real session, the real `ops` reference, and a device whose kernels
 * are C functions: a task x[rows, cols] to y, with one kernel. One thread.
 */
#ifndef TESTS_VERIFY_VERDICTS_H
#define TESTS_VERIFY_VERDICTS_H

#include "support/support.h"

#include "session/session.h"
#include <rung/verifier.h>

/* A kernel in C. step: elements of y a row. */
typedef void (*matrix_kernel)(float *x, float *y, int rows, int cols);

struct trial {
    const char *graph;
    matrix_kernel kernel;
    int scalar;          /* y[rows] instead of y[rows, cols] */
    uint32_t shape_rule; /* RUNG_SHAPES_RANGE when 0 */
    uint32_t precision;  /* RUNG_PRECISION_FP32 when 0 */
    int64_t rows, cols;  /* bench shape; 8 x 256 when 0 */
    int64_t min_cols;    /* 1 when 0 */
    int64_t multiple;    /* of cols; 1 when 0 */
    const char *fill;    /* of x; NULL: normal */
    const char *fault;   /* NULL or the code that every launch answers */
    const char *option;  /* NULL or "name" of an integer option of numeric */
    int64_t value;
    int cancelled;
    uint32_t flags; /* rung_device_flag */
    int fast;       /* the session compares whole outputs; verdict_whole counts */
    int weight;     /* a second input w[cols, cols], at verdict_weight while a kernel runs */
};

/* The verdict's status and code; text and metrics (as JSON) are kept until the next trial. */
struct outcome {
    uint32_t status;
    char code[32];
    char detail[2048];
    char metrics[2048];
    int32_t error; /* of check itself */
    int launches;
};

extern const float *verdict_weight;
extern int verdict_whole;

struct outcome judge(const struct trial *trial);
/* Ends the test unless the trial fails with this code and the detail holds `says` (may be NULL). */
void expect_fail(const struct trial *trial, const char *code, const char *says);
void expect_pass(const struct trial *trial);

#endif
