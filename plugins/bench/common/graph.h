/*
 * `reference.graph` as a list of calls, for baselines that recognise patterns in it. Only reads
 * what a library might have in one piece: operators on named tensors with fixed arguments. The core
 * has checked the text already; this reader still takes any text and bounds everything.
 */
#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include <rung/session.h>

enum { BENCH_MAX_CALLS = 64, BENCH_MAX_ARGS = 10, BENCH_MAX_NAMES = 64 };

enum bench_kind {
    BENCH_NONE = 0,
    BENCH_TENSOR, /* index: of the task */
    BENCH_CALL,   /* index: of an earlier call */
    BENCH_NUMBER,
    BENCH_LIST, /* of whole numbers */
    BENCH_WORD, /* same, tanh, true */
};

struct bench_value {
    uint32_t kind;    /* bench_kind */
    uint32_t index;   /* TENSOR, CALL */
    uint32_t n;       /* LIST */
    uint32_t inexact; /* NUMBER: came from a division that left a rest */
    double number;    /* NUMBER */
    int64_t list[RUNG_MAX_DIMS];
    char word[24]; /* WORD */
};

struct bench_arg {
    char name[24]; /* "" by position; without underscores */
    struct bench_value value;
};

/* op: the operator's name without underscores; "add", "sub", "mul", "div", "pow" for + - * / **. */
struct bench_call {
    char op[32];
    uint32_t n_args;
    uint32_t reserved;
    struct bench_arg args[BENCH_MAX_ARGS];
};

struct bench_graph {
    uint32_t n_calls;
    uint32_t reserved;
    struct bench_call calls[BENCH_MAX_CALLS];
    /* What each task tensor is assigned; kind NONE for inputs. */
    struct bench_value outputs[BENCH_MAX_NAMES];
};

/*
 * Reads the task's graph at some dims. Returns NULL, or in static words why it can't be read ("more
 * than 64 operators"): then no pattern matches. [pure]
 */
const char *bench_graph_read(const struct rung_task *task, const int64_t *dims,
                             struct bench_graph *out);

/* The argument by name (without underscores; PyTorch's other names too) or position, or NULL. */
const struct bench_value *bench_arg(const struct bench_call *call, const char *name,
                                    uint32_t position);
/* A whole number within 32 bits; `standard` when not given. 0 when it is something else. */
int bench_int(const struct bench_call *call, const char *name, uint32_t position, int64_t standard,
              int64_t *out);
/* n whole numbers: a list of n, or one for all; `standard` when not given. */
int bench_ints(const struct bench_call *call, const char *name, uint32_t position, uint32_t n,
               int64_t standard, int64_t *out);
/* A flag: 0, 1, true, false. */
int bench_flag(const struct bench_call *call, const char *name, uint32_t position, int standard,
               int *out);
double bench_number(const struct bench_call *call, const char *name, uint32_t position,
                    double standard);
/* The task tensor that an argument is, or -1. */
int bench_tensor_arg(const struct bench_call *call, const char *name, uint32_t position);
/* The call behind a value when it is one of `op`, else NULL. */
const struct bench_call *bench_call_of(const struct bench_graph *graph,
                                       const struct bench_value *value, const char *op);

#endif
