/* libFuzzer: any bytes as replies and streams of OpenAI's Responses. */
#include "../../plugins/llm/openai_responses/reply.h"
#include "provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct llm_dialect dialect = {
        .read = responses_read, .event = responses_event, .end = NULL};
    fuzz_dialect(&dialect, NULL, data, size);
    return 0;
}
