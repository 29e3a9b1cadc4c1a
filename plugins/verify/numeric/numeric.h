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
    double whole; /* operations up to which outputs are compared whole */
};

/* One run to judge. */
struct numeric_case {
    const int64_t *dims;
    const char *fill; /* NULL: the task's own fills */
    uint64_t seed;
    uint32_t repeats;
    uint32_t part;        /* 1: too dear to be compared whole */
    uint32_t keeps_state; /* 1: on top of what the run before left in variables */
    uint32_t in_a_row;    /* which of several runs on the same inputs; 0: the only one */
    uint32_t of_task;     /* 1: a shape that the task names */
    uint32_t n_exact;
    const struct rung_fill *exact; /* of inputs, instead of `fill` */
    const char *says;              /* what these are, or NULL */
    double cost; /* elements, or half the floating-point operations where these are more */
};

struct numeric_cases {
    struct numeric_case *own; /* the task's fills, cheapest first */
    uint32_t n_own;
    struct numeric_case *hard; /* structured fills, cheapest first */
    uint32_t n_hard;
    const struct numeric_case *twice; /* one of own, to run again with the same seed; NULL: none */
    const struct numeric_case *small; /* one of own of few elements, to run many times */
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
    double share;             /* least share of an output that a case compared; 1: all */
    uint64_t launch_ns;       /* the plan once, in the run before */
    uint64_t bad;             /* 1 + an element that numeric_look takes in too; 0: none */
};

/* What a finished run has of one output. at NULL: want has all elements, in order. */
struct numeric_output {
    struct rung_comparison c;
    struct rung_reference_output want;
    struct rung_tensor_view got;
    uint64_t *at;          /* flat index of each element of want */
    double *value, *bound; /* want's, where at is set */
};

enum numeric_kind { UNWRITTEN, NONFINITE, HALF, WRONG, N_KINDS };

/* The first failure of a kind, or a later one when the first has too few elements to show a
 * pattern. */
struct numeric_failure {
    const struct numeric_case *at;
    struct rung_comparison c;
    char *detail; /* NULL: none yet */
};

struct numeric_stage {
    struct numeric_failure first[N_KINDS];
    uint32_t n_failed;
    const struct numeric_case *worst_at; /* of the outputs that pass */
    struct rung_comparison worst;
};

/* ---- cases.c ---- */

/* The next of a sequence of random words (splitmix64). */
uint64_t numeric_next(uint64_t *state);

/* Chooses all cases of a check. Results in the call's arena. */
int32_t numeric_choose(const struct numeric_check *k, struct numeric_cases *out);
/* Fills of a case for session->run: one entry an input that the case overrides. fills has room for
 * all tensors of the task. [pure] */
uint32_t numeric_fills(const struct rung_task *task, const struct numeric_case *c,
                       struct rung_fill *fills);

/* ---- boxes.c ---- */

enum { NUMERIC_BOXES = 48, NUMERIC_FINDS = 8 };

/*
 * Boxes of an output to compare, by seed: at most 2^16 elements and 5 % of them, but for outputs
 * of at most 64 elements, which are one box. Returns how many. [pure]
 */
uint32_t numeric_boxes(const int64_t *shape, uint32_t n_dims, uint64_t seed,
                       struct rung_region boxes[NUMERIC_BOXES]);
/* One element as a box. [pure] */
struct rung_region numeric_box_at(const struct rung_tensor_view *view, uint64_t at);
/* The first elements that are inf or NaN, as boxes. [pure] */
uint32_t numeric_scan(const struct rung_tensor_view *view, uint64_t n,
                      struct rung_region boxes[NUMERIC_FINDS]);

/* ---- look.c ---- */

/* Fills o; to be forgotten before the run ends. Of a dear case only boxes are compared. */
int32_t numeric_look(struct numeric_check *k, const struct numeric_case *c, struct rung_run *run,
                     uint32_t tensor, struct numeric_output *o);
/*
 * Of a dear case, where the output lies: only the comparison, of all elements. *seen is 0 where the
 * session can't, and numeric_look has to do.
 */
int32_t numeric_glance(struct numeric_check *k, struct rung_run *run, uint32_t tensor,
                       struct rung_comparison *out, int *seen);
void numeric_forget(struct numeric_output *o);
/* What the kernel wrote where want has its element i. */
double numeric_got(const struct numeric_output *o, uint64_t i);

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
int32_t numeric_weak_add(const struct numeric_check *k, struct rung_run *run,
                         const struct numeric_output *o, struct numeric_weak *w);
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
/* Fills the error; returns RUNG_ENOMEM. */
int32_t numeric_out_of_memory(const struct numeric_check *k);

/* ---- judge.c ---- */

/* Runs all cases and fills the verdict. */
int32_t numeric_judge(struct numeric_check *k);
/* Starts one case; the caller ends the run. */
int32_t numeric_start(struct numeric_check *k, const struct numeric_case *c, struct rung_run **run);
/*
 * Whether the run ended well, and its outputs into the stage. weak: one entry a tensor, or NULL.
 * *ended when the verdict is filled.
 */
int32_t numeric_judge_run(struct numeric_check *k, const struct numeric_case *c,
                          struct rung_run *run, struct numeric_stage *s, struct numeric_weak *weak,
                          int *ended);
/* The verdict of a failure; why: a sentence behind its detail. */
int32_t numeric_fail(struct numeric_check *k, const struct numeric_failure *f, const char *code,
                     const char *why);

/* ---- probe.c ---- */

/*
 * Whether an fp32 task is computed in fewer bits, at every shape that the task names: after its own
 * cases passed. *ended when the verdict is filled.
 */
int32_t numeric_probe(struct numeric_check *k, const struct numeric_cases *cases, int *ended);

/* ---- state.c ---- */

/* The verdict of a stage's first failure, in the order of all verdicts. */
int32_t numeric_tell(struct numeric_check *k, const struct numeric_stage *s, const char *why);

/*
 * Launches in a row, and other inputs on top of what earlier launches left in variables of module
 * scope: after all cases passed. *ended when the verdict is filled.
 */
int32_t numeric_state(struct numeric_check *k, const struct numeric_cases *cases, int *ended);

#endif
