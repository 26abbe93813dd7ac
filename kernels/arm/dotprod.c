/* dotprod.c - SDOT (ARMv8.2 FEAT_DotProd): the quantised products. The rest comes from neon.c. */
#include <arm_neon.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/tiles.h"

/* Broadcast four activations, so that every row meets them. */
INLINE int8x16_t bcast4(const int8_t *x)
{
    int32_t v;
    memcpy(&v, x, sizeof(v));
    return vreinterpretq_s8_s32(vdupq_n_s32(v));
}

/* Add one group: acc = fmaf((float)sum, scale_w * scale_x, acc). `scale` points to the scales of
 * the first panel. */
INLINE void add_group(float32x4_t *acc, const int32x4_t *sum, size_t np, size_t nt,
                      const unsigned char *scale, size_t panel_bytes, const float *xs, size_t ldxs)
{
    REPEAT (i, 4 * np) {
        const void *s = scale + i / 4 * panel_bytes + i % 4 * 8;
        float32x4_t ws = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(s)));
        REPEAT (j, nt)
            acc[i * nt + j] = vfmaq_f32(acc[i * nt + j], vcvtq_f32_s32(sum[i * nt + j]),
                                        vmulq_f32(ws, vdupq_n_f32(xs[j * ldxs])));
    }
}

INLINE void store_tile(float *y, size_t ldy, const float32x4_t *acc, size_t np, size_t nt)
{
    REPEAT (j, nt)
        REPEAT (i, 4 * np)
            vst1q_f32(y + j * ldy + i * 4, acc[i * nt + j]);
}

/* SDOT takes two signed sides, so flipping the top bit turns value + 128 back into the value and no
 * bias is needed. */
INLINE void tile_q8(size_t np, size_t nt, size_t p, size_t t, float *y, size_t ldy,
                    const struct panels *w, const struct qact *x)
{
    size_t cols = w->cols, groups = cols / GROUP;
    float32x4_t acc[16] = { vdupq_n_f32(0) };
    for (size_t g = 0; g < groups; g++) {
        const unsigned char *b = w->data + p * w->panel_bytes + g / 2 * Q8_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 512;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        int32x4_t sum[16] = { vdupq_n_s32(0) };
        REPEAT (c, 8) {
            int8x16_t wq[8];
            REPEAT (i, 4 * np)
                wq[i] = vreinterpretq_s8_u8(veorq_u8(
                    vld1q_u8(q + i / 4 * w->panel_bytes + c * 64 + i % 4 * 16), vdupq_n_u8(0x80)));
            REPEAT (j, nt) {
                int8x16_t xc = bcast4(xq + j * cols + c * 4);
                REPEAT (i, 4 * np)
                    sum[i * nt + j] = vdotq_s32(sum[i * nt + j], wq[i], xc);
            }
        }
        add_group(acc, sum, np, nt, b + g % 2 * 32, w->panel_bytes, x->scale + t * groups + g,
                  groups);
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, np, nt);
}

static void matmul_q8_dotprod(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                              size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1 && tune_of(w).panels > 1)
        WALK(1, 2, tile_q8, y, ldy, w, x);
    WALK(4, 1, tile_q8, y, ldy, w, x);
}

/* Nibbles are used as they are stored, as value + 8; the sum starts at -8 * sum(x). */
INLINE void tile_q4(size_t np, size_t nt, size_t p, size_t t, float *y, size_t ldy,
                    const struct panels *w, const struct qact *x)
{
    size_t cols = w->cols, groups = cols / GROUP;
    float32x4_t acc[16] = { vdupq_n_f32(0) };
    for (size_t g = 0; g < groups; g++) {
        const unsigned char *b = w->data + p * w->panel_bytes + g / 2 * Q4_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 256;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        int32x4_t sum[16];
        REPEAT (i, 4 * np * nt)
            sum[i] = vdupq_n_s32(x->bias[(t + i % nt) * groups + g] / 16);
        REPEAT (c, 4) {
            int8x16_t lo[8], hi[8];
            REPEAT (i, 4 * np) {
                uint8x16_t pair = vld1q_u8(q + i / 4 * w->panel_bytes + c * 64 + i % 4 * 16);
                lo[i] = vreinterpretq_s8_u8(vandq_u8(pair, vdupq_n_u8(15)));
                hi[i] = vreinterpretq_s8_u8(vshrq_n_u8(pair, 4));
            }
            REPEAT (j, nt) {
                int8x16_t x0 = bcast4(xq + j * cols + c * 4);
                int8x16_t x1 = bcast4(xq + j * cols + c * 4 + 16);
                REPEAT (i, 4 * np) {
                    sum[i * nt + j] = vdotq_s32(sum[i * nt + j], lo[i], x0);
                    sum[i * nt + j] = vdotq_s32(sum[i * nt + j], hi[i], x1);
                }
            }
        }
        add_group(acc, sum, np, nt, b + g % 2 * 32, w->panel_bytes, x->scale + t * groups + g,
                  groups);
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, np, nt);
}

static void matmul_q4_dotprod(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                              size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1 && tune_of(w).panels > 1)
        WALK(1, 2, tile_q4, y, ldy, w, x);
    WALK(4, 1, tile_q4, y, ldy, w, x);
}

const struct kernels kernels_dotprod = {
    .isa = "dotprod",
    .needs = CPU_NEON | CPU_DOTPROD,
    .rest = &kernels_dotprod_blocks,
    .matmul_q8 = matmul_q8_dotprod,
    .matmul_q4 = matmul_q4_dotprod,
};
