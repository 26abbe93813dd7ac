/* tiles.h - what the kernels share inside this folder: how a product is cut into register tiles.
 *
 * A tile function is tile(np, nt, p, t, ...): np panels from p on times nt tokens from t on, np and
 * nt constants, so that after inlining its sums live in registers: each weight vector is loaded
 * once a tile, each activation broadcast once and used for every panel. */
#ifndef KERNELS_TILES_H
#define KERNELS_TILES_H

#include <stddef.h>

#include "kernels/kernels.h"

/* Bytes of a block of panels.h, and of the scales at its head. */
enum { SCALES = 64, Q8_BLOCK = 1088, Q4_BLOCK = 576 };

#define INLINE static inline __attribute__((always_inline))

/* With one token every weight is read once, and the hardware's own prefetching stops at each page:
 * ask the memory for the line this far behind p. Never faults. */
enum { AHEAD = 4096 };
INLINE void ask_ahead(const unsigned char *p)
{
    __builtin_prefetch(p + AHEAD, 0, 3);
}

/* A loop of a constant number of turns, unrolled so that its arrays become registers. */
#if defined(__clang__)
#define REPEAT(i, n) _Pragma("clang loop unroll(full)") for (size_t i = 0; i < (n); i++)
#else
#define REPEAT(i, n) _Pragma("GCC unroll 32") for (size_t i = 0; i < (n); i++)
#endif

/* Panels in steps of np, each over the tokens [t, end) in steps of nt. */
#define SPAN(np, nt, tile, ...)                        \
    for (; p + (np) <= p1; p += (np))                  \
        for (size_t u = t; u + (nt) <= end; u += (nt)) \
            tile(np, nt, p, u, __VA_ARGS__);

/* As many tokens as make whole tiles of nt, from t on, which moves behind them. Uses the names t,
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

/* Keys that query row i of a block sees: attn_f32 in kernels.h. */
INLINE size_t seen_keys(size_t i, size_t per, size_t first, size_t nk)
{
    return first + i / per < nk ? first + i / per : nk;
}

#endif
