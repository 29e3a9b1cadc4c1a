/*
 * What the files of the `numeric` verifier share. One check runs on one thread; all its memory is
 * in the arena of the call, but for masks, which are freed at once.
 */
#ifndef NUMERIC_NUMERIC_H
#define NUMERIC_NUMERIC_H

#include <rung/verifier.h>

#include <stddef.h>

/* Options, copied at create. */
struct numeric_self {
    const struct rung_host *host;
    uint64_t seed;
    uint32_t seeds;        /* draws of the task's own fills */
    uint32_t shapes;       /* awkward shapes of our own */
    uint64_t max_elements; /* work of one case; 0: by device */
    double tolerance;
};

/* One run to judge. */
struct numeric_case {
    const int64_t *dims;
    const char *fill; /* NULL: the task's own fills */
    uint64_t seed;
    uint32_t repeats;
    double cost; /* elements, or half the floating-point operations where these are more */
};

struct numeric_cases {
    struct numeric_case *own; /* the task's fills, cheapest first */
    uint32_t n_own;
    struct numeric_case *hard; /* structured fills, cheapest first */
    uint32_t n_hard;
    const struct numeric_case *twice; /* one of own, to run again with the same seed; NULL: none */
    uint32_t n_shapes;
};

/* A growing line of text, cut at its end. */
struct numeric_text {
    char buf[1600];
    size_t at;
};

/* One check in progress. */
struct numeric_check {
    const struct numeric_self *self;
    struct rung_call *call;
    const struct rung_session *session;
    struct rung_verdict *out;
    struct numeric_text note; /* worth saying with a pass */
    uint32_t n_run;           /* cases run */
};

/* What a finished run has of one output. */
struct numeric_output {
    struct rung_comparison c;
    struct rung_reference_output want;
    struct rung_tensor_view got;
};

/* ---- cases.c ---- */

/* Chooses all cases of a check. Results in the call's arena. */
int32_t numeric_choose(const struct numeric_check *k, struct numeric_cases *out);
/* Fills of a case for session->run: one entry an input that the case overrides. fills has room for
 * all tensors of the task. [pure] */
uint32_t numeric_fills(const struct rung_task *task, const struct numeric_case *c,
                       struct rung_fill *fills);

/* ---- weak.c ---- */

/* What a constant could do to one output over all cases seen; start with zeros. */
struct numeric_weak {
    uint32_t n_cases;
    double low, high; /* constants that pass every case: low..high */
    uint32_t n_each;  /* cases of 8 elements and more that some constant of their own passes */
    uint32_t n_wide;  /* cases of 8 elements and more */
    uint32_t n_copy;  /* cases that a copy of one input (the first that does) passes */
    uint32_t copied;  /* 1 + index of that input */
};

/* Adds a finished run's output. */
int32_t numeric_weak_add(const struct numeric_check *k, struct rung_run *run, uint32_t tensor,
                         struct numeric_weak *w);
/* Sentence on why the task's check is weak for this output, or NULL. */
const char *numeric_weak_says(const struct numeric_check *k, uint32_t tensor,
                              const struct numeric_weak *w);

/* ---- hints.c ---- */

/* Appends what the pattern of wrong elements suggests, as a sentence; nothing when there is none.
 */
void numeric_hint(const struct numeric_output *o, struct numeric_text *text);

/* ---- report.c ---- */

void numeric_say(struct numeric_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "at rows=7 cols=1000 with fill offset" */
void numeric_say_where(const struct numeric_check *k, const struct numeric_case *c,
                       struct numeric_text *text);
/* What is wrong with an output: the first wrong element, how many, and the pattern. */
void numeric_say_wrong(const struct numeric_check *k, const struct numeric_case *c,
                       const struct numeric_output *o, struct numeric_text *text);
/* Metrics of a comparison as a map, or NULL when memory is out. */
struct rung_map *numeric_metrics(const struct numeric_check *k, const struct numeric_case *c,
                                 const struct rung_comparison *cmp);
/* Fills the verdict; code "" for none. */
int32_t numeric_verdict(struct numeric_check *k, uint32_t status, const char *code,
                        const char *detail, const struct rung_map *metrics);
/* A block of the call's arena; NULL with the error filled when memory is out. */
void *numeric_alloc(const struct numeric_check *k, uint64_t size);

/* ---- judge.c ---- */

/* Runs all cases and fills the verdict. */
int32_t numeric_judge(struct numeric_check *k);

#endif
