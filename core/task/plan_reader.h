/*
 * The reader of plan lines as plan_parse.c (lines), plan_directives.c and plan_launch.c (launches)
 * share it. Private to these.
 */
#ifndef TASK_PLAN_READER_H
#define TASK_PLAN_READER_H

#include "task/plan_scope.h"

enum { PLAN_MAX = 64 };

struct plan_reader {
    struct rung_arena *arena;
    const struct rung_task *task;
    const char *file;
    struct rung_buf problems;
    uint32_t line; /* of the directive at hand */
    struct rung_tune tunes[PLAN_MAX];
    struct rung_expr_text where[PLAN_MAX];
    struct rung_temp temps[PLAN_MAX];
    struct rung_step steps[PLAN_MAX];
    struct rung_tensormap_spec maps[PLAN_MAX];
    const char *map_texts[PLAN_MAX]; /* what stands behind the name, until it is read */
    uint32_t n_tunes, n_where, n_temps, n_steps, n_maps;
};

/* Adds "file:line: message" to the problems. */
void rung_plan_fault(struct plan_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Number of the temp of that name, or -1. */
int rung_plan_temp(const struct plan_reader *r, const char *name);
/* Number of the tensor map of that name, or -1. */
int rung_plan_map(const struct plan_reader *r, const char *name);
/* Whether the name is free; faults when it is not. what: "temp". */
bool rung_plan_new_name(struct plan_reader *r, const char *what, const char *name);
/* Adds a step, or faults when the plan is full. */
void rung_plan_add_step(struct plan_reader *r, const struct rung_step *step);
/* Length of "ns::name" at the start of text, or 0. */
size_t rung_plan_qualified(const char *text);
/*
 * "x" or "x + offset" for a tensor or temp: kind, index and expr of arg. false when the text does
 * not start with one; a fault in the offset is true. what: "argument", "symbol c_w" for messages.
 */
bool rung_plan_take_pointer(struct plan_reader *r, const char *what, const char *text,
                            struct rung_arg *arg);
/* The names that an expression of this plan may use. */
struct plan_scope rung_plan_reader_scope(const struct plan_reader *r, uint32_t names);
/*
 * Checks an expression over all names and stores it. false after a fault. is_float NULL: only an
 * integer will do. what: "grid", "where", ... for messages.
 */
bool rung_plan_take_expr(struct plan_reader *r, const char *what, const char *text, bool *is_float,
                         struct rung_expr_text *out);
/* The keys of a directive, as in launch KERNEL grid=(...) cooperative. */
struct plan_keys {
    const char *directive;
    const char *const *names;
    uint32_t n;
    uint32_t word;    /* the one that may stand alone, without a value; n: none */
    const char *list; /* all of them, for messages */
};

/*
 * Splits "a=(...) b=... word" into n texts by key, NULL where one is absent; that of the word is
 * "1". false after a fault that leaves nothing to read on.
 */
bool rung_plan_take_keys(struct plan_reader *r, const struct plan_keys *keys, const char *text,
                         const char **values);
/* Where the first key of a text starts, or its end. */
const char *rung_plan_first_key(const struct plan_keys *keys, const char *text);
/* Drops the brackets of "(a, b)", but not of "(a) * (b)". */
const char *rung_plan_unwrap(struct rung_arena *arena, const char *text);
/*
 * "(a, b)" or "a", the value of a key, into 1 to `most` (at most 5) integer expressions. Their
 * number; 0 after a fault about it.
 */
uint32_t rung_plan_take_list(struct plan_reader *r, const char *directive, const char *key,
                             const char *text, uint32_t most, struct rung_expr_text *out);
/* Splits "word rest" at blanks or brackets. */
char *rung_plan_word(struct rung_arena *arena, const char *text, const char **rest);

/* One directive each, given what stands behind its name: appends to the reader, or faults. */
void rung_plan_read_tune(struct plan_reader *r, const char *rest);
void rung_plan_read_where(struct plan_reader *r, const char *rest);
void rung_plan_read_zero(struct plan_reader *r, const char *rest);
void rung_plan_read_symbol(struct plan_reader *r, const char *rest);
void rung_plan_read_launch(struct plan_reader *r, const char *rest);
/* A temp's name and type; rung_plan_check_temps checks the counts once all names are known. */
void rung_plan_read_temp(struct plan_reader *r, const char *rest);
void rung_plan_check_temps(struct plan_reader *r);
/* A tensor map's name; rung_plan_check_tensormaps reads the rest once all names are known. */
void rung_plan_read_tensormap(struct plan_reader *r, const char *rest);
void rung_plan_check_tensormaps(struct plan_reader *r);

#endif
