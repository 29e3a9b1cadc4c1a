/* Which blocks of a reply are the candidate, and as what files. */
#ifndef CODEGEN_CUDA_CHOOSE_H
#define CODEGEN_CUDA_CHOOSE_H

#include "blocks.h"
#include "text.h"

struct cg_choice {
    size_t parts[CG_MAX_BLOCKS]; /* blocks that make the entry file, in this order */
    size_t n_parts;
    size_t headers[CG_MAX_BLOCKS]; /* blocks that become files of their own */
    size_t n_headers;
    bool unclosed; /* a part or header runs to the end of the text without a closing fence */
    bool whole;    /* all unclosed ones look complete */
};

/*
 * The block with kernels, one with //@ lines before others and a later one before an earlier;
 * blocks that bring the //@ lines or kernels that it lacks; and named files that these include.
 * false when no block has a kernel. What was done goes to note, a sentence each.
 */
bool cg_choose(struct cg_blocks *blocks, struct cg_choice *choice, FILE *note);
/* All blocks with kernels or //@ lines as one file; false where that makes no sense. */
bool cg_choose_all(struct cg_blocks *blocks, struct cg_choice *choice, FILE *note);

/* The entry file's text, malloc'ed; NULL when memory is out. */
char *cg_join(const struct cg_blocks *blocks, const struct cg_choice *choice);
/* The entry file's name. */
const char *cg_entry_path(const struct cg_blocks *blocks, const struct cg_choice *choice);

#endif
