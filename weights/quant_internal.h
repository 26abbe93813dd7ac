/* quant_internal.h - what the files quant*.c share: the block types one by one.
 *
 * Decoders write n values and encoders read n values, where n is a multiple of the block: 32 values
 * in quant_32.c, 256 in quant_k.c. Layouts are those of ggml-common.h; weights/README.md has them
 * in words. All numbers are little-endian. */
#ifndef WEIGHTS_QUANT_INTERNAL_H
#define WEIGHTS_QUANT_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/math.h"

enum {
    QUANT_BLOCK = 32,
    QUANT_SUPER = 256, /* values of a K-quant's block, which has sub-blocks of 16 or 32 */
    Q4_0_BYTES = 18,
    Q4_1_BYTES = 20,
    Q5_0_BYTES = 22,
    Q5_1_BYTES = 24,
    Q8_0_BYTES = 34,
    IQ4_NL_BYTES = 18,
    Q2_K_BYTES = 84,
    Q3_K_BYTES = 110,
    Q4_K_BYTES = 144,
    Q5_K_BYTES = 176,
    Q6_K_BYTES = 210,
    IQ4_XS_BYTES = 136
};

/* The sixteen levels of IQ4_NL and IQ4_XS. */
extern const int8_t quant_iq4_levels[16];

static inline uint16_t quant_get16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline void quant_put16(unsigned char *p, uint16_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static inline float quant_half(const unsigned char *p)
{
    return f32_from_f16(quant_get16(p));
}

void quant_decode_q4_0(float *out, const unsigned char *in, size_t n);
void quant_decode_q4_1(float *out, const unsigned char *in, size_t n);
void quant_decode_q5_0(float *out, const unsigned char *in, size_t n);
void quant_decode_q5_1(float *out, const unsigned char *in, size_t n);
void quant_decode_q8_0(float *out, const unsigned char *in, size_t n);
void quant_decode_iq4_nl(float *out, const unsigned char *in, size_t n);
void quant_decode_q2_k(float *out, const unsigned char *in, size_t n);
void quant_decode_q3_k(float *out, const unsigned char *in, size_t n);
void quant_decode_q4_k(float *out, const unsigned char *in, size_t n);
void quant_decode_q5_k(float *out, const unsigned char *in, size_t n);
void quant_decode_q6_k(float *out, const unsigned char *in, size_t n);
void quant_decode_iq4_xs(float *out, const unsigned char *in, size_t n);

void quant_encode_q4_0(unsigned char *out, const float *x, size_t n);
void quant_encode_q8_0(unsigned char *out, const float *x, size_t n);

#endif
