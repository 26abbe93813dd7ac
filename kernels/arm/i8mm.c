/* i8mm.c - SMMLA (ARMv8.6 FEAT_I8MM): one instruction multiplies two rows by two tokens over eight
 * columns, which suits prompts. Joining lines for it pays from two tiles on; dotprod.c handles up
 * to four tokens. */
#include <arm_neon.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/arm/codes_arm.h"

enum { PAIRS = PANEL / 2, PAIR = 16, EIGHT = 2 * LINE };

/* Unpack columns [k0, k1) of a panel, and join each two lines: eight columns of rows 0 and 1, of
 * rows 2 and 3, and so on. */
INLINE void unpack_pairs(enum ptype type, struct unpacked *to, const struct panels *w, size_t p,
                         size_t k0, size_t k1, size_t ahead)
{
    unpack_codes(type, to, w, p, k0, k1, ahead);
    for (size_t g = 0; g < (k1 - k0) / GROUP; g++)
        for (unsigned char *q = to->q[g]; q < to->q[g] + LINES * LINE; q += EIGHT) {
            uint32x4_t a[4], b[4];
            REPEAT (i, VECS) {
                a[i] = vreinterpretq_u32_u8(vld1q_u8(q + i * VEC_BYTES));
                b[i] = vreinterpretq_u32_u8(vld1q_u8(q + LINE + i * VEC_BYTES));
            }
            REPEAT (i, VECS) {
                vst1q_u8(q + 2 * i * PAIR, vreinterpretq_u8_u32(vzip1q_u32(a[i], b[i])));
                vst1q_u8(q + (2 * i + 1) * PAIR, vreinterpretq_u8_u32(vzip2q_u32(a[i], b[i])));
            }
        }
}

/* Add the sums of a sub-block to acc[quarter of the panel][token]. sum[pair of rows][pair of
 * tokens] holds { r t, r t', r' t, r' t' }; unzipping two of them gives four rows of each token. */
INLINE void add_pairs(enum ptype type, vec *acc, int32x4_t sum[][2], size_t nt,
                      const struct factors *f, size_t sub, const struct qact *x, size_t g,
                      size_t groups)
{
    REPEAT (i, VECS)
        REPEAT (j, nt) {
            int32x4_t a = sum[2 * i][j / 2], b = sum[2 * i + 1][j / 2];
            sums s = (sums)(j % 2 ? vuzp2q_s32(a, b) : vuzp1q_s32(a, b));
            acc[i * nt + j] = add_sub(type, acc[i * nt + j], s, f, sub, i, x, g + j * groups);
        }
}

/* One panel of unpacked pairs. The last one of an odd number of tokens is its own partner. */
INLINE void tile_pairs(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1,
                       enum ptype type, const struct unpacked *u, float *y, size_t ldy,
                       const struct panels *w, const struct qact *x)
{
    const size_t groups = w->cols / GROUP, subs = subs_of(type), run = LINES / 2 / subs;
    vec acc[16];
    (void)np; /* always one panel */
    y += t * ldy + p * PANEL;
    REPEAT (j, nt)
        REPEAT (i, VECS)
            acc[i * nt + j] = k0 ? load_floats(y + j * ldy + i * VEC) : vec_set1(0);
    for (size_t n = 0; n < (k1 - k0) / GROUP; n++) {
        size_t g = t * groups + k0 / GROUP + n;
        const int8_t *xq[4];
        REPEAT (j, nt + nt % 2)
            xq[j] = x->q + (g + (j < nt ? j : j - 1) * groups) * GROUP;
        REPEAT (s, subs) {
            int32x4_t sum[PAIRS][2];
            REPEAT (m, (nt + 1) / 2) {
                sums a = sum_begin(type, x, g + 2 * m * groups, s);
                sums b = sum_begin(type, x, g + (2 * m + 1 < nt ? 2 * m + 1 : 2 * m) * groups, s);
                REPEAT (i, PAIRS)
                    sum[i][m] = vzip1q_s32((int32x4_t)a, (int32x4_t)b);
            }
            REPEAT (c, run) {
                size_t at = s * run + c;
                int8x16_t tokens[2];
                REPEAT (j, nt + nt % 2)
                    __asm__ volatile("" : "+r"(xq[j])); /* as in codes_tiles.h */
                REPEAT (m, (nt + 1) / 2)
                    tokens[m] =
                        vcombine_s8(vld1_s8(xq[2 * m] + at * 8), vld1_s8(xq[2 * m + 1] + at * 8));
                REPEAT (i, PAIRS) {
                    int8x16_t rows = vreinterpretq_s8_u8(vld1q_u8(u->q[n] + at * EIGHT + i * PAIR));
                    REPEAT (m, (nt + 1) / 2)
                        sum[i][m] = vmmlaq_s32(sum[i][m], rows, tokens[m]);
                }
            }
            add_pairs(type, acc, sum, nt, &u->f[n], s, x, g, groups);
        }
    }
    REPEAT (j, nt)
        REPEAT (i, VECS)
            store_floats(y + j * ldy + i * VEC, acc[i * nt + j]);
}

INLINE void matmul_codes(enum ptype type, float *y, size_t ldy, const struct panels *w,
                         const struct qact *x, size_t n, size_t p0, size_t p1)
{
    size_t p = p0, ahead = n > FEW_TOKENS ? 0 : ahead_of(w, n);
    _Alignas(64) struct unpacked u;
    if (n <= 4)
        kernels_product(&kernels_dotprod, type)(y, ldy, w, x, n, p0, p1);
    else
        CUT(4, 1, TURN, unpack_pairs(type, &u, w, p, k0, k1, ahead), tile_pairs, type, &u, y, ldy,
            w, x);
}

PRODUCTS(i8mm)
PRODUCT(q8_i8mm, P_Q8)
PRODUCT(q4_i8mm, P_Q4)

const struct kernels kernels_i8mm = {
    .isa = "i8mm",
    .needs = CPU_NEON | CPU_DOTPROD | CPU_I8MM,
    .matmul_q8 = matmul_q8_i8mm,
    .matmul_q4 = matmul_q4_i8mm,
    PRODUCTS_OF(i8mm),
};
