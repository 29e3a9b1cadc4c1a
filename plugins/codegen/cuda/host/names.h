/* Names as models vary them: d_x, dX, x_dev and X are x. See names.c. */
#ifndef CODEGEN_CUDA_NAMES_H
#define CODEGEN_CUDA_NAMES_H

#include "pool.h"

/* Lower case, without underscores and without what says where the data lie. */
const char *cg_plain_name(struct cg_pool *pool, const char *name);
/* The same without "num", "n_", "size", "dim", a plural's s: num_rows and row_size are row. */
const char *cg_stem(struct cg_pool *pool, const char *name);
/* Whether both (plain names) mean the same tensor or size in common use. */
bool cg_tensor_synonyms(const char *a, const char *b);
bool cg_dim_synonyms(const char *a, const char *b);
bool cg_names_output(const char *plain);
bool cg_names_input(const char *plain);
/* Whether the name counts all elements: n, numel, total. */
bool cg_names_total(const char *plain);
bool cg_names_rows(const char *plain);
bool cg_names_columns(const char *plain);

#endif
