/* neon_blocks.c - the products of GGUF's other types on the aarch64 baseline. */
#include <arm_neon.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/blocks.h"

#define vec              float32x4_t
#define vec_set1         vdupq_n_f32
#define vec_mul          vmulq_f32
#define vec_fma(a, b, c) vfmaq_f32(c, a, b)
#define CODE_LANE        uint8_t
#define EACH(x)          (uint8_t)(x)
#define MOST             2
enum { VEC = 4, AT_ONCE = 4 };

/* Sums of products in 16 bits: of rows 0 and 1, and of rows 2 and 3. */
struct part {
    int16x8_t low, high;
};

INLINE int32_t code_zero(enum ptype type)
{
    return block_forms[type].zero;
}

INLINE uint8x16_t code_table_16(uint8x16_t v)
{
    static const int8_t values[] = { IQ4_VALUES };
    return vreinterpretq_u8_s8(vqtbl1q_s8(vld1q_s8(values), v));
}
#define code_table(v) ((codes)code_table_16((uint8x16_t)(v)))

INLINE float32x4_t widen_halves(const unsigned char *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)(const void *)p)));
}

/* One product for each line has to fit: 2 * 127 * 127 = 32258 for IQ4, 4 * 63 * 127 = 32004 for
 * Q6_K, 8 * 31 * 127 = 31496 for the others. */
INLINE size_t part_lines(enum ptype type)
{
    return type == P_IQ4_NL || type == P_IQ4_XS ? 2 : type == P_Q6_K ? 4 : 8;
}

#define part_open(s) ((void)(s), (struct part){ vdupq_n_s16(0), vdupq_n_s16(0) })
#define part_close(s, p) \
    ((sums)vaddq_s32((int32x4_t)(s), vpaddq_s32(vpaddlq_s16((p).low), vpaddlq_s16((p).high))))
#define part_step(type, p, v, x) part_step_16(p, (int8x16_t)(v), x)

INLINE struct part part_step_16(struct part p, int8x16_t v, const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof(four));
    int8x16_t x4 = vreinterpretq_s8_s32(vdupq_n_s32(four));
    p.low = vmlal_s8(p.low, vget_low_s8(v), vget_low_s8(x4));
    p.high = vmlal_high_s8(p.high, v, x4);
    return p;
}

#include "kernels/codes.h"

PRODUCTS(neon)

const struct kernels kernels_neon_blocks = {
    .isa = "neon",
    .needs = CPU_NEON,
    PRODUCTS_OF(neon),
};
