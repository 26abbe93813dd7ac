/* dotprod_blocks.c - the products of GGUF's other types with SDOT. */
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
#define MOST             4
enum { VEC = 4, AT_ONCE = 4 };

/* SDOT adds to 32 bits and takes codes and IQ4's values alike. */
struct part {
    int32x4_t sum;
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

INLINE size_t part_lines(enum ptype type)
{
    (void)type;
    return 8;
}

#define part_open(s)             ((struct part){ (int32x4_t)(s) })
#define part_close(s, p)         ((sums)(p).sum)
#define part_step(type, p, v, x) part_step_16(p, (int8x16_t)(v), x)

INLINE struct part part_step_16(struct part p, int8x16_t v, const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof(four));
    p.sum = vdotq_s32(p.sum, v, vreinterpretq_s8_s32(vdupq_n_s32(four)));
    return p;
}

#include "kernels/codes.h"

PRODUCTS(dotprod)

const struct kernels kernels_dotprod_blocks = {
    .isa = "dotprod",
    .needs = CPU_NEON | CPU_DOTPROD,
    PRODUCTS_OF(dotprod),
};
