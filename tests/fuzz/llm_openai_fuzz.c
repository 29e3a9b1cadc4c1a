/* libFuzzer: any bytes as replies and streams of OpenAI Chat Completions. */
#include "../../plugins/llm/openai/reply.h"
#include "provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct llm_dialect dialect = {
        .read = openai_read, .event = openai_event, .end = openai_end};
    fuzz_dialect(&dialect, "reasoning_details", data, size);
    return 0;
}
