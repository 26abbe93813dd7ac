#include "kernels/sys/sha256.h"

#include <stdio.h>
#include <string.h>

static const uint32_t sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* Add one block to the state (section 6.2.2). */
static void sha256_block(uint32_t h[8], const unsigned char p[SHA256_BLOCK])
{
    uint32_t w[64], v[8];
    for (size_t t = 0; t < 16; t++)
        w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 |
               (uint32_t)p[4 * t + 2] << 8 | p[4 * t + 3];
    for (size_t t = 16; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        uint32_t s0 = rotr(a, 7) ^ rotr(a, 18) ^ a >> 3, s1 = rotr(b, 17) ^ rotr(b, 19) ^ b >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    memcpy(v, h, sizeof(v));
    for (size_t t = 0; t < 64; t++) {
        uint32_t a = v[0], e = v[4];
        uint32_t s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
        uint32_t s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
        uint32_t t1 = v[7] + s1 + ((e & v[5]) ^ (~e & v[6])) + sha256_k[t] + w[t];
        uint32_t t2 = s0 + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof(*v));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (size_t i = 0; i < 8; i++)
        h[i] += v[i];
}

void sha256_begin(struct sha256 *s)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(s->h, start, sizeof(start));
    s->bytes = 0;
}

void sha256_add(struct sha256 *s, const void *p, size_t n)
{
    const unsigned char *at = p;
    size_t have = (size_t)(s->bytes % SHA256_BLOCK);
    s->bytes += n;
    while (n) {
        size_t step = SHA256_BLOCK - have < n ? SHA256_BLOCK - have : n;
        memcpy(s->block + have, at, step);
        at += step;
        n -= step;
        have += step;
        if (have == SHA256_BLOCK) {
            sha256_block(s->h, s->block);
            have = 0;
        }
    }
}

void sha256_end(unsigned char out[SHA256_BYTES], struct sha256 *s)
{
    unsigned char bits[8];
    for (unsigned i = 0; i < 8; i++)
        bits[i] = (unsigned char)(s->bytes * 8 >> (56 - 8 * i));
    sha256_add(s, "\x80", 1);
    while (s->bytes % SHA256_BLOCK != SHA256_BLOCK - sizeof(bits))
        sha256_add(s, "", 1);
    sha256_add(s, bits, sizeof(bits));
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_text(char out[SHA256_HEX], const unsigned char hash[SHA256_BYTES])
{
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

void sha256_hex(char out[SHA256_HEX], const void *p, size_t n)
{
    struct sha256 s;
    unsigned char hash[SHA256_BYTES];
    sha256_begin(&s);
    sha256_add(&s, p, n);
    sha256_end(hash, &s);
    sha256_text(out, hash);
}

bool sha256_file(char out[SHA256_HEX], const char *path)
{
    struct sha256 s;
    unsigned char bytes[4096], hash[SHA256_BYTES];
    FILE *f = fopen(path, "rb");
    out[0] = 0;
    if (!f)
        return false;
    sha256_begin(&s);
    for (size_t n; (n = fread(bytes, 1, sizeof(bytes), f)) > 0;)
        sha256_add(&s, bytes, n);
    bool whole = !ferror(f);
    fclose(f);
    sha256_end(hash, &s);
    if (whole)
        sha256_text(out, hash);
    return whole;
}
