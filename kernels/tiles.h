/* tiles.h - what the kernels of this folder share: how a product is cut into register tiles.
 *
 * A tile function is tile(np, nt, p, t, ...). It multiplies np panels from panel p on by nt tokens
 * from token t on. np and nt are constants, so after inlining its sums live in registers: each
 * weight vector is loaded once per tile, and each activation is broadcast once and used for every
 * panel. */
#ifndef KERNELS_TILES_H
#define KERNELS_TILES_H

#include <stddef.h>

#include "kernels/kernels.h"

/* Bytes of the scales at the head of a block, and of whole blocks (panels.h). */
enum { SCALES = 64, Q8_BLOCK = 1088, Q4_BLOCK = 576 };

#define INLINE static inline __attribute__((always_inline))

/* With one token every weight is read once, and the hardware prefetcher stops at each page:
 * ask_ahead prefetches the line this many bytes past p. A prefetch never faults. */
enum { AHEAD = 4096 };
INLINE void ask_ahead(const unsigned char *p)
{
    __builtin_prefetch(p + AHEAD, 0, 3);
}

/* REPEAT is a loop with a constant number of turns, unrolled so that its arrays become
 * registers. */
#if defined(__clang__)
#define REPEAT(i, n) _Pragma("clang loop unroll(full)") for (size_t i = 0; i < (n); i++)
#else
#define REPEAT(i, n) _Pragma("GCC unroll 32") for (size_t i = 0; i < (n); i++)
#endif

/* Walk the panels in steps of np, each over the tokens [t, end) in steps of nt. */
#define SPAN(np, nt, tile, ...)                        \
    for (; p + (np) <= p1; p += (np))                  \
        for (size_t u = t; u + (nt) <= end; u += (nt)) \
            tile(np, nt, p, u, __VA_ARGS__);

/* Process the tokens from t on that make whole tiles of nt, and move t past them. Uses the names t,
 * n, p0 and p1 of the calling kernel. */
#define TOKENS(nt, np, tile, ...)                       \
    do {                                                \
        size_t end = t + (n - t) / (nt) * (nt), p = p0; \
        if (end > t) {                                  \
            SPAN(np, nt, tile, __VA_ARGS__)             \
            if ((np) > 1)                               \
                SPAN(1, nt, tile, __VA_ARGS__)          \
        }                                               \
        t = end;                                        \
    } while (0)

/* TURNS does the same and cuts the columns twice: into stretches [from, to), so that the
 * activations of one stretch stay in the L2 cache while all panels pass; and stretches into turns,
 * so that the weights of a turn stay in the L1 cache while all tokens pass. tile(np, nt, p, t, k0,
 * k1, ...) continues with the sums that are in y where k0 is not 0. It also uses w of the calling
 * kernel. */
#define TURNS(nt, np, tile, ...) \
    STRETCHES(nt, TURN(np, nt, tile, __VA_ARGS__) if ((np) > 1) TURN(1, nt, tile, __VA_ARGS__))
#define STRETCHES(nt, turns)                                              \
    do {                                                                  \
        size_t end = t + (n - t) / (nt) * (nt);                           \
        for (size_t from = 0, to; end > t && from < w->cols; from = to) { \
            size_t p = p0;                                                \
            to = stretch_end(w, nt, end - t, from);                       \
            turns                                                         \
        }                                                                 \
        t = end;                                                          \
    } while (0)
#define TURN(np, nt, tile, ...)                                                          \
    for (size_t step = turn_columns(w, np, nt); p + (np) <= p1; p += (np))               \
        for (size_t k0 = from, k1; k0 < to; k0 = k1) {                                   \
            k1 = to - k0 > step ? k0 + step : to;                                        \
            for (size_t u = t; u + (nt) <= end; u += (nt)) {                             \
                if ((nt) > 2)                                                            \
                    fetch_turn(w, k1 < to ? p : p + (np), k1 < to ? k1 : from, np, step, \
                               (u - t) / (nt), (end - t) / (nt));                        \
                tile(np, nt, p, u, k0, k1, __VA_ARGS__);                                 \
            }                                                                            \
        }

/* UNPACKED_TURNS is TURNS for weights that have to be unpacked: unpack(np, to, w, p, k0, k1) writes
 * the weights of a turn to `unpacked`, once for all tokens, and the tile reads them there.
 * `columns` is how many columns of one panel fit. */
enum { UNPACKED = 24 << 10 };
#define UNPACKED_TURNS(nt, np, unpack, columns, tile, ...)                                \
    STRETCHES(nt, UNPACKED_TURN(np, nt, unpack, columns, tile, __VA_ARGS__) if ((np) > 1) \
                      UNPACKED_TURN(1, nt, unpack, columns, tile, __VA_ARGS__))
#define UNPACKED_TURN(np, nt, unpack, columns, tile, ...)                            \
    for (size_t step = (columns) / (np); p + (np) <= p1; p += (np))                  \
        for (size_t k0 = from, k1; k0 < to; k0 = k1) {                               \
            k1 = to - k0 > step ? k0 + step : to;                                    \
            unpack(np, unpacked, w, p, k0, k1);                                      \
            for (size_t u = t; u + (nt) <= end; u += (nt)) {                         \
                fetch_turn(w, k1 < to ? p : p + (np), k1 < to ? k1 : from, np, step, \
                           (u - t) / (nt), (end - t) / (nt));                        \
                tile(np, nt, p, u, k0, k1, unpacked, __VA_ARGS__);                   \
            }                                                                        \
        }

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
 * fill 1 MiB. Few tokens (nt < 3) are not cut. */
INLINE size_t stretch_end(const struct panels *w, size_t nt, size_t n, size_t from)
{
    enum { BYTES = 1 << 20 };
    size_t element = w->type == P_F32 || w->type == P_BF16 ? sizeof(float) : 1;
    size_t columns = BYTES / (n * element) / 64 * 64 + 64;
    return nt < 3 || w->cols - from <= columns ? w->cols : from + columns;
}

/* Return the columns of a turn, a multiple of 64: 24 KiB of weights. With few tokens it is all
 * columns, because no weight is used often enough to be worth keeping in the cache. */
INLINE size_t turn_columns(const struct panels *w, size_t np, size_t nt)
{
    enum { BYTES = 24 << 10 };
    size_t each = w->panel_bytes / ((w->cols + 63) / 64) * np;
    return nt < 3 ? w->cols : each < BYTES ? BYTES / each * 64 : 64;
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
