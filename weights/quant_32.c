/* quant_32.c - the types with blocks of 32 values: decode, and encode Q8_0 and Q4_0 with the bits
 * of ggml's reference. In all of them byte i of qs has value i in its low nibble and value i + 16
 * in its high one, and bit i of the fifth bits belongs to value i. */
#include <math.h>

#include "weights/quant_internal.h"

const int8_t quant_iq4_levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113 };

static unsigned quant_get32(const unsigned char *p)
{
    return quant_get16(p) | (unsigned)quant_get16(p + 2) << 16;
}

/* Return value i of the nibbles qs[16]. */
static int quant_nibble_at(const unsigned char *qs, unsigned i)
{
    return qs[i % 16] >> (i / 16 * 4) & 15;
}

/* Q8_0: f16 d, i8 q[32]; value = q * d. */
void quant_decode_q8_0(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_BLOCK; n -= QUANT_BLOCK, out += QUANT_BLOCK, in += Q8_0_BYTES) {
        float d = quant_half(in);
        for (unsigned i = 0; i < QUANT_BLOCK; i++)
            out[i] = (float)(int8_t)in[2 + i] * d;
    }
}

/* Q4_0: f16 d, u8 qs[16]; value = (q - 8) * d. */
void quant_decode_q4_0(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_BLOCK; n -= QUANT_BLOCK, out += QUANT_BLOCK, in += Q4_0_BYTES) {
        float d = quant_half(in);
        for (unsigned i = 0; i < QUANT_BLOCK; i++)
            out[i] = (float)(quant_nibble_at(in + 2, i) - 8) * d;
    }
}

/* Q4_1: f16 d, f16 m, u8 qs[16]; value = q * d + m. */
void quant_decode_q4_1(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_BLOCK; n -= QUANT_BLOCK, out += QUANT_BLOCK, in += Q4_1_BYTES) {
        float d = quant_half(in), m = quant_half(in + 2);
        for (unsigned i = 0; i < QUANT_BLOCK; i++)
            out[i] = (float)quant_nibble_at(in + 4, i) * d + m;
    }
}

/* Q5_0: f16 d, u32 fifth bits, u8 qs[16]; value = (q - 16) * d. */
void quant_decode_q5_0(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_BLOCK; n -= QUANT_BLOCK, out += QUANT_BLOCK, in += Q5_0_BYTES) {
        float d = quant_half(in);
        unsigned fifth = quant_get32(in + 2);
        for (unsigned i = 0; i < QUANT_BLOCK; i++) {
            int q = quant_nibble_at(in + 6, i) | (int)(fifth >> i & 1) << 4;
            out[i] = (float)(q - 16) * d;
        }
    }
}

/* Q5_1: f16 d, f16 m, u32 fifth bits, u8 qs[16]; value = q * d + m. */
void quant_decode_q5_1(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_BLOCK; n -= QUANT_BLOCK, out += QUANT_BLOCK, in += Q5_1_BYTES) {
        float d = quant_half(in), m = quant_half(in + 2);
        unsigned fifth = quant_get32(in + 4);
        for (unsigned i = 0; i < QUANT_BLOCK; i++) {
            int q = quant_nibble_at(in + 8, i) | (int)(fifth >> i & 1) << 4;
            out[i] = (float)q * d + m;
        }
    }
}

/* IQ4_NL: f16 d, u8 qs[16]; value = level of q * d. */
void quant_decode_iq4_nl(float *out, const unsigned char *in, size_t n)
{
    for (; n >= QUANT_BLOCK; n -= QUANT_BLOCK, out += QUANT_BLOCK, in += IQ4_NL_BYTES) {
        float d = quant_half(in);
        for (unsigned i = 0; i < QUANT_BLOCK; i++)
            out[i] = (float)quant_iq4_levels[quant_nibble_at(in + 2, i)] * d;
    }
}

/* Round to the nearest integer, halves away from zero, as roundf does. Adding 0.5 and truncating
 * would be wrong for 0.49999997, so the fraction decides; x - whole is exact. NaN gives 0. */
static int round_away(float x)
{
    if (!(x > -2e9f && x < 2e9f))
        return 0;
    int whole = (int)x;
    float rest = x - (float)whole;
    if (rest >= 0.5f)
        return whole + 1;
    return rest <= -0.5f ? whole - 1 : whole;
}

/* The scale is max |x| / 127; values are divided by the unrounded scale, as in ggml. */
void quant_encode_q8_0(unsigned char *out, const float *x, size_t n)
{
    for (; n >= QUANT_BLOCK; n -= QUANT_BLOCK, x += QUANT_BLOCK, out += Q8_0_BYTES) {
        float amax = 0;
        for (size_t i = 0; i < QUANT_BLOCK; i++)
            amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
        float d = amax / 127.0f, id = d != 0 ? 1.0f / d : 0.0f;
        quant_put16(out, f16_from_f32(d));
        for (size_t i = 0; i < QUANT_BLOCK; i++)
            out[2 + i] = (unsigned char)round_away(x[i] * id);
    }
}

/* Return v + 8.5 truncated to 0..15; NaN gives 0. */
static unsigned nibble_of(float v)
{
    v += 8.5f;
    if (!(v > 0))
        return 0;
    return v < 15 ? (unsigned)v : 15;
}

/* m is the value of largest magnitude with its sign and d = m / -8, which is rounded afterwards, as
 * in ggml. */
void quant_encode_q4_0(unsigned char *out, const float *x, size_t n)
{
    for (; n >= QUANT_BLOCK; n -= QUANT_BLOCK, x += QUANT_BLOCK, out += Q4_0_BYTES) {
        float m = 0;
        for (size_t i = 0; i < QUANT_BLOCK; i++)
            m = fabsf(x[i]) > fabsf(m) ? x[i] : m;
        float d = m / -8.0f, id = d != 0 ? 1.0f / d : 0.0f;
        quant_put16(out, f16_from_f32(d));
        for (size_t i = 0; i < QUANT_BLOCK / 2; i++)
            out[2 + i] =
                (unsigned char)(nibble_of(x[i] * id) | nibble_of(x[i + QUANT_BLOCK / 2] * id) << 4);
    }
}
