/* From NVRTC's log to what a model is told. */
#ifndef NVRTC_DIAGNOSE_H
#define NVRTC_DIAGNOSE_H

#include "message.h"

/*
 * Reads the log of a failed compile. NVRTC reports a kernel name that does not resolve as an error
 * in the file __nv_name_map, beside the source's own errors. Writes "compile.error" or, when only
 * names are wrong, "plan.error" to code, and the text for the model to out. offer: the headers that
 * there are, as words.
 */
void nv_diagnose(const char *log, const struct nv_request *request, const char *offer,
                 char code[32], struct nv_buffer *out);

/* The text of a plan.error: the expression does not name a kernel, `why`, and which kernels there
 * are. */
void nv_diagnose_name(const char *expression, const char *why, const struct nv_request *request,
                      struct nv_buffer *out);

/* The same for a variable that the plan uploads to. */
void nv_diagnose_symbol(const char *expression, const char *why, const struct nv_request *request,
                        struct nv_buffer *out);

/* Appends text, cut in the middle to `limit` bytes with a line that counts what was cut. */
void nv_add_cut(struct nv_buffer *out, const char *text, size_t n, size_t limit);

#endif
