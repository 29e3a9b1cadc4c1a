/* One reply on its way to a bundle: what reply.c and accept.c share. One thread a reading. */
#ifndef CODEGEN_CUDA_READING_H
#define CODEGEN_CUDA_READING_H

#include "blocks.h"
#include "host/translate.h"
#include "text.h"
#include <rung/codegen.h>
#include <rung/host.h>

struct cg_reading {
    const struct rung_host *host;
    struct rung_call *call;
    const struct rung_reply_request *req; /* flags, parent and base; of a source only the task */
    const struct rung_task *task;
    struct rung_reply_result *out;
    struct cg_blocks *blocks;
    struct cg_pool pool; /* of all that is found on the way */
    struct cg_writer note;
};

/* What was found: texts are the pool's or the blocks'. */
struct cg_candidate {
    const char *path, *source;     /* the entry file */
    const struct rung_file *files; /* further files, in the arena */
    uint32_t n_files;
    const char *host;   /* C++ around it that is read and not kept; "" for none */
    const char *python; /* a module around it; "" for none */
    const char *prose;  /* the reply's text, for plan lines and hints; "" for none */
};

/* A fault of the reply; the text is kept in the arena. The bundle stays as it is. */
int32_t cg_fault(struct cg_reading *r, const char *code, const char *text);
/* The same with the writer's text, which is closed. */
int32_t cg_finish_fault(struct cg_reading *r, const char *code, struct cg_writer *w);

/* Finds the plan, makes the bundle, fills the result. */
int32_t cg_accept(struct cg_reading *r, const struct cg_candidate *c);
/*
 * Plan lines of a reply, or launches in its code blocks (around), joined to the code of an earlier
 * one (RUNG_REPLY_PLAN_ONLY).
 */
int32_t cg_join_plan(struct cg_reading *r, const char *text, const char *around);

/* The C++ in a Python module's strings, "" for none; false when memory is out. */
bool cg_code_of_python(struct cg_reading *r, const char *python, const char **code);

#endif
