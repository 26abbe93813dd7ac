/* blas.c - f32 products of many tokens through OpenBLAS. The set is opt-in: OpenBLAS has its own
 * order of summation, so results agree with the definition only within rounding. */
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/openblas.h"
#include "kernels/tiles.h"

/* The unpacked piece of the weights takes 128 KiB of stack (POOL_STACK in pool.h allows it). Below
 * FEWEST tokens, unpacking costs more than sgemm gains. */
enum { DEPTH = 128, PANELS = 16, WIDTH = PANELS * PANEL, FEWEST = 16 };

/* Unpack columns [k0, k0 + nk) of np panels from panel p on into dst, as [nk][np * 16]. */
static void blas_unpack(float *dst, const struct panels *w, size_t p, size_t np, size_t k0,
                        size_t nk)
{
    for (size_t i = 0; i < np; i++) {
        const unsigned char *src = w->data + (p + i) * w->panel_bytes + k0 * PANEL * sizeof(*dst);
        for (size_t k = 0; k < nk; k++)
            memcpy(dst + (k * np + i) * PANEL, src + k * PANEL * sizeof(*dst),
                   PANEL * sizeof(*dst));
    }
}

/* With few tokens, without the library, or beyond the int range of its arguments, the fastest exact
 * set does the work instead. */
static void matmul_f32_blas(float *y, size_t ldy, const struct panels *w, const float *x,
                            size_t ldx, size_t n, size_t p0, size_t p1)
{
    float piece[DEPTH * WIDTH];
    if (n < FEWEST || !openblas_load(NULL) || n > INT32_MAX || ldx > INT32_MAX || ldy > INT32_MAX) {
        struct kernels own;
        kernels_pick(&own, NULL, cpu_detect(), NULL);
        own.matmul_f32(y, ldy, w, x, ldx, n, p0, p1);
        return;
    }
    for (size_t p = p0; p < p1; p += PANELS) {
        size_t np = p1 - p < PANELS ? p1 - p : PANELS;
        for (size_t k = 0; k < w->cols; k += DEPTH) {
            size_t nk = w->cols - k < DEPTH ? w->cols - k : DEPTH;
            blas_unpack(piece, w, p, np, k, nk);
            openblas_sgemm((int)n, (int)(np * PANEL), (int)nk, x + k, (int)ldx, piece,
                           (int)(np * PANEL), k > 0, y + p * PANEL, (int)ldy);
        }
    }
}

const struct kernels kernels_blas = {
    .isa = "blas",
    .needs = CPU_BLAS,
    .matmul_f32 = matmul_f32_blas,
};
