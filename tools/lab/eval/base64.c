#include "tools/lab/eval/base64.h"

void base64_write(FILE *to, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0U) |
                     (left > 2 ? p[i + 2] : 0U);
        const char four[] = { digits[v >> 18], digits[v >> 12 & 63],
                              left > 1 ? digits[v >> 6 & 63] : '=',
                              left > 2 ? digits[v & 63] : '=' };
        fwrite(four, 1, sizeof(four), to);
    }
}
