/* The code blocks of a markdown text. */
#ifndef CODEGEN_CUDA_BLOCKS_H
#define CODEGEN_CUDA_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

enum { CG_MAX_BLOCKS = 128, CG_MAX_PATH = 128 };

struct cg_block {
    char *code;             /* malloc'ed */
    char *mask;             /* of cg_mask */
    char language[16];      /* first word of the info string, lower case; "" without */
    char path[CG_MAX_PATH]; /* file name that the block, or the line before it, gives; "" without */
    bool closed;            /* false: the text ends inside the fence */
    bool kernels;           /* has a __global__ function */
    bool plan;              /* has a //@ line */
    bool device_language;   /* may be CUDA source, by its tag and its looks */
    bool python;            /* Python, by its looks */
};

struct cg_blocks {
    struct cg_block list[CG_MAX_BLOCKS];
    size_t n;
    bool failed; /* memory is out */
};

/* Reads at most CG_MAX_BLOCKS blocks. text is valid UTF-8 with \n line ends. */
void cg_blocks_read(struct cg_blocks *blocks, const char *text);
/* One block out of a text that is code as a whole. */
void cg_blocks_whole(struct cg_blocks *blocks, const char *text);
void cg_blocks_free(struct cg_blocks *blocks);
/* Whether a text looks like a module of Python. */
bool cg_looks_like_python(const char *text);
/* Whether the text is a path that a bundle may have: relative, no "..", [A-Za-z0-9_./-]. */
bool cg_path_ok(const char *path);

#endif
