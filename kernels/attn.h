/* attn.h - attention over one key block, written once for all vector lengths.
 *
 * An instruction set includes this file after it has defined: vec, a vector of VEC floats (4, 8 or
 * 16); vec_zero, vec_set1, vec_store, vec_add, vec_mul; vec_fma(a, b, c) = a * b + c; vec_keep(x),
 * which forces x to stay in a register; load_keys(type, group, d, part, hd16), which loads column d
 * of keys part * VEC to part * VEC + VEC - 1 of a group of 16; load_value(type, row, d, hd16),
 * which loads columns d to d + VEC - 1 of a value; softmax_row(y, i, p, seen), which turns the
 * scores p[0..seen) into weights in place and stores max and sum of row i, or SOFTMAX_ROWS and
 * softmax_rows, which does so for n rows at once.
 * With many query rows, ROWS of them, KEY_GROUPS groups of keys and VALUES vectors of a value are
 * processed together; with exactly 7 (the query heads of a KV head in Qwen2.5 0.5B and 7B) all 7,
 * one group and FEW_VALUES vectors.
 *
 * Lanes are keys, so each lane of the virtual vector is a sum of its own, and the tree at its end
 * adds whole vectors: nothing is summed across lanes. Rows processed together share what is
 * loaded. */
#ifndef KERNELS_ATTN_H
#define KERNELS_ATTN_H

#include "kernels/tiles.h"

#if defined(vec)

#if !defined(SOFTMAX_ROWS)
INLINE void softmax_rows(const struct attn_part *y, size_t i, size_t n, float p[][ATTN_BLOCK],
                         const size_t *seen)
{
    for (size_t r = 0; r < n; r++)
        softmax_row(y, i + r, p[r], seen[r]);
}
#endif

enum {
    PARTS = 16 / VEC,
    FEW = 8,         /* rows whose weights are kept at once */
    WIDE_MOST = 128, /* largest head size for which a block is widened to f32 for many rows */
    SUMS = (ROWS * KEY_GROUPS > 7 ? ROWS * KEY_GROUPS : 7) * PARTS,
};

/* A piece of the work: nr query rows against ng groups of keys, which start at k, and the values
 * that start at v. */
struct attn_rows {
    enum kvcache type;
    const float *q;
    const unsigned char *k, *v;
    size_t keys_bytes, value_bytes, hd16, nr, ng;
    size_t ahead; /* bytes from a block to the next one, which is prefetched; 0: no prefetch */
};

/* Prefetch the n bytes of the next block that correspond to the n bytes at p of this block. */
INLINE void ask_next(const struct attn_rows *t, const unsigned char *p, size_t n)
{
    for (size_t i = 0; t->ahead && i < n; i += 64)
        __builtin_prefetch(p + t->ahead + i, 0, 2);
}

/* Compute lane l of the virtual vectors of all rows and keys: o[(r * ng + g) * PARTS + part]. */
INLINE void lane_0(vec *o, const struct attn_rows *t, size_t l)
{
    size_t nk = t->ng * PARTS;
    REPEAT (i, t->nr * nk)
        o[i] = vec_zero();
    for (size_t d = l; d < t->hd16; d += 16)
        REPEAT (i, nk) {
            vec k = load_keys(t->type, t->k + i / PARTS * t->keys_bytes, d, i % PARTS, t->hd16);
            vec_keep(k);
            REPEAT (r, t->nr)
                o[r * nk + i] = vec_fma(vec_set1(t->q[r * t->hd16 + d]), k, o[r * nk + i]);
        }
}

/* Define one level of the tree, depth first, so that few partial sums are live at a time: lane_8
 * adds lanes l and l + 8, and lane_4 adds those of l and l + 4. */
#define ATTN_LANE(name, below, apart)                             \
    INLINE void name(vec *o, const struct attn_rows *t, size_t l) \
    {                                                             \
        vec more[SUMS];                                           \
        below(o, t, l);                                           \
        below(more, t, l + (apart));                              \
        REPEAT (i, t->nr * t->ng * PARTS)                         \
            o[i] = vec_add(o[i], more[i]);                        \
    }
ATTN_LANE(lane_8, lane_0, 8)
ATTN_LANE(lane_4, lane_8, 4)

/* Compute the scores of ng groups of keys from group g on; the last two levels of the tree are
 * here. */
