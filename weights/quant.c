#include <math.h>
#include <string.h>

#include "kernels/math.h"
#include "weights/quant.h"
#include "weights/weights.h"

enum { BLOCK = 32, Q8_BYTES = 34, Q4_BYTES = 18 };

static uint16_t quant_get16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static void quant_put16(unsigned char *p, uint16_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
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
static void encode_q8_0(unsigned char *out, const float *x, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, out += Q8_BYTES) {
        float amax = 0;
        for (size_t i = 0; i < BLOCK; i++)
            amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
        float d = amax / 127.0f, id = d != 0 ? 1.0f / d : 0.0f;
        quant_put16(out, f16_from_f32(d));
        for (size_t i = 0; i < BLOCK; i++)
            out[2 + i] = (unsigned char)round_away(x[i] * id);
    }
}

/* Return x as a nibble: truncated after adding 8.5, at most 15. */
static unsigned quant_nibble(float x)
{
    float v = x + 8.5f;
    if (!(v > 0))
        return 0;
    return v < 15 ? (unsigned)v : 15;
}

/* The scale is m / -8, where m is the value of largest magnitude with its sign. */
static void encode_q4_0(unsigned char *out, const float *x, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, out += Q4_BYTES) {
        float max = 0;
        for (size_t i = 0; i < BLOCK; i++)
            max = fabsf(x[i]) > fabsf(max) ? x[i] : max;
        float d = max / -8.0f, id = d != 0 ? 1.0f / d : 0.0f;
        quant_put16(out, f16_from_f32(d));
        for (size_t i = 0; i < BLOCK / 2; i++)
            out[2 + i] =
                (unsigned char)(quant_nibble(x[i] * id) | quant_nibble(x[i + BLOCK / 2] * id) << 4);
    }
}

void quant_encode(void *to, int type, const float *x, size_t n)
{
    unsigned char *out = to;
    switch (type) {
    case W_F32:
        if (n)
            memcpy(out, x, n * sizeof(*x));
        break;
    case W_F16:
        for (size_t i = 0; i < n; i++)
            quant_put16(out + 2 * i, f16_from_f32(x[i]));
        break;
    case W_BF16:
        for (size_t i = 0; i < n; i++)
            quant_put16(out + 2 * i, bf16_from_f32(x[i]));
        break;
    case W_Q8_0:
        encode_q8_0(out, x, n);
        break;
    case W_Q4_0:
        encode_q4_0(out, x, n);
        break;
    default:
        break;
    }
}

static void decode_f64(float *out, const unsigned char *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v;
        memcpy(&v, in + 8 * i, sizeof(v));
        out[i] = (float)v;
    }
}

static void decode_q8_0(float *out, const unsigned char *in, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, out += BLOCK, in += Q8_BYTES) {
        float d = f32_from_f16(quant_get16(in));
        for (size_t i = 0; i < BLOCK; i++)
            out[i] = (float)(int8_t)in[2 + i] * d;
    }
}

static void decode_q4_0(float *out, const unsigned char *in, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, out += BLOCK, in += Q4_BYTES) {
        float d = f32_from_f16(quant_get16(in));
        for (size_t i = 0; i < BLOCK / 2; i++) {
            out[i] = (float)((in[2 + i] & 15) - 8) * d;
            out[i + BLOCK / 2] = (float)((in[2 + i] >> 4) - 8) * d;
        }
    }
}

bool quant_known(int type)
{
    return type == W_F32 || type == W_F16 || type == W_BF16 || type == W_F64 || type == W_Q8_0 ||
           type == W_Q4_0;
}

void quant_decode(float *out, int type, const void *from, size_t n)
{
    const unsigned char *in = from;
    switch (type) {
    case W_F32:
        if (n)
            memcpy(out, in, n * sizeof(*out));
        break;
    case W_F16:
        for (size_t i = 0; i < n; i++)
            out[i] = f32_from_f16(quant_get16(in + 2 * i));
        break;
    case W_BF16:
        for (size_t i = 0; i < n; i++)
            out[i] = f32_from_bf16(quant_get16(in + 2 * i));
        break;
    case W_F64:
        decode_f64(out, in, n);
        break;
    case W_Q8_0:
        decode_q8_0(out, in, n);
        break;
    case W_Q4_0:
        decode_q4_0(out, in, n);
        break;
    default:
        break;
    }
}
