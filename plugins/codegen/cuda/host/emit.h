/*
 * Plan lines out of what walks collected: one list of lines a walk, merged where walks agree.
 * Private to this folder.
 */
#ifndef CODEGEN_CUDA_EMIT_H
#define CODEGEN_CUDA_EMIT_H

#include "host.h"

enum { CG_MAX_FIELDS = 12 + CG_MAX_ARGS };

/* One step. Fields are texts: grid (3), block (3), cluster (3), shared, then the arguments. */
struct cg_line {
    enum cg_step_kind kind;
    const char *name;
    bool cooperative, clustered;
    const char *fields[CG_MAX_FIELDS];
    uint32_t n_fields;
    const struct cg_sym *when; /* NULL: always */
};

struct cg_temp {
    const char *name;
    uint32_t dtype;
    const struct cg_sym *count;
};

/* What one walk, or several merged, come to. */
struct cg_lines {
    struct cg_line *list;
    uint32_t n;
};

struct cg_leaf {
    struct cg_decision path[CG_MAX_PATH_DECISIONS];
    int n_path;
    struct cg_lines lines;
};

struct cg_temps {
    struct cg_temp list[CG_MAX_STEPS];
    uint32_t n;
};

/* The steps of the walk that h has just made; problems go to h. Temps are added to *temps. */
struct cg_lines cg_emit(struct cg_host *h, struct cg_temps *temps);
/* All walks as one list; leaves are in the order in which the decisions were tried. */
struct cg_lines cg_merge(struct cg_host *h, const struct cg_leaf *leaves, uint32_t n);
/* "//@ temp ...\n//@ launch ...\n" */
const char *cg_lines_text(struct cg_host *h, const struct cg_temps *temps,
                          const struct cg_lines *lines);

#endif
