/* codes_tiles.h - the products of GGUF's types, written once for all vector lengths.
 *
 * One token meets codes as they are decoded, in registers (packed_panel). More tokens share one
 * decoding: a turn of columns is unpacked to bytes and floats in L1 (tiles.h), and there all types
 * are alike but for a few constants (tile_codes).
 *
 * The including file has included codes.h and defines besides:
 *
 *   MOST, LOADED       tokens of a tile; lines whose activations are loaded at once
 *   struct part        sums of products that may be narrower than int32
 *   part_lines(type)   how many lines of codes a part can take
 *   part_open(sum), part_step(type, part, v, x, line), part_close(sum, part)
 *
 * The sum of some lines is part_close(sum, part), where the part began as part_open(sum) and took
 * each line's vector of codes v and its four activations at x + 4 * line with part_step. */
#ifndef KERNELS_CODES_TILES_H
#define KERNELS_CODES_TILES_H

#include "kernels/codes.h"

#if defined(MOST) /* an instruction set includes it */

/* Where activations of several lines are loaded at once, gcc would load their codes as early, and
 * spill; it has to wait for each line's turn. clang does not need that, and loses by it. */
#if defined(__clang__)
#define CODES_WAIT(q) ((void)0)
#else
#define CODES_WAIT(q)                       \
    do                                      \
        if (LOADED > 1)                     \
            __asm__ volatile("" : "+r"(q)); \
    while (0)
#endif

/* Add the groups of a period to acc: lines are decoded once, for all groups that they hold. */
INLINE vec packed_period(enum ptype type, vec acc, const struct block *b, const struct factors *f,
                         size_t i, const struct qact *x, size_t g)
{
    const size_t outs = decoded(type), subs = subs_of(type), run = (paired(type) ? 4 : 8) / subs;
    const size_t take = part_lines(type) < run ? part_lines(type) : run;
    const size_t stride = paired(type) ? GROUP / 2 : GROUP;
    const unsigned char *q = b->q;
    sums sum[8][2];
    REPEAT (s, subs) {
        REPEAT (o, outs)
            sum[o][s] = paired(type) && o ? (sums){ 0 } : sum_begin(type, x, g + o, s);
        REPEAT (c, 8) {
            if (c * take >= run)
                break;
            struct part part[8];
            REPEAT (o, outs)
                part[o] = part_open(sum[o][s]);
            REPEAT (l, take) {
                size_t line = s * run + c * take + l;
                codes v[8];
                if (!paired(type))
                    CODES_WAIT(q);
                decode(type, v, q, b->h, line, i);
                REPEAT (o, outs)
                    part[o] = part_step(type, part[o], v[o], x->q + g * GROUP + o * stride, line);
            }
            REPEAT (o, outs)
                sum[o][s] = part_close(sum[o][s], part[o]);
        }
    }
    if (paired(type))
        return add_sub(type, acc, sum[0][0] + sum[1][0], f, 0, i, x, g);
    REPEAT (o, outs)
        REPEAT (s, subs)
            acc = add_sub(type, acc, sum[o][s], f + o, s, i, x, g + o);
    return acc;
}

/* Multiply a panel by one token. */
INLINE void packed_panel(enum ptype type, float *y, const struct panels *w, const struct qact *x,
                         size_t p)
{
    const unsigned char *panel = w->data + p * w->panel_bytes;
    const size_t span = block_forms[type].cols / GROUP, period = period_of(type);
    size_t ahead = tune_of(w).ahead;
    vec acc[VECS] = { vec_set1(0) };
    for (size_t g = 0; g < w->cols / GROUP; g += span) {
        struct factors f[8];
        struct block b = block_at(type, panel, w->cols, g * GROUP);
        unpack_factors(type, f, &b);
        for (size_t m = 0; m < span; m += period) {
            ask_groups(type, panel, w, g + m, period, ahead, 1);
            REPEAT (i, VECS)
                acc[i] = packed_period(type, acc[i], &b, f + m, i, x, g + m);
            next_period(type, &b);
        }
    }
    REPEAT (i, VECS)
        store_floats(y + p * PANEL + i * VEC, acc[i]);
}

