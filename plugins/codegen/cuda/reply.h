/* From a reply or a source to a bundle with its plan. */
#ifndef CODEGEN_CUDA_REPLY_H
#define CODEGEN_CUDA_REPLY_H

#include <rung/codegen.h>
#include <rung/host.h>

/* See rung_codegen_ops.read_reply and read_source. */
int32_t cg_read_reply(const struct rung_host *host, struct rung_call *call,
                      const struct rung_reply_request *req, struct rung_reply_result *out);
int32_t cg_read_source(const struct rung_host *host, struct rung_call *call,
                       const struct rung_task *task, const char *path, struct rung_text source,
                       struct rung_reply_result *out);

#endif
