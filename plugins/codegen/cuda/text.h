/* Texts of this plugin: building, keeping in an arena, making valid. One thread a text. */
#ifndef CODEGEN_CUDA_TEXT_H
#define CODEGEN_CUDA_TEXT_H

#include <rung/plugin.h>
#include <stdbool.h>
#include <stdio.h>

/* Fills err; returns code. */
int32_t cg_fail(struct rung_error *err, int32_t code, const char *symbol, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int32_t cg_no_memory(struct rung_error *err);

/* A text that is written with stdio: cg_open, fprintf to `file`, cg_close; then ptr and len. */
struct cg_writer {
    FILE *file; /* NULL when memory is out */
    char *ptr;
    size_t len;
};

bool cg_open(struct cg_writer *w);
/* false when memory ran out; ptr must be freed in both cases. */
bool cg_close(struct cg_writer *w);

/* A copy in the arena with a closing NUL; ptr is NULL when memory is out. */
struct rung_text cg_keep(const struct rung_host *host, struct rung_arena *arena, const char *ptr,
                         size_t len);

/*
 * A malloc'ed copy that is valid UTF-8 without NUL and carriage returns: each bad byte becomes '?',
 * CR LF and CR become LF. NULL when memory is out.
 */
char *cg_clean(const char *ptr, size_t len);

/* Length of the word of [A-Za-z0-9_] at p that does not start with a digit; 0: none. */
size_t cg_word(const char *p);
/* Case-blind search in ASCII. */
bool cg_contains(const char *text, const char *lower_word);

#endif
