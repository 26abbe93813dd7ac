#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/math.h"
#include "model/model.h"
#include "model/train/random.h"

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

/* A maker of random weights. */
struct random_maker {
    struct model_maker maker; /* first */
    unsigned type;            /* enum ptype or a mix */
    size_t layers;
    uint64_t seed;
};

/* Return the type that llama.cpp's quantize would give this matrix. */
static enum ptype random_type(const struct model_maker *m, const char *name, size_t cols)
{
    const struct random_maker *r = (const struct random_maker *)m;
    enum ptype p = (enum ptype)r->type;
    size_t layer = 0;
    if (r->type == MODEL_Q4_K_M) {
        bool more = sscanf(name, "blk.%zu.", &layer) != 1;
        if (!more && (strstr(name, "attn_v") || strstr(name, "ffn_down")))
            more = random_more_bits(layer, r->layers);
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

/* Fill out[panels_raw(type, cols)] with row `row` of uniform weights that have about the spread of
 * a trained matrix: values in [-s, s), s = 1.7 / sqrt(cols). */
static void random_row(unsigned char *out, enum ptype type, size_t cols, uint64_t seed, size_t row)
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

static size_t random_rows(const struct model_maker *m, unsigned char *out, const struct panels *w,
                          size_t at, size_t p)
{
    uint64_t seed = ((const struct random_maker *)m)->seed ^ rand_u64(at, 1);
    size_t row_bytes = panels_raw(w->type, w->cols), n = w->rows - p * PANEL;
    n = n < PANEL ? n : PANEL;
    for (size_t r = 0; r < n; r++)
        random_row(out + r * row_bytes, w->type, w->cols, seed, p * PANEL + r);
    return n;
}

const char *model_random_type(unsigned type)
{
    return type == MODEL_Q4_K_M ? "q4_k_m" : panels_type_name((enum ptype)type);
}

int model_random(struct model **out, const struct model_config *config, unsigned type,
                 const struct kernels *k, struct pool *pool, uint64_t seed, struct err *err)
{
    const struct random_maker r = { { random_type, random_rows }, type, config->layers, seed };
    return model_make(out, config, &r.maker, k, pool, err);
}

int model_random_size(size_t *bytes, const struct model_config *config, unsigned type,
                      struct err *err)
{
    const struct random_maker r = { { random_type, NULL }, type, config->layers, 0 };
    struct model *m;
    int rc = model_make(&m, config, &r.maker, NULL, NULL, err);
    *bytes = rc ? 0 : m->bytes;
    model_close(m);
    return rc;
}
