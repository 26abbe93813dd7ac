/* tiles.h - what the kernels of this folder share: how a product is cut into register tiles.
 *
 * A tile function is tile(np, nt, p, t, ...). It multiplies np panels from panel p on by nt tokens
 * from token t on. np and nt are constants, so after inlining its sums live in registers: each
 * weight vector is loaded once per tile, and each activation is broadcast once and used for every
 * panel. All tokens pass a panel before the walk leaves it, so any number of them reads the weights
 * from memory once; avx512bf16, which rounds 16 tokens at a time, once for each 16. */
#ifndef KERNELS_TILES_H
#define KERNELS_TILES_H

#include <stddef.h>

#include "kernels/kernels.h"
#include "kernels/tune.h"

/* Bytes of the scales at the head of a block, and of whole blocks (panels.h). */
enum { SCALES = 64, Q8_BLOCK = 1088, Q4_BLOCK = 576 };

#define INLINE static inline __attribute__((always_inline))

/* Return how the processor wants w to be walked. */
INLINE struct tune tune_of(const struct panels *w)
{
    return w->tune ? *w->tune : (struct tune)TUNE_DEFAULT;
}

/* REPEAT is a loop with a constant number of turns, unrolled so that its arrays become registers.
 * With sanitizers, gcc no longer sees that it is constant, and refuses to unroll it. */
#if defined(__clang__)
#define REPEAT(i, n) _Pragma("clang loop unroll(full)") for (size_t i = 0; i < (n); i++)
#elif defined(__SANITIZE_ADDRESS__)
#define REPEAT(i, n) for (size_t i = 0; i < (n); i++)
#else
#define REPEAT(i, n) _Pragma("GCC unroll 32") for (size_t i = 0; i < (n); i++)
#endif

/* Up to FEW_TOKENS, memory is as much of a limit as the multipliers are: the first tile that reads
 * some weights also prefetches those that follow. Beyond, TURNS spreads that over all tiles of a
 * turn (fetch_turn); WALK, which has no turns, goes on as with a few. */
enum { FEW_TOKENS = 24 };

/* Prefetch `lines` cache lines of each of np panels, `ahead` bytes past the offset `at`, unless
 * ahead is 0. Beyond the end of a panel, the walk goes on np panels later. A prefetch never faults.
 * A tile of several tokens computes for longer than its weights travel, and the hardware
 * prefetcher loses it: it has to be told early, and L2 is where there is room. */
INLINE void ask_ahead(const unsigned char *panel, size_t bytes, size_t at, size_t ahead, size_t np,
                      size_t nt, size_t lines)
{
    if (!ahead)
        return;
    at += ahead;
    if (at >= bytes)
        at += (np - 1) * bytes;
    REPEAT (i, np)
        REPEAT (l, lines)
            if (nt > 2)
                __builtin_prefetch(panel + i * bytes + at + l * 64, 0, 2);
            else
                __builtin_prefetch(panel + i * bytes + at + l * 64, 0, 3);
}

/* Return how far ahead the first of the tiles of n tokens prefetches. */
INLINE size_t ahead_of(const struct panels *w, size_t n)
{
    enum { TO_L2 = 12 << 10 };
    return n > 3 ? TO_L2 : tune_of(w).ahead;
}

/* TILES_8 calls the tile whose constant is nt, 1 to 8; the others do the same up to their number.
 */
#define TILES_1(np, tile, ...) tile(np, 1, __VA_ARGS__);
#define TILES_2(np, tile, ...)    \
    if (nt == 2)                  \
        tile(np, 2, __VA_ARGS__); \
    else                          \
        TILES_1(np, tile, __VA_ARGS__)
#define TILES_3(np, tile, ...)    \
    if (nt == 3)                  \
        tile(np, 3, __VA_ARGS__); \
    else                          \
        TILES_2(np, tile, __VA_ARGS__)
#define TILES_4(np, tile, ...)    \
    if (nt == 4)                  \
        tile(np, 4, __VA_ARGS__); \
    else                          \
        TILES_3(np, tile, __VA_ARGS__)
#define TILES_5(np, tile, ...)    \
    if (nt == 5)                  \
        tile(np, 5, __VA_ARGS__); \
    else                          \
        TILES_4(np, tile, __VA_ARGS__)
#define TILES_6(np, tile, ...)    \
    if (nt == 6)                  \
        tile(np, 6, __VA_ARGS__); \
    else                          \
        TILES_5(np, tile, __VA_ARGS__)
#define TILES_7(np, tile, ...)    \
    if (nt == 7)                  \
        tile(np, 7, __VA_ARGS__); \
    else                          \
        TILES_6(np, tile, __VA_ARGS__)
#define TILES_8(np, tile, ...)    \
    if (nt == 8)                  \
        tile(np, 8, __VA_ARGS__); \
    else                          \
        TILES_7(np, tile, __VA_ARGS__)

/* Multiply panels [p, p1) in steps of np and move p past them; what is left over is less than np
 * panels. Each step takes all tokens, at most `most` at a time. Uses the names p, p1, n and w of
 * the calling kernel. */
#define WALK(most, np, tile, ...)                         \
    do                                                    \
        for (; p + (np) <= p1; p += (np))                 \
            for (size_t t = 0, nt; t < n; t += nt) {      \
                nt = n - t < (most) ? n - t : (most);     \
                TILES_##most(np, tile, p, t, __VA_ARGS__) \
            }                                             \
    while (0)

