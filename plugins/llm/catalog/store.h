/*
 * The catalog's kernels, read from its folder: one folder an operator, one file a kernel with its
 * idea (config/catalog/README.md). Read once, then immutable: any thread.
 */
#ifndef LLM_CATALOG_STORE_H
#define LLM_CATALOG_STORE_H

#include "../common/text.h"

enum { STORE_MAX_UNROLL = 8, STORE_MAX_FORMS = 16, STORE_MAX_KERNELS = 512 };

/* Tasks that a kernel serves; match.h tells how it reads. */
struct form {
    char *graph;   /* "elementwise", or a graph with wildcards */
    char *tensors; /* NULL only with "elementwise" */
    char *let;     /* constants for the placeholders, or NULL */
};

/* One file. Texts live as long as the store. */
struct kernel {
    char *family;   /* operator: the folder's name */
    char *stem;     /* file name without .cu */
    char *idea;     /* one sentence */
    char *category; /* one word */
    char *after;    /* stem in the same family that it improves on, or NULL */
    char *body;     /* the file without its header: plan lines, code, placeholders */
    uint32_t unroll[STORE_MAX_UNROLL]; /* values of {{UNROLL}} */
    uint32_t n_unroll;                 /* at least 1 */
    struct form forms[STORE_MAX_FORMS];
    uint32_t n_forms;  /* 0: those of the kernel that it improves on */
    uint32_t n_header; /* lines before body */
};

struct store {
    struct kernel *kernels; /* by family, then stem */
    uint32_t n;
    uint32_t cap;
};

/* Reads the folder. Faults are RUNG_ECONFIG or RUNG_EIO with "file:line: what". */
int32_t store_open(const char *dir, struct store *store, struct rung_error *error);
void store_close(struct store *store);
/* By family and stem, or NULL. */
const struct kernel *store_find(const struct store *store, struct llm_span family,
                                struct llm_span stem);

/* The kernel whose forms are this kernel's: itself, or one that it improves on. */
const struct kernel *store_forms(const struct store *store, const struct kernel *kernel);

#endif
