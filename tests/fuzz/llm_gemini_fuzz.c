/* libFuzzer: any bytes as replies and streams of Gemini's generateContent. */
#include "../../plugins/llm/gemini/reply.h"
#include "provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct llm_dialect dialect = {
        .read = gemini_read, .event = gemini_event, .end = gemini_end};
    fuzz_dialect(&dialect, NULL, data, size);
    return 0;
}
