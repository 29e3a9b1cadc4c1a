/* What the Python helper is asked and what it answers: JSON lines, read as hostile. */
#ifndef TORCH_ANSWER_H
#define TORCH_ANSWER_H

#include <cjson/cJSON.h>
#include <rung/baseline.h>
#include <rung/host.h>

/* Fills err; returns code. */
int32_t torch_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

/* A request of one operation. The caller deletes it. */
cJSON *torch_request(const char *op);

/* The request "prepare" of the session's task at some dims. The caller deletes it. */
int32_t torch_task(struct rung_call *call, const struct rung_session *session, const int64_t *dims,
                   cJSON **out);

/*
 * Parses an answer; the caller deletes *out. An answer that says what went wrong becomes that
 * status with the helper's message; anything that is no answer, RUNG_EINTERNAL.
 */
int32_t torch_answer(struct rung_error *err, struct rung_text line, cJSON **out);

/* Copies a text of the answer, printable ASCII only, cut to size. 0 when it is none. */
int torch_word(const cJSON *answer, const char *name, char *out, size_t size);

/* Samples and what goes with them, checked; in call->arena. RUNG_EINTERNAL when they are no good.
 */
int32_t torch_samples(const struct rung_host *host, struct rung_call *call, const cJSON *answer,
                      const struct rung_timing_recipe *recipe, struct rung_measured *out);

#endif