INLINE void attn_scores(float p[][ATTN_BLOCK], struct attn_rows t, size_t g, size_t ng, float scale)
{
    vec part[4][SUMS];
    t.k += g * t.keys_bytes;
    t.ng = ng;
    for (size_t l = 0; l < 4; l++) {
        vec o[SUMS];
        for (size_t i = 0; i < ng; i++)
            ask_next(&t, t.k + i * t.keys_bytes + l * (t.keys_bytes / 4), t.keys_bytes / 4);
        lane_4(o, &t, l);
        REPEAT (i, t.nr * ng * PARTS)
            part[l][i] = o[i];
    }
    REPEAT (i, t.nr * ng * PARTS) {
        vec o = vec_add(vec_add(part[0][i], part[2][i]), vec_add(part[1][i], part[3][i]));
        vec_store(p[i / (ng * PARTS)] + g * 16 + i % (ng * PARTS) * VEC,
                  vec_mul(o, vec_set1(scale)));
    }
}

/* Compute the scores of nr rows from row r on against the first `seen` keys, ng groups at a
 * time. */
INLINE void attn_scores_of(float p[][ATTN_BLOCK], struct attn_rows t, size_t r, size_t nr,
                           size_t ng, size_t seen, float scale)
{
    size_t groups = (seen + 15) / 16, g = 0;
    t.q += r * t.hd16;
    t.nr = nr;
    for (; g + ng <= groups; g += ng)
        attn_scores(p, t, g, ng, scale);
    for (; g < groups; g++)
        attn_scores(p, t, g, 1, scale);
}

/* Compute out[r] for nv vectors from column d on: first over the keys that all rows see, where each
 * loaded value serves every row, then over those that only later rows see. */
INLINE void attn_mix(float *out, const float p[][ATTN_BLOCK], const struct attn_rows *t,
                     const size_t *seen, size_t d, size_t nv)
{
    vec acc[FEW][VALUES];
    REPEAT (r, t->nr)
        REPEAT (i, nv)
            acc[r][i] = vec_zero();
    for (size_t j = 0; j < seen[0]; j++) {
        if (d == 0)
            ask_next(t, t->v + j * t->value_bytes, t->value_bytes);
        REPEAT (i, nv) {
            vec x = load_value(t->type, t->v + j * t->value_bytes, d + i * VEC, t->hd16);
            vec_keep(x);
            REPEAT (r, t->nr)
                acc[r][i] = vec_fma(vec_set1(p[r][j]), x, acc[r][i]);
        }
    }
    REPEAT (r, t->nr)
        for (size_t j = seen[0]; j < seen[r]; j++)
            REPEAT (i, nv) {
                vec x = load_value(t->type, t->v + j * t->value_bytes, d + i * VEC, t->hd16);
                acc[r][i] = vec_fma(vec_set1(p[r][j]), x, acc[r][i]);
            }
    REPEAT (r, t->nr)
        REPEAT (i, nv)
            vec_store(out + r * t->hd16 + d + i * VEC, acc[r][i]);
}

/* Compute out for nr rows, nv vectors of columns at a time. */
INLINE void attn_mix_of(float *out, const float p[][ATTN_BLOCK], struct attn_rows t, size_t nr,
                        size_t nv, const size_t *seen)
{
    size_t d = 0;
    t.nr = nr;
    for (; d + nv * VEC <= t.hd16; d += nv * VEC)
        attn_mix(out, p, &t, seen, d, nv);
    for (; d < t.hd16; d += 16)
        attn_mix(out, p, &t, seen, d, PARTS);
}

/* Process rows [i, i + n), nr at once: first all scores, then all maxima and all weights, so that
 * the long dependency chains of softmax overlap, then all sums of values. Later rows see at least
 * as many keys as earlier ones. */
INLINE void attn_some(const struct attn_part *y, size_t i, size_t n, struct attn_rows t, size_t nr,
                      size_t ng, size_t nv, const size_t *seen, float scale)
{
    float p[FEW][ATTN_BLOCK], *out = y->out + i * t.hd16;
    size_t r = 0;
    t.q += i * t.hd16;
    for (; r + nr <= n; r += nr)
        attn_scores_of(p + r, t, r, nr, ng, seen[r + nr - 1], scale);
    for (; r < n; r++)
        attn_scores_of(p + r, t, r, 1, ng, seen[r], scale);
    softmax_rows(y, i, n, p, seen);
    for (r = 0; r + nr <= n; r += nr)
        attn_mix_of(out + r * t.hd16, (const float(*)[ATTN_BLOCK])(p + r), t, nr, nv, seen + r);
    for (; r < n; r++)
        attn_mix_of(out + r * t.hd16, (const float(*)[ATTN_BLOCK])(p + r), t, 1, nv, seen + r);
}

