/* quant.c - dispatch by type, and the types without blocks. */
#include <string.h>

#include "kernels/sys/base.h"
#include "weights/quant.h"
#include "weights/quant_internal.h"
#include "weights/weights.h"

static void decode_f32(float *out, const unsigned char *in, size_t n)
{
    memcpy(out, in, n * sizeof(*out));
}

static void decode_f16(float *out, const unsigned char *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = quant_half(in + 2 * i);
}

static void decode_bf16(float *out, const unsigned char *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = f32_from_bf16(quant_get16(in + 2 * i));
}

static void decode_f64(float *out, const unsigned char *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v;
        memcpy(&v, in + 8 * i, sizeof(v));
        out[i] = (float)v;
    }
}

static void encode_f32(unsigned char *out, const float *x, size_t n)
{
    memcpy(out, x, n * sizeof(*x));
}

static void encode_f16(unsigned char *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        quant_put16(out + 2 * i, f16_from_f32(x[i]));
}

static void encode_bf16(unsigned char *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        quant_put16(out + 2 * i, bf16_from_f32(x[i]));
}

static const struct codec {
    int type;
    void (*decode)(float *out, const unsigned char *in, size_t n);
    /* NULL: not written */
    void (*encode)(unsigned char *out, const float *x, size_t n);
} codecs[] = {
    { W_F32, decode_f32, encode_f32 },
    { W_F16, decode_f16, encode_f16 },
    { W_BF16, decode_bf16, encode_bf16 },
    { W_F64, decode_f64, NULL },
    { W_Q8_0, quant_decode_q8_0, quant_encode_q8_0 },
    { W_Q4_0, quant_decode_q4_0, quant_encode_q4_0 },
    { W_Q4_1, quant_decode_q4_1, NULL },
    { W_Q5_0, quant_decode_q5_0, NULL },
    { W_Q5_1, quant_decode_q5_1, NULL },
    { W_Q2_K, quant_decode_q2_k, NULL },
    { W_Q3_K, quant_decode_q3_k, NULL },
    { W_Q4_K, quant_decode_q4_k, NULL },
    { W_Q5_K, quant_decode_q5_k, NULL },
    { W_Q6_K, quant_decode_q6_k, NULL },
    { W_IQ4_NL, quant_decode_iq4_nl, NULL },
    { W_IQ4_XS, quant_decode_iq4_xs, NULL },
};

static const struct codec *quant_codec(int type)
{
    for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++)
        if (codecs[i].type == type)
            return &codecs[i];
    return NULL;
}

bool quant_known(int type)
{
    return quant_codec(type) != NULL;
}

void quant_decode(float *out, int type, const void *in, size_t n)
{
    const struct codec *c = quant_codec(type);
    if (c && n)
        c->decode(out, in, n);
}

void quant_encode(void *out, int type, const float *x, size_t n)
{
    const struct codec *c = quant_codec(type);
    if (c && c->encode && n)
        c->encode(out, x, n);
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
