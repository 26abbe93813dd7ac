/* quant.c - any part of a tensor as floats, and the types that are written. The blocks of the other
 * types are read as the kernels read them: kernels/blocks.h has the meaning of their bits. */
#include <math.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "weights/quant.h"
#include "weights/weights.h"

enum { BLOCK = 32, RUN = 256, Q8_BYTES = 34, Q4_BYTES = 18 };

bool quant_panels(enum ptype *out, int type)
{
    static const struct {
        int from;
        enum ptype to;
    } types[] = {
        { W_F32, P_F32 },   { W_F16, P_F32 },       { W_BF16, P_BF16 },     { W_Q8_0, P_Q8 },
        { W_Q4_0, P_Q4 },   { W_Q4_1, P_Q4_1 },     { W_Q5_0, P_Q5_0 },     { W_Q5_1, P_Q5_1 },
        { W_Q2_K, P_Q2_K }, { W_Q3_K, P_Q3_K },     { W_Q4_K, P_Q4_K },     { W_Q5_K, P_Q5_K },
        { W_Q6_K, P_Q6_K }, { W_IQ4_NL, P_IQ4_NL }, { W_IQ4_XS, P_IQ4_XS },
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].from == type) {
            *out = types[i].to;
            return true;
        }
    return false;
}

bool quant_known(int type)
{
    enum ptype packed;
    return type == W_F64 || quant_panels(&packed, type);
}

static uint16_t quant_get16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static void quant_put16(unsigned char *p, uint16_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

/* Decode n values in blocks. Runs of them become the rows of a panel. */
static void decode_blocks(float *out, enum ptype type, const unsigned char *in, size_t n)
{
    enum { MOST = RUN / (2 * GROUP) * 1088 }; /* a panel of Q8, the largest */
    _Alignas(64) unsigned char panel[MOST];
    while (n) {
        size_t cols = n < RUN ? n : RUN, rows = n / cols < PANEL ? n / cols : PANEL, all;
        struct panels w = { .type = type, .rows = rows, .cols = cols, .data = panel };
        panels_bytes(&w.panel_bytes, &all, type, rows, cols);
        panels_pack(panel, type, in, rows, cols, 0);
        for (size_t r = 0; r < rows; r++, out += cols)
            panels_row(out, &w, r);
        in += panels_raw(type, rows * cols);
        n -= rows * cols;
    }
}

void quant_decode(float *out, int type, const void *in, size_t n)
{
    const unsigned char *p = in;
    enum ptype packed;
    double v;
    if (type == W_F32 && n)
        memcpy(out, in, n * sizeof(*out));
    else if (type == W_F16)
        for (size_t i = 0; i < n; i++)
            out[i] = f32_from_f16(quant_get16(p + 2 * i));
    else if (type == W_BF16)
        for (size_t i = 0; i < n; i++)
            out[i] = f32_from_bf16(quant_get16(p + 2 * i));
    else if (type == W_F64)
        for (size_t i = 0; i < n; i++) {
            memcpy(&v, p + 8 * i, sizeof(v));
            out[i] = (float)v;
        }
    else if (quant_panels(&packed, type))
        decode_blocks(out, packed, p, n);
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

/* Q8_0: f16 d, i8 q[32]. The scale d is max |x| / 127; values are divided by the unrounded scale,
 * as in ggml. */
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

/* Return v + 8.5 truncated to 0..15; NaN gives 0. */
static unsigned nibble_of(float v)
{
    v += 8.5f;
    if (!(v > 0))
        return 0;
    return v < 15 ? (unsigned)v : 15;
}

/* Q4_0: f16 d, u8 qs[16], whose byte i has value i in its low nibble and value i + 16 in its high
 * one. m is the value of largest magnitude with its sign and d = m / -8, which is rounded
 * afterwards, as in ggml. */
static void encode_q4_0(unsigned char *out, const float *x, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, out += Q4_BYTES) {
        float m = 0;
        for (size_t i = 0; i < BLOCK; i++)
            m = fabsf(x[i]) > fabsf(m) ? x[i] : m;
        float d = m / -8.0f, id = d != 0 ? 1.0f / d : 0.0f;
        quant_put16(out, f16_from_f32(d));
        for (size_t i = 0; i < BLOCK / 2; i++)
            out[2 + i] =
                (unsigned char)(nibble_of(x[i] * id) | nibble_of(x[i + BLOCK / 2] * id) << 4);
    }
}

void quant_encode(void *out, int type, const float *x, size_t n)
{
    if (type == W_F32 && n)
        memcpy(out, x, n * sizeof(*x));
    else if (type == W_F16 || type == W_BF16)
        for (size_t i = 0; i < n; i++)
            quant_put16((unsigned char *)out + 2 * i,
                        type == W_F16 ? f16_from_f32(x[i]) : bf16_from_f32(x[i]));
    else if (type == W_Q8_0)
        encode_q8_0(out, x, n);
    else if (type == W_Q4_0)
        encode_q4_0(out, x, n);
}

int quant_refuse(const char *path, const struct tensor *t, struct err *err)
{
    const char *name = wtype_name(t->type);
    return err_set(
        err, ERR_FORMAT,
        "%s: tensor %s: expected F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, IQ4_NL or "
        "IQ4_XS, found %s; take a Q4_K_M of this model, or make a Q8_0 from the original "
        "with mizzle convert --type q8_0",
        path, t->name, name ? name : "an unknown type");
}
