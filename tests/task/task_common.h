/* Tasks for the tests of core/task, written as JSON: the settings tree without a file reader. */
#ifndef TESTS_TASK_COMMON_H
#define TESTS_TASK_COMMON_H

#include "support/support.h"
#include "task/task.h"

/* Row-wise softmax with dims rows, cols and cols4 = cols / 4, parameters scale and shift, x and y.
 */
extern const char *const softmax_json;

/* The task of a JSON text; NULL with the faults in *faults (arena) when it is wrong. */
const struct rung_task *task_of_json(struct rung_arena *arena, const char *json,
                                     const char **faults);
/* The same of the softmax task, which must be right. */
const struct rung_task *softmax_task(struct rung_arena *arena);
/* The softmax task with `from` replaced by `to` once. */
char *softmax_with(struct rung_arena *arena, const char *from, const char *to);

#endif
