/*
 * References of the user's own: a function from inputs to outputs in float64 (C, CUDA or PyTorch),
 * of which nothing is known. What honest arithmetic may be off by is estimated from the function
 * itself: how its outputs move when each input is moved by some units in the last place of the
 * task's precision (the condition of the problem), and, where the function can also be computed in
 * float32, how far that is off. One thread an instance.
 */
#ifndef OWN_OWN_H
#define OWN_OWN_H

#include <rung/reference.h>

/* Tensors as dense float64, one a task tensor; an inout tensor holds its input and then its output.
 */
struct own_io {
    const struct rung_task *task;
    const int64_t *dims;
    const uint64_t *n; /* elements */
    double *const *v;
    const struct rung_tensor_view *views; /* for shapes; their data is not for reading */
};

/*
 * Computes all outputs. single: in float32 throughout; RUNG_EUNSUPPORTED where there is no such
 * form, and the estimate does without.
 */
typedef int32_t (*own_function)(void *ctx, struct rung_call *, const struct own_io *, int single);

struct own_settings {
    const struct rung_host *host;
    int64_t trials;    /* evaluations at moved inputs */
    double safety;     /* what an error seen is multiplied by */
    double rtol, atol; /* added to every bound */
};

/* What an instance keeps between calls: the outputs last handed out. Starts zeroed. */
struct own_memory {
    double **kept;
    uint32_t n_kept;
};
void own_forget(struct own_memory *memory);

/*
 * rung_reference_ops.evaluate for such a function. Boxes are RUNG_EUNSUPPORTED. Bounds:
 *   safety * max(1, c) * largest move + relative * |value| + atol + least normal number,
 *   relative = (4 + 8 max(1, X)) u + 4 safety q + rtol
 * u: unit roundoff of the precision; moves: of `trials` evaluations with every floating input at
 * x (1 +- 8 u), signs at random (Higham, Accuracy and Stability, section 1.6: forward error =
 * condition x backward error); c: root mean square of the float32 form's error over that of the
 * moves; q: median of its relative error; X: largest magnitude of an input, since an elementary
 * function inside may see an argument of that size, of which 8 units in the last place may be lost.
 * Integer outputs must be exact, but where a move changes them nothing is asked.
 */
int32_t own_evaluate(const struct own_settings *settings, struct own_memory *memory,
                     struct rung_call *call, const struct rung_reference_request *request,
                     own_function function, void *ctx, struct rung_reference_output *outputs,
                     uint32_t n_outputs);

/* rung_reference_ops.work: 0, not known; the core counts the tensors' bytes then. */
int32_t own_work(void *self, struct rung_call *, const struct rung_task *, const int64_t *dims,
                 struct rung_work *out);

/* The options `trials`, `safety`, `rtol`, `atol`, for a factory's table; and their values. */
extern const struct rung_option own_option_trials, own_option_safety, own_option_rtol,
    own_option_atol;
struct own_settings own_settings_read(const struct rung_host *host,
                                      const struct rung_options *options);

/* Fills err; returns code. */
int32_t own_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * The declaration of `struct rung_task` that C and CUDA sources are given: a member for each dim,
 * param and tensor, `real` the type of elements (double, or float under RUNG_SINGLE). Text in the
 * call's arena, or NULL. [pure]
 */
const char *own_header(const struct rung_host *host, struct rung_call *call,
                       const struct rung_task *task);

/*
 * Reads a source file of at most 1 MiB into the call's arena. RUNG_ECONFIG with the file's name and
 * why it can't be read.
 */
int32_t own_read_source(const struct rung_host *host, struct rung_call *call, const char *path,
                        struct rung_text *out);

#endif
