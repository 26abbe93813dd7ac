/* quant_k.c - decode the types with blocks of 256 values.
 *
 * A block has one or two f16 scales and a small integer scale for each sub-block. A product of the
 * two and a value's integer has at most 24 significant bits, so it is exact in f32, and the only
 * rounding is that of subtracting a sub-block's minimum, whatever the order of the products. */
#include "weights/quant_internal.h"

/* Q2_K: u8 scales[16], u8 qs[64], f16 d, f16 dmin. A scale's low nibble multiplies d, its high
 * nibble dmin. Each half of the block takes 32 bytes, whose four pairs of bits are four runs of 32
 * values. */
void quant_decode_q2_k(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_SUPER; n -= QUANT_SUPER, in += Q2_K_BYTES) {
        float d = quant_half(in + 80), dmin = quant_half(in + 82);
        for (unsigned s = 0; s < 16; s++) {
            const unsigned char *q = in + 16 + s / 8 * 32 + s % 2 * 16;
            float scale = d * (float)(in[s] & 15), min = dmin * (float)(in[s] >> 4);
            for (unsigned i = 0; i < 16; i++)
                *out++ = scale * (float)(q[i] >> (s % 8 / 2 * 2) & 3) - min;
        }
    }
}

/* Q3_K: u8 hmask[32], u8 qs[64], u8 scales[12], f16 d. The low two bits lie as in Q2_K; bit r of
 * hmask, for run r of 32 values, is the third, and values are centred on 4. Of a sub-block's 6-bit
 * scale, centred on 32, the low nibbles are in scales[0..7] and pairs of high bits in 8..11. */
void quant_decode_q3_k(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_SUPER; n -= QUANT_SUPER, in += Q3_K_BYTES) {
        const unsigned char *scales = in + 96;
        float d = quant_half(in + 108);
        for (unsigned s = 0; s < 16; s++) {
            const unsigned char *high = in + s % 2 * 16, *q = in + 32 + s / 8 * 32 + s % 2 * 16;
            int bits = (scales[s % 8] >> (s / 8 * 4) & 15) | (scales[8 + s % 4] >> (s / 4 * 2) & 3)
                                                                 << 4;
            float scale = d * (float)(bits - 32);
            for (unsigned i = 0; i < 16; i++) {
                int v = (q[i] >> (s % 8 / 2 * 2) & 3) | (high[i] >> (s / 2) & 1) << 2;
                *out++ = scale * (float)(v - 4);
            }
        }
    }
}

/* Unpack the 6-bit scale and minimum of sub-block s from the 12 bytes of a Q4_K or Q5_K block. */
static void quant_k_scales(unsigned *scale, unsigned *min, const unsigned char *p, unsigned s)
{
    if (s < 4) {
        *scale = p[s] & 63u;
        *min = p[s + 4] & 63u;
    } else {
        *scale = (p[s + 4] & 15u) | (p[s - 4] & 0xc0u) >> 2;
        *min = (p[s + 4] & 0xf0u) >> 4 | (p[s] & 0xc0u) >> 2;
    }
}

/* Q4_K: f16 d, f16 dmin, u8 scales[12], u8 qs[128]. 32 bytes hold 64 values: a sub-block in the low
 * nibbles, the next one in the high nibbles. */
void quant_decode_q4_k(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_SUPER; n -= QUANT_SUPER, in += Q4_K_BYTES) {
        float d = quant_half(in), dmin = quant_half(in + 2);
        for (unsigned s = 0; s < 8; s++) {
            const unsigned char *q = in + 16 + s / 2 * 32;
            unsigned sc, m;
            quant_k_scales(&sc, &m, in + 4, s);
            float scale = d * (float)sc, min = dmin * (float)m;
            for (unsigned i = 0; i < 32; i++)
                *out++ = scale * (float)(q[i] >> (s % 2 * 4) & 15) - min;
        }
    }
}

/* Q5_K: f16 d, f16 dmin, u8 scales[12], u8 qh[32], u8 qs[128]: as Q4_K, with the fifth bit of
 * sub-block s in bit s of qh. */
void quant_decode_q5_k(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_SUPER; n -= QUANT_SUPER, in += Q5_K_BYTES) {
        float d = quant_half(in), dmin = quant_half(in + 2);
        const unsigned char *high = in + 16;
        for (unsigned s = 0; s < 8; s++) {
            const unsigned char *q = in + 48 + s / 2 * 32;
            unsigned sc, m;
            quant_k_scales(&sc, &m, in + 4, s);
            float scale = d * (float)sc, min = dmin * (float)m;
            for (unsigned i = 0; i < 32; i++) {
                int v = (q[i] >> (s % 2 * 4) & 15) | (high[i] >> s & 1) << 4;
                *out++ = scale * (float)v - min;
            }
        }
    }
}

/* Q6_K: u8 ql[128], u8 qh[64], i8 scales[16], f16 d. Each half of the block has 64 bytes of ql,
 * low nibbles first, and 32 of qh, whose pairs of bits go with runs of 32 values; values are
 * centred on 32. */
void quant_decode_q6_k(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_SUPER; n -= QUANT_SUPER, in += Q6_K_BYTES) {
        float d = quant_half(in + 208);
        for (unsigned s = 0; s < 16; s++) {
            unsigned half = s / 8, run = s % 8 / 2, odd = s % 2 * 16;
            const unsigned char *low = in + half * 64 + run % 2 * 32 + odd;
            const unsigned char *high = in + 128 + half * 32 + odd;
            float scale = d * (float)(int8_t)in[192 + s];
            for (unsigned i = 0; i < 16; i++) {
                int v = (low[i] >> (run / 2 * 4) & 15) | (high[i] >> (run * 2) & 3) << 4;
                *out++ = scale * (float)(v - 32);
            }
        }
    }
}

/* IQ4_XS: f16 d, u16 high bits of the scales, u8 their low nibbles[4], u8 qs[128]. Each 32 values
 * have a 6-bit scale centred on 32; values 16..31 are high nibbles. */
void quant_decode_iq4_xs(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_SUPER; n -= QUANT_SUPER, in += IQ4_XS_BYTES) {
        float d = quant_half(in);
        unsigned high = quant_get16(in + 2);
        for (unsigned s = 0; s < 8; s++) {
            const unsigned char *q = in + 8 + s * 16;
            int bits = (in[4 + s / 2] >> (s % 2 * 4) & 15) | (int)(high >> (s * 2) & 3) << 4;
            float scale = d * (float)(bits - 32);
            for (unsigned i = 0; i < 32; i++)
                *out++ = scale * (float)quant_iq4_levels[q[i % 16] >> (i / 16 * 4) & 15];
        }
    }
}
