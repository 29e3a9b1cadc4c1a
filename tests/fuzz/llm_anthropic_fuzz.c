/* libFuzzer: any bytes as replies and streams of Anthropic's Messages. */
#include "../../plugins/llm/anthropic/reply.h"
#include "provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct llm_dialect dialect = {
        .read = anthropic_read, .event = anthropic_event, .end = anthropic_end};
    fuzz_dialect(&dialect, NULL, data, size);
    return 0;
}
