/* quant_k_encode.c - write blocks of Q4_K, Q5_K and Q6_K. quant_fit.c chooses the numbers; the
 * layouts are described in quant_k.c. */
#include <string.h>

#include "weights/quant_fit_internal.h"

/* Solve a block and write its integers, counted from the lowest, to q[256]. */
static void encode_solve(struct quant_super *b, unsigned char *q, const float *x, const float *w)
{
    float wx[QUANT_SUPER], one[QUANT_SUPER];
    size_t n = QUANT_SUPER / b->subs;
    for (size_t i = 0; !w && i < QUANT_SUPER; i++)
        one[i] = 1;
    w = w ? w : one;
    for (size_t j = 0; j < b->subs; j++)
        quant_sub_init(&b->sub[j], x + j * n, w + j * n, wx + j * n, n);
    quant_super_solve(b);
    for (size_t j = 0; j < b->subs; j++)
        quant_sub_write(q + j * n, &b->sub[j], (float)b->scale[j] * b->d,
                        (float)b->min[j] * b->dmin, b->range);
}

/* Solve a block of Q4_K or Q5_K and write what both begin with: d, dmin and twelve bytes of scales
 * and minimums. */
static void encode_begin(unsigned char *out, unsigned char *q, const float *x, const float *w,
                         float hi)
{
    struct quant_super b = {
        .subs = 8, .range = { 0, hi }, .has_min = true, .scale_lo = 0, .scale_hi = 63
    };
    unsigned char *p = out + 4;
    encode_solve(&b, q, x, w);
    quant_put16(out, f16_from_f32(b.d));
    quant_put16(out + 2, f16_from_f32(b.dmin));
    for (size_t j = 0; j < 4; j++) {
        p[j] = (unsigned char)(b.scale[j] | b.scale[j + 4] >> 4 << 6);
        p[j + 4] = (unsigned char)(b.min[j] | b.min[j + 4] >> 4 << 6);
        p[j + 8] = (unsigned char)((b.scale[j + 4] & 15) | (b.min[j + 4] & 15) << 4);
    }
}

/* Write the low four bits of q[256], 64 values in 32 bytes. */
static void encode_nibbles(unsigned char *out, const unsigned char *q)
{
    for (size_t i = 0; i < QUANT_SUPER / 2; i++) {
        const unsigned char *v = q + i / 32 * 64 + i % 32;
        out[i] = (unsigned char)((v[0] & 15) | (v[32] & 15) << 4);
    }
}

void quant_encode_q4_k(unsigned char *out, const float *x, const float *w, size_t n)
{
    unsigned char q[QUANT_SUPER];
    for (size_t i = 0; i + QUANT_SUPER <= n; i += QUANT_SUPER, out += Q4_K_BYTES) {
        encode_begin(out, q, x + i, w ? w + i : NULL, 15);
        encode_nibbles(out + 16, q);
    }
}

void quant_encode_q5_k(unsigned char *out, const float *x, const float *w, size_t n)
{
    unsigned char q[QUANT_SUPER];
    for (size_t i = 0; i + QUANT_SUPER <= n; i += QUANT_SUPER, out += Q5_K_BYTES) {
        encode_begin(out, q, x + i, w ? w + i : NULL, 31);
        memset(out + 16, 0, 32);
        for (size_t k = 0; k < QUANT_SUPER; k++)
            out[16 + k % 32] = (unsigned char)(out[16 + k % 32] | q[k] >> 4 << (k / 32));
        encode_nibbles(out + 48, q);
    }
}

void quant_encode_q6_k(unsigned char *out, const float *x, const float *w, size_t n)
{
    unsigned char q[QUANT_SUPER];
    for (size_t i = 0; i + QUANT_SUPER <= n; i += QUANT_SUPER, out += Q6_K_BYTES) {
        struct quant_super b = {
            .subs = 16, .range = { -32, 31 }, .scale_lo = -128, .scale_hi = 127
        };
        encode_solve(&b, q, x + i, w ? w + i : NULL);
        for (size_t k = 0; k < 64; k++) {
            const unsigned char *v = q + k / 32 * 128 + k % 32;
            unsigned char *low = out + k / 32 * 64 + k % 32;
            low[0] = (unsigned char)((v[0] & 15) | (v[64] & 15) << 4);
            low[32] = (unsigned char)((v[32] & 15) | (v[96] & 15) << 4);
            out[128 + k] =
                (unsigned char)(v[0] >> 4 | v[32] >> 4 << 2 | v[64] >> 4 << 4 | v[96] >> 4 << 6);
        }
        for (size_t j = 0; j < 16; j++)
            out[192 + j] = (unsigned char)b.scale[j];
        quant_put16(out + 208, f16_from_f32(b.d));
    }
}