/* An argument of a tile under WALK: how far ahead the tile prefetches. */
#define AHEAD (t ? 0 : ahead_of(w, n))

/* TURNS does the same and, if the tokens are more than one tile takes, cuts the columns twice: into
 * stretches [from, to), so that the activations of one stretch stay in the L2 cache while all
 * panels pass; and stretches into turns, so that the weights of a turn stay in the L1 cache while
 * all tokens pass. tile(np, nt, p, t, k0, k1, ahead, ...) continues with the sums that are in y
 * where k0 is not 0. */
#define TURNS(most, np, tile, ...)                             \
    CUT(most, np, turn_columns(w, np, n, most), (void)0, tile, \
        n > FEW_TOKENS || t ? 0 : ahead_of(w, n), __VA_ARGS__)

/* CUT is TURNS with turns of `columns` columns, before each of which the expression `before` runs:
 * it may unpack the weights of the turn, once for all tokens. The tokens are spread evenly over
 * their tiles. */
#define CUT(most, np, columns, before, tile, ...)                                                \
    do                                                                                           \
        for (size_t start = p, from = 0, to; from < w->cols; from = to) {                        \
            size_t step = columns, tiles = (n - 1) / (most) + 1;                                 \
            to = stretch_end(w, tiles, n, from);                                                 \
            for (p = start; p + (np) <= p1; p += (np))                                           \
                for (size_t k0 = from, k1; k0 < to; k0 = k1) {                                   \
                    k1 = to - k0 > step ? k0 + step : to;                                        \
                    before;                                                                      \
                    for (size_t t = 0, i = 0, nt; t < n; t += nt, i++) {                         \
                        nt = (n - t - 1) / (tiles - i) + 1;                                      \
                        if (n > FEW_TOKENS)                                                      \
                            fetch_turn(w, k1 < to ? p : p + (np), k1 < to ? k1 : from, np, step, \
                                       i, tiles);                                                \
                        TILES_##most(np, tile, p, t, k0, k1, __VA_ARGS__)                        \
                    }                                                                            \
                }                                                                                \
        }                                                                                        \
    while (0)

/* Prefetch one of `parts` equal parts of the weights of the turn that begins at panel p, column k.
 * Tiles of the current turn each call it for one part, which spreads the prefetches. */
INLINE void fetch_turn(const struct panels *w, size_t p, size_t k, size_t np, size_t step,
                       size_t part, size_t parts)
{
    size_t each = w->panel_bytes / ((w->cols + 63) / 64), lines = step / 64 * each / 64 + 1;
    const unsigned char *next = w->data + p * w->panel_bytes + k / 64 * each;
    for (size_t l = part * lines / parts; l < (part + 1) * lines / parts; l++)
        for (size_t i = 0; i < np; i++)
            __builtin_prefetch(next + i * w->panel_bytes + l * 64, 0, 2);
}

/* Return where the stretch that begins at column `from` ends: where the activations of n tokens
 * fill 1 MiB. The tokens of a single tile are not cut. */
INLINE size_t stretch_end(const struct panels *w, size_t tiles, size_t n, size_t from)
{
    enum { BYTES = 1 << 20 };
    size_t element = w->type == P_F32 || w->type == P_BF16 ? sizeof(float) : 1;
    size_t columns = BYTES / (n * element) / 256 * 256;
    columns = columns ? columns : 256;
    return tiles == 1 || w->cols - from <= columns ? w->cols : from + columns;
}

/* Return the columns of a turn, a multiple of 64: 24 KiB of weights. When one tile takes all tokens
 * it is all columns, because no weight is used twice. */
INLINE size_t turn_columns(const struct panels *w, size_t np, size_t n, size_t most)
{
    enum { BYTES = 24 << 10 };
    size_t each = w->panel_bytes / ((w->cols + 63) / 64) * np;
    return n <= most ? w->cols : each < BYTES ? BYTES / each * 64 : 64;
}

/* Set what belongs to group g, counted over all rows, beside its q: its scale and what follows from
 * the sums of the two halves of its q. */
INLINE void qact_put(const struct qact *y, size_t g, float scale, int32_t first, int32_t second)
{
    y->scale[g] = scale;
    y->bias[g] = -128 * (first + second);
    y->half[2 * g] = -32 * first;
    y->half[2 * g + 1] = -32 * second;
    y->sum[g] = scale * (float)(first + second);
}

/* Return how many keys query row i of a block sees: attn_f32 in kernels.h. */
INLINE size_t seen_keys(size_t i, size_t per, size_t first, size_t nk)
{
    return first + i / per < nk ? first + i / per : nk;
}

/* Define one kernel from the inline function attn(type, ...), for a fixed cache type. */
#define ATTN(name, type)                                                                       \
    static void name(const struct attn_part *y, const float *q, const void *k, const void *v,  \
                     size_t nq, size_t per, size_t first, size_t nk, size_t hd16, float scale) \
    {                                                                                          \
        attn(type, y, q, k, v, nq, per, first, nk, hd16, scale);                               \
    }

/* Return the bytes of scales at the head of 16 keys (lanes 16) or of one value (lanes 1). */
INLINE size_t kv_scales(enum kvcache type, size_t lanes, size_t hd16)
{
    return type == KVCACHE_Q8 ? (hd16 + GROUP - 1) / GROUP * lanes * sizeof(float) : 0;
}

#endif