/* Process all rows, FEW at a time, in tiles of nr rows, ng key groups and nv vectors of a value. */
INLINE void attn_all(const struct attn_part *y, const struct attn_rows *t, size_t nq, size_t per,
                     size_t first, size_t nk, size_t nr, size_t ng, size_t nv, float scale)
{
    for (size_t i = 0; i < nq; i += FEW) {
        size_t seen[FEW], n = nq - i < FEW ? nq - i : FEW;
        for (size_t r = 0; r < n; r++)
            seen[r] = seen_keys(i + r, per, first, nk);
        attn_some(y, i, n, *t, nr, ng, nv, seen, scale);
    }
}

/* Process many rows of f32. All cache types share this one copy of the code, hence noinline. */
static __attribute__((noinline)) void attn_wide(const struct attn_part *y,
                                                const struct attn_rows *t, size_t nq, size_t per,
                                                size_t first, size_t nk, float scale)
{
    struct attn_rows wide = *t;
    wide.type = KVCACHE_F32;
    attn_all(y, &wide, nq, per, first, nk, ROWS, KEY_GROUPS, VALUES, scale);
}

/* Widen a block to f32 once, and prefetch the next one, which directly follows it. */
INLINE void attn_widen(float *keys, float *values, const struct attn_rows *t, size_t nk)
{
    size_t ahead = ATTN_BLOCK / 16 * t->keys_bytes;
    for (size_t j = 0; j < nk; j += 16) {
        const unsigned char *group = t->k + j / 16 * t->keys_bytes;
        for (size_t i = 0; i < t->keys_bytes; i += 64)
            __builtin_prefetch(group + ahead + i, 0, 2);
        for (size_t i = 0; i < t->hd16 * PARTS; i++)
            vec_store(keys + j * t->hd16 + i * VEC,
                      load_keys(t->type, group, i / PARTS, i % PARTS, t->hd16));
    }
    for (size_t j = 0; j < nk; j++) {
        const unsigned char *row = t->v + j * t->value_bytes;
        for (size_t i = 0; i < t->value_bytes; i += 64)
            __builtin_prefetch(row + ahead + i, 0, 2);
        for (size_t d = 0; d < t->hd16; d += VEC)
            vec_store(values + j * t->hd16 + d, load_value(t->type, row, d, t->hd16));
    }
}

/* Choose the tile for the number of rows. Decoding (7 rows, or few) reads the block as it is; many
 * rows widen it first, because each row would otherwise convert it again. */
INLINE void attn(enum kvcache type, const struct attn_part *y, const float *q, const void *k,
                 const void *v, size_t nq, size_t per, size_t first, size_t nk, size_t hd16,
                 float scale)
{
    float keys[ATTN_BLOCK * WIDE_MOST], values[ATTN_BLOCK * WIDE_MOST];
    size_t keys_bytes = kvcache_keys_bytes(type, hd16), each = kvcache_value_bytes(type, hd16);
    struct attn_rows t = { type, q, k, v, keys_bytes, each, hd16, 0, 0, 0 };
    const struct attn_rows wide = {
        KVCACHE_F32, q, (const void *)keys, (const void *)values, 64 * hd16, 4 * hd16, hd16, 0, 0, 0
    };
    t.ahead = nq > FEW ? 0 : ATTN_BLOCK / 16 * keys_bytes;
    if (nq == 7) {
        attn_all(y, &t, nq, per, first, nk, 7, 1, FEW_VALUES, scale);
    } else if (nq > FEW && type == KVCACHE_F32) {
        attn_wide(y, &t, nq, per, first, nk, scale);
    } else if (nq > FEW && hd16 <= WIDE_MOST) {
        attn_widen(keys, values, &t, nk);
        attn_wide(y, &wide, nq, per, first, nk, scale);
    } else {
        attn_all(y, &t, nq, per, first, nk, 2, 1, FEW_VALUES, scale);
    }
}

#endif

#endif
