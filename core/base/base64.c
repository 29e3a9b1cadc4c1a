#include "base/io.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void rung_base64_encode(struct rung_buf *out, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                     (left > 2 ? p[i + 2] : 0);
        char quad[4] = {alphabet[v >> 18], alphabet[v >> 12 & 63],
                        left > 1 ? alphabet[v >> 6 & 63] : '=', left > 2 ? alphabet[v & 63] : '='};
        rung_buf_add(out, quad, 4);
    }
}

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* One group of four; padding is legal only at the end of the text. */
static bool decode_quad(struct rung_buf *out, const char *q, bool last)
{
    size_t pad = last && q[3] == '=' ? (q[2] == '=' ? 2 : 1) : 0;
    uint32_t v = 0;
    for (size_t i = 0; i < 4; i++) {
        int d = i < 4 - pad ? digit(q[i]) : 0;
        if (d < 0)
            return false;
        v = v << 6 | (uint32_t)d;
    }
    if ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff)))
        return false;
    char bytes[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
    rung_buf_add(out, bytes, 3 - pad);
    return true;
}

bool rung_base64_decode(struct rung_buf *out, const char *text, size_t n)
{
    if (n % 4)
        return false;
    for (size_t i = 0; i < n; i += 4)
        if (!decode_quad(out, text + i, i + 4 == n))
            return false;
    return true;
}
