#include "kernels/sys/crc.h"

#include <zlib.h>

uint32_t crc_add(uint32_t crc, const void *p, size_t n)
{
    const unsigned char *at = p;
    while (n) {
        size_t step = n < 1u << 30 ? n : 1u << 30; /* zlib counts in 32 bits */
        crc = (uint32_t)crc32(crc, at, (uInt)step);
        at += step;
        n -= step;
    }
    return crc;
}
