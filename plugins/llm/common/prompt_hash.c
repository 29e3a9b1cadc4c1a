/* SHA-256 of a prompt; see prompt_hash.h for what it covers. */
#include "prompt_hash.h"
#include <sha2.h>
#include <string.h>

const char *llm_message_role(uint32_t role)
{
    switch (role) {
    case RUNG_MSG_SYSTEM:
        return "system";
    case RUNG_MSG_USER:
        return "user";
    case RUNG_MSG_ASSISTANT:
        return "assistant";
    default:
        return "unknown";
    }
}

static void add(SHA2_CTX *sha, const char *bytes, size_t n)
{
    SHA256Update(sha, (const uint8_t *)"\n", 1);
    SHA256Update(sha, (const uint8_t *)bytes, n);
}

void llm_prompt_sha256(const struct rung_llm_request *request, char hex[LLM_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)request->role, strlen(request->role));
    for (uint32_t m = 0; m < request->n_messages; ++m) {
        const struct rung_message *message = &request->messages[m];
        const char *role = llm_message_role(message->role);
        add(&sha, role, strlen(role));
        for (uint32_t p = 0; p < message->n_parts; ++p)
            if (message->parts[p].kind == RUNG_PART_TEXT)
                add(&sha, message->parts[p].text.ptr, message->parts[p].text.len);
    }
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256Final(digest, &sha);
    for (size_t i = 0; i < sizeof digest; ++i) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[LLM_SHA256_HEX - 1] = 0;
}
