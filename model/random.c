#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/math.h"
#include "model/model.h"
#include "model/random.h"

/* True for the layers in which llama.cpp's mixes spend more bits: the first and the last eighth and
 * every third between. */
static bool random_more_bits(size_t layer, size_t layers)
{
    size_t eighth = layers / 8;
    return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

/* Return the type for rows that are no multiple of 256 columns. */
static enum ptype random_fallback(enum ptype type)
{
    switch (type) {
    case P_Q4_K:
        return P_Q5_0;
    case P_Q5_K:
        return P_Q5_1;
    case P_Q6_K:
        return P_Q8;
    default: /* Q2_K, Q3_K, IQ4_XS */
        return P_IQ4_NL;
    }
}

enum ptype random_type(unsigned type, const char *name, size_t layers, size_t cols)
{
    enum ptype p = (enum ptype)type;
    size_t layer = 0;
    if (type == MODEL_Q4_K_M) {
        bool more = sscanf(name, "blk.%zu.", &layer) != 1;
        if (!more && (strstr(name, "attn_v") || strstr(name, "ffn_down")))
            more = random_more_bits(layer, layers);
        p = more ? P_Q6_K : P_Q4_K;
    }
    return panels_unit(p) == 256 && cols % 256 ? random_fallback(p) : p;
}

/* Where a block holds 16-bit floats, and what they are for values of at most 1: d, and m, which
 * makes the mean 0 (0: the type has none). */
static const struct {
    unsigned char at, at_m;
    float d, m;
} random_scales[P_TYPES] = {
    [P_Q8] = { 0, 0, 1 / 128.0f, 0 },
    [P_Q4] = { 0, 0, 1 / 8.0f, 0 },
    [P_Q4_1] = { 0, 2, 1 / 7.5f, -1 },
    [P_Q5_0] = { 0, 0, 1 / 16.0f, 0 },
    [P_Q5_1] = { 0, 2, 1 / 15.5f, -1 },
    [P_Q2_K] = { 80, 82, 1 / 22.0f, 1.5f / 22 },
    [P_Q3_K] = { 108, 0, 1 / 128.0f, 0 },
    [P_Q4_K] = { 0, 2, 1 / 472.0f, 7.5f / 472 },
    [P_Q5_K] = { 0, 2, 1 / 976.0f, 15.5f / 976 },
    [P_Q6_K] = { 208, 0, 1 / 4096.0f, 0 },
    [P_IQ4_NL] = { 0, 0, 1 / 127.0f, 0 },
    [P_IQ4_XS] = { 0, 0, 1 / 4064.0f, 0 },
};

void random_row(unsigned char *out, enum ptype type, size_t cols, uint64_t seed, size_t row)
{
    float s = 1.7f / sqrtf((float)cols);
    size_t bytes = panels_raw(type, cols), words = bytes / 8 + 1;
    if (type == P_F32 || type == P_BF16) {
        for (size_t i = 0; i < cols; i++) {
            float v = (float)(rand_unit(seed, row * cols + i) * 2 - 1) * s;
            uint16_t h = bf16_from_f32(v);
            memcpy(out + i * (type == P_F32 ? 4 : 2), type == P_F32 ? (void *)&v : &h,
                   type == P_F32 ? 4 : 2);
        }
        return;
    }
    for (size_t i = 0; i < words; i++) {
        uint64_t r = rand_u64(seed, row * words + i);
        memcpy(out + i * 8, &r, bytes - i * 8 < 8 ? bytes - i * 8 : 8);
    }
    size_t block = panels_raw(type, panels_unit(type));
    uint16_t d = f16_from_f32(s * random_scales[type].d),
             m = f16_from_f32(s * random_scales[type].m);
    for (size_t i = 0; i < bytes; i += block) {
        memcpy(out + i + random_scales[type].at, &d, sizeof(d));
        if (m)
            memcpy(out + i + random_scales[type].at_m, &m, sizeof(m));
    }
}
