/* The identity of a prompt, for cassettes and mailboxes. Pure. */
#ifndef LLM_COMMON_PROMPT_HASH_H
#define LLM_COMMON_PROMPT_HASH_H

#include <rung/llm.h>

enum { LLM_SHA256_HEX = 65 };

/*
 * SHA-256 as 64 lower-case hex digits over: the request's role, then for each message in order the
 * name of its role ("system", "user", "assistant"), then the text of each of its text parts, all of
 * these joined by "\n". Other parts (tool calls, opaque echoes) don't count.
 */
void llm_prompt_sha256(const struct rung_llm_request *request, char hex[LLM_SHA256_HEX]);

/* "system", "user" or "assistant"; "unknown" for any other number. */
const char *llm_message_role(uint32_t role);

#endif
