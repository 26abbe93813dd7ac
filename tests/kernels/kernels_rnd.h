/* kernels_rnd.h - the random inputs of t_kernels.c: numbers, buffers that end or begin on guard
 * pages, matrices and quantised activations. A round's seed gives its inputs. */
#ifndef TESTS_KERNELS_RND_H
#define TESTS_KERNELS_RND_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/blocks.h"
#include "tests/support/guard.h"

enum { MARK = 0x5a };

static uint64_t seed_now, drawn;

/* The character of a round, drawn by begin_round. */
static int at_end, wild; /* which end has the guard page; NaN, inf and denormals among inputs */
static int vast;         /* products: larger than a stretch of tiles.h */
static bool exact;       /* false: the set is compared by tolerance */

static size_t rnd(size_t below)
{
    return (size_t)rand_below(seed_now, drawn++, below);
}

static inline void begin_round(uint64_t seed)
{
    seed_now = seed;
    drawn = 0;
    at_end = (int)rnd(2);
    wild = rnd(4) == 0 && exact;
    vast = seed % 40 == 7;
}

/* Return a size in 1..most, mostly a small one. */
static size_t rnd_size(size_t most)
{
    return 1 + rnd(rnd(2) ? most : most < 20 ? most : 20);
}

static float rnd_f32(void)
{
    static const float odd[] = { NAN,        -NAN,   INFINITY,   -INFINITY, 0x1p-140f,
                                 -0x1p-149f, -0.0f,  0x1.fp127f, 88.5f,     87.0f,
                                 -87.0f,     -87.3f, -88.0f,     0.0f };
    if (wild && rnd(16) == 0)
        return odd[rnd(sizeof(odd) / sizeof(odd[0]))];
    float f = (float)(rand_unit(seed_now, drawn++) * 4 - 2);
    return rnd(8) == 0 ? f * 40 : f;
}

static void fill_f32(float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = rnd_f32();
}

static float *buf_f32(size_t n)
{
    float *p = guard_alloc(n * sizeof(*p), at_end);
    fill_f32(p, n);
    return p;
}

static float *buf_out(size_t n)
{
    return memset(guard_alloc(n * sizeof(float), at_end), MARK, n * sizeof(float));
}

/* Write the 16-bit floats of a panel. */
static void put_halves(unsigned char *panel, enum ptype type, size_t cols)
{
    for (size_t k = 0; k < cols; k += block_forms[type].cols) {
        struct block b = block_at(type, panel, cols, k);
        size_t at[] = { (size_t)(b.d - panel), (size_t)(b.m - panel) };
        for (size_t i = 0; i < (block_forms[type].offset ? 2 : 1); i++)
            for (size_t r = 0; r < PANEL; r++) {
                uint16_t h = f16_from_f32(rnd_f32() * 0.01f);
                memcpy(panel + at[i] + 2 * r, &h, sizeof(h));
            }
    }
}

/* Return a matrix of random bytes, with odd scales and -128 among the values, walked in any way. */
static struct panels rnd_panels(enum ptype type, size_t rows, size_t cols)
{
    struct panels w = { .type = type, .rows = rows, .cols = cols };
    size_t total;
    if (!panels_bytes(&w.panel_bytes, &total, type, rows, cols))
        abort();
    /* Panels are whole cache lines, so either end may touch the guard page. */
    unsigned char *d = guard_alloc(total, at_end);
    size_t kind = rnd(4); /* 0: only the ends of Q8's range, plus 128: -128, -127, 127, 0 */
    static const unsigned char ends[] = { 0x00, 0x01, 0xff, 0x80 };
    for (size_t i = 0; i < total; i++) {
        d[i] = kind ? (unsigned char)(type == P_Q8 && rnd(4) == 0 ? 0 : rnd(256)) : ends[rnd(4)];
        d[i] ^= type == P_Q8 ? Q8_ZERO ^ 128 : 0;
    }
    if (type == P_F32)
        fill_f32((float *)(void *)d, total / sizeof(float));
    for (size_t i = 0; type == P_BF16 && i < total; i += 2) {
        uint16_t h = bf16_from_f32(rnd_f32());
        memcpy(d + i, &h, sizeof(h));
    }
    if (panels_unit(type) > 1)
        for (size_t p = 0; p < panels_count(rows); p++)
            put_halves(d + p * w.panel_bytes, type, cols);
    static const struct tune ways[] = { { 1, 1, 0 }, { 1, 1, 4096 }, { 2, 1, 0 }, { 2, 1, 64 } };
    size_t way = rnd(5);
    w.tune = way < 4 ? &ways[way] : NULL;
    w.data = d;
    return w;
}

static struct qact rnd_qact(size_t n, size_t cols)
{
    size_t groups = cols / GROUP;
    struct qact x = { .cols = cols };
    x.q = guard_alloc(n * cols, at_end);
    x.scale = buf_f32(n * groups);
    x.bias = guard_alloc(n * groups * sizeof(*x.bias), at_end);
    x.half = guard_alloc(2 * n * groups * sizeof(*x.half), at_end);
    x.sum = guard_alloc(n * groups * sizeof(*x.sum), at_end);
    int extreme = rnd(4) == 0;
    for (size_t g = 0; g < n * groups; g++) {
        int32_t sum[2] = { 0 };
        for (size_t k = 0; k < GROUP; k++) {
            int q = extreme ? (rnd(2) ? 127 : -127) : (int)rnd(255) - 127;
            x.q[g * GROUP + k] = (int8_t)q;
            sum[k / 16] += q;
        }
        qact_put(&x, g, x.scale[g], sum[0], sum[1]);
    }
    return x;
}

#endif
