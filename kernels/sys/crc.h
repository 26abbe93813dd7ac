/* crc.h - CRC-32 as zlib, gzip and PNG compute it. */
#ifndef KERNELS_SYS_CRC_H
#define KERNELS_SYS_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Return the CRC-32 of the bytes before, crc, continued with p[n]; crc is 0 at the start. */
uint32_t crc_add(uint32_t crc, const void *p, size_t n);

#endif
