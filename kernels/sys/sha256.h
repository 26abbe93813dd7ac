/* sha256.h - SHA-256, to name the data that a result was made from.
 *
 * Source: FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1 and 6.2. */
#ifndef KERNELS_SYS_SHA256_H
#define KERNELS_SYS_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_HEX = 2 * SHA256_BYTES + 1, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t h[8];
    uint64_t bytes; /* so far; at most 2^61 */
    unsigned char block[SHA256_BLOCK];
};

/* Hash in pieces: begin, add any number of times, end once. */
void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
void sha256_end(unsigned char out[SHA256_BYTES], struct sha256 *s);

/* Write the hash of p[n] as 64 lower-case hexadecimal digits and a terminator. */
void sha256_hex(char out[SHA256_HEX], const void *p, size_t n);
/* Write a finished hash so. */
void sha256_text(char out[SHA256_HEX], const unsigned char hash[SHA256_BYTES]);
/* Do the same for a file. False, with out "": it cannot be read. */
bool sha256_file(char out[SHA256_HEX], const char *path);

#endif