/* Add sub-block `sub` of a group of unpacked codes q to the sums acc[vector][token]. xq holds each
 * token's activations of the group. */
INLINE void codes_sub(enum ptype type, vec *acc, size_t nt, const unsigned char *q,
                      const struct factors *f, size_t sub, const int8_t **xq, const struct qact *x,
                      size_t g, size_t groups)
{
    const size_t run = LINES / subs_of(type);
    const size_t take = part_lines(type) < run ? part_lines(type) : run;
    sums sum[VECS * MOST];
    REPEAT (j, nt)
        REPEAT (v, VECS)
            sum[v * nt + j] = sum_begin(type, x, g + j * groups, sub);
    REPEAT (c, 8) {
        if (c * take >= run)
            break;
        struct part part[VECS * MOST];
        REPEAT (o, VECS * nt)
            part[o] = part_open(sum[o]);
        REPEAT (l, take) {
            size_t line = sub * run + c * take + l;
            if (line % LOADED == 0)
                REPEAT (j, nt) /* else gcc loads lines too early, and spills */
                    __asm__ volatile("" : "+r"(xq[j]));
            CODES_WAIT(q);
            REPEAT (v, VECS) {
                codes w = load_codes(q + line * LINE + v * VEC_BYTES);
                REPEAT (j, nt)
                    part[v * nt + j] = part_step(type, part[v * nt + j], w, xq[j], line);
            }
        }
        REPEAT (o, VECS * nt)
            sum[o] = part_close(sum[o], part[o]);
    }
    REPEAT (j, nt)
        REPEAT (v, VECS)
            acc[v * nt + j] =
                add_sub(type, acc[v * nt + j], sum[v * nt + j], f, sub, v, x, g + j * groups);
}

/* The tile of all types: one panel of unpacked codes. */
INLINE void tile_codes(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1,
                       enum ptype type, const struct unpacked *u, float *y, size_t ldy,
                       const struct panels *w, const struct qact *x)
{
    size_t groups = w->cols / GROUP;
    vec acc[VECS * MOST];
    (void)np; /* always one panel */
    y += t * ldy + p * PANEL;
    REPEAT (j, nt)
        REPEAT (i, VECS)
            acc[i * nt + j] = k0 ? load_floats(y + j * ldy + i * VEC) : vec_set1(0);
    for (size_t g = 0; g < (k1 - k0) / GROUP; g++) {
        const int8_t *xq[MOST];
        REPEAT (j, nt)
            xq[j] = x->q + (t + j) * w->cols + k0 + g * GROUP;
        REPEAT (s, subs_of(type))
            codes_sub(type, acc, nt, u->q[g], &u->f[g], s, xq, x, t * groups + k0 / GROUP + g,
                      groups);
    }
    REPEAT (j, nt)
        REPEAT (i, VECS)
            store_floats(y + j * ldy + i * VEC, acc[i * nt + j]);
}

/* CUT, with the number that MOST stands for. */
#define CODES_CUT(most, ...) CUT(most, __VA_ARGS__)

INLINE void matmul_codes(enum ptype type, float *y, size_t ldy, const struct panels *w,
                         const struct qact *x, size_t n, size_t p0, size_t p1)
{
    size_t p = p0, ahead = n > FEW_TOKENS ? 0 : ahead_of(w, n);
    _Alignas(64) struct unpacked u;
    for (; n == 1 && p < p1; p++)
        packed_panel(type, y, w, x, p);
    CODES_CUT(MOST, 1, TURN, unpack_codes(type, &u, w, p, k0, k1, ahead), tile_codes, type, &u, y,
              ldy, w, x);
}

#endif

#endif
