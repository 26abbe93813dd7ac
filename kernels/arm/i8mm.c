/* i8mm.c - SMMLA (ARMv8.6 FEAT_I8MM): one instruction multiplies two rows by two tokens over eight
 * columns, which suits prompts; dotprod.c handles a single token. */
#include <arm_neon.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/tiles.h"

enum { QUARTERS = 4 }; /* quarters of a panel: four rows each, as two pairs */

/* Join two vectors of four columns each into eight columns of rows 4i..4i+3: out[0] holds rows 0
 * and 1, out[1] rows 2 and 3. */
INLINE void pair_rows(int8x16_t out[2], int8x16_t first, int8x16_t second)
{
    int32x4_t a = vreinterpretq_s32_s8(first), b = vreinterpretq_s32_s8(second);
    out[0] = vreinterpretq_s8_s32(vzip1q_s32(a, b));
    out[1] = vreinterpretq_s8_s32(vzip2q_s32(a, b));
}

/* Load eight columns of two successive tokens into one vector. The last one of an odd number of
 * tokens is its own partner. */
INLINE int8x16_t pair_tokens(const int8_t *x, size_t cols, size_t m, size_t nt)
{
    size_t first = 2 * m * cols, second = 2 * m + 1 < nt ? first + cols : first;
    return vcombine_s8(vld1_s8(x + first), vld1_s8(x + second));
}

/* Add one group. For quarter i, row pair h and token pair m, sum[2i + h][m] holds { r t, r t', r'
 * t, r' t' }; unzipping gives the four rows of each token. */
INLINE void add_group(float32x4_t *acc, int32x4_t sum[][2], size_t nt, const unsigned char *scale,
                      const float *xs, size_t ldxs)
{
    REPEAT (i, QUARTERS) {
        float32x4_t ws =
            vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const void *)(scale + i * 8))));
        REPEAT (m, (nt + 1) / 2) {
            int32x4_t s[2] = { vuzp1q_s32(sum[2 * i][m], sum[2 * i + 1][m]),
                               vuzp2q_s32(sum[2 * i][m], sum[2 * i + 1][m]) };
            REPEAT (j, 2) {
                if (2 * m + j == nt)
                    break;
                float32x4_t *a = &acc[i * nt + 2 * m + j];
                *a = vfmaq_f32(*a, vcvtq_f32_s32(s[j]),
                               vmulq_f32(ws, vdupq_n_f32(xs[(2 * m + j) * ldxs])));
            }
        }
    }
}

INLINE void store_tile(float *y, size_t ldy, const float32x4_t *acc, size_t nt)
{
    REPEAT (j, nt)
        REPEAT (i, QUARTERS)
            vst1q_f32(y + j * ldy + i * 4, acc[i * nt + j]);
}

/* SMMLA takes signed bytes, so flipping the top bit turns value + 128 back into the value. */
INLINE void tile_q8(size_t np, size_t nt, size_t p, size_t t, float *y, size_t ldy,
                    const struct panels *w, const struct qact *x)
{
    size_t cols = w->cols, groups = cols / GROUP;
    float32x4_t acc[16] = { vdupq_n_f32(0) };
    (void)np; /* always one panel */
    for (size_t g = 0; g < groups; g++) {
        const unsigned char *b = w->data + p * w->panel_bytes + g / 2 * Q8_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 512;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        const uint8x16_t flip = vdupq_n_u8(0x80);
        int32x4_t sum[8][2] = { { vdupq_n_s32(0) } };
        REPEAT (c, 4) {
            int8x16_t tokens[2];
            REPEAT (m, (nt + 1) / 2)
                tokens[m] = pair_tokens(xq + c * 8, cols, m, nt);
            REPEAT (i, QUARTERS) {
                const unsigned char *at = q + c * 128 + i * 16;
                int8x16_t rows[2];
                pair_rows(rows, vreinterpretq_s8_u8(veorq_u8(vld1q_u8(at), flip)),
                          vreinterpretq_s8_u8(veorq_u8(vld1q_u8(at + 64), flip)));
                REPEAT (h, 2)
                    REPEAT (m, (nt + 1) / 2)
                        sum[2 * i + h][m] = vmmlaq_s32(sum[2 * i + h][m], rows[h], tokens[m]);
            }
        }
        add_group(acc, sum, nt, b + g % 2 * 32, x->scale + t * groups + g, groups);
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, nt);
}

static void matmul_q8_i8mm(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                           size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1)
        kernels_dotprod.matmul_q8(y, ldy, w, x, n, p0, p1);
    else
        WALK(4, 1, tile_q8, y, ldy, w, x);
}

/* Nibbles are used as they are stored, as value + 8; the sums start at -8 * sum(x) of their
 * token. */
INLINE void tile_q4(size_t np, size_t nt, size_t p, size_t t, float *y, size_t ldy,
                    const struct panels *w, const struct qact *x)
{
    size_t cols = w->cols, groups = cols / GROUP;
    float32x4_t acc[16] = { vdupq_n_f32(0) };
    (void)np; /* always one panel */
    for (size_t g = 0; g < groups; g++) {
        const unsigned char *b = w->data + p * w->panel_bytes + g / 2 * Q4_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 256;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        int32x4_t sum[8][2];
        REPEAT (m, (nt + 1) / 2) {
            size_t first = t + 2 * m, second = 2 * m + 1 < nt ? first + 1 : first;
            int32_t bias[2] = { x->bias[first * groups + g] / 16,
                                x->bias[second * groups + g] / 16 };
            int32x2_t both = vld1_s32(bias);
            REPEAT (i, 2 * QUARTERS)
                sum[i][m] = vcombine_s32(both, both);
        }
        REPEAT (c, 2) {
            int8x16_t low[2], high[2];
            REPEAT (m, (nt + 1) / 2) {
                low[m] = pair_tokens(xq + c * 8, cols, m, nt);
                high[m] = pair_tokens(xq + c * 8 + 16, cols, m, nt);
            }
            REPEAT (i, QUARTERS) {
                const unsigned char *at = q + c * 128 + i * 16;
                uint8x16_t a = vld1q_u8(at), d = vld1q_u8(at + 64), nibble = vdupq_n_u8(15);
                int8x16_t lo[2], hi[2];
                pair_rows(lo, vreinterpretq_s8_u8(vandq_u8(a, nibble)),
                          vreinterpretq_s8_u8(vandq_u8(d, nibble)));
                pair_rows(hi, vreinterpretq_s8_u8(vshrq_n_u8(a, 4)),
                          vreinterpretq_s8_u8(vshrq_n_u8(d, 4)));
                REPEAT (h, 2)
                    REPEAT (m, (nt + 1) / 2) {
                        int32x4_t *s = &sum[2 * i + h][m];
                        *s = vmmlaq_s32(vmmlaq_s32(*s, lo[h], low[m]), hi[h], high[m]);
                    }
            }
        }
        add_group(acc, sum, nt, b + g % 2 * 32, x->scale + t * groups + g, groups);
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, nt);
}

static void matmul_q4_i8mm(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                           size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1)
        kernels_dotprod.matmul_q4(y, ldy, w, x, n, p0, p1);
    else
        WALK(4, 1, tile_q4, y, ldy, w, x);
}

const struct kernels kernels_i8mm = {
    .isa = "i8mm",
    .needs = CPU_NEON | CPU_DOTPROD | CPU_I8MM,
    .rest = &kernels_i8mm_blocks,
    .matmul_q8 = matmul_q8_i8mm,
    .matmul_q4 = matmul_q4_i8mm,
};
