/* codes_arm.h - what codes.h wants to know of NEON. */
#ifndef KERNELS_ARM_CODES_ARM_H
#define KERNELS_ARM_CODES_ARM_H

#include "kernels/blocks.h"

#if defined(__ARM_NEON)
#include <arm_neon.h>

#define vec              float32x4_t
#define vec_set1         vdupq_n_f32
#define vec_mul          vmulq_f32
#define vec_fma(a, b, c) vfmaq_f32(c, a, b)
#define CODE_LANE        uint8_t
#define EACH(x)          (uint8_t)(x)
enum { VEC = 4 };

/* All codes fit in signed bytes. */
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

#include "kernels/codes.h"
#endif

#endif
