#include "base/philox.h"

#include <string.h>

/* Constants of the paper's Philox-4x32. */
enum { ROUNDS = 10 };
static const uint32_t M0 = 0xD2511F53u, M1 = 0xCD9E8D57u, W0 = 0x9E3779B9u, W1 = 0xBB67AE85u;

void rung_philox4(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t p0 = (uint64_t)M0 * c0, p1 = (uint64_t)M1 * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += W0;
        k1 += W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void rung_philox_words(uint64_t seed, uint64_t stream, uint64_t first, uint32_t *out, uint64_t n)
{
    uint64_t i = 0;
    while (i < n) {
        uint32_t block[4];
        uint64_t at = first + i, skip = at % 4;
        rung_philox4(seed, stream, at / 4, block);
        uint64_t take = 4 - skip < n - i ? 4 - skip : n - i;
        memcpy(out + i, block + skip, take * sizeof *out);
        i += take;
    }
}
