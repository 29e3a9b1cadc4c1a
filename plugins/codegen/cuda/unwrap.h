/* Code inside of JSON, HTML or tags. */
#ifndef CODEGEN_CUDA_UNWRAP_H
#define CODEGEN_CUDA_UNWRAP_H

/*
 * The text of the JSON string or the element that holds a __global__ function, unescaped;
 * malloc'ed. NULL when there is none (or memory is out).
 */
char *cg_unwrap(const char *text);

#endif
