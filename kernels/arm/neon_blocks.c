/* neon_blocks.c - the products of GGUF's other types on the aarch64 baseline. */
#include <arm_neon.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/arm/codes_arm.h"

#define MOST 2
enum { LOADED = 1 };

/* Sums of products in 16 bits: of rows 0 and 1, and of rows 2 and 3. */
struct part {
    int16x8_t low, high;
};

/* One product for each line has to fit: 2 * 127 * 127 = 32258 for IQ4, 4 * 63 * 127 = 32004 for
 * Q6_K, 8 * 31 * 127 = 31496 for the others. */
INLINE size_t part_lines(enum ptype type)
{
    return type == P_IQ4_NL || type == P_IQ4_XS ? 2 : type == P_Q6_K ? 4 : 8;
}

#define part_open(s) ((void)(s), (struct part){ vdupq_n_s16(0), vdupq_n_s16(0) })
#define part_close(s, p) \
    ((sums)vaddq_s32((int32x4_t)(s), vpaddq_s32(vpaddlq_s16((p).low), vpaddlq_s16((p).high))))
#define part_step(type, p, v, x, line) part_step_16(p, (int8x16_t)(v), (x) + (line)*4)

INLINE struct part part_step_16(struct part p, int8x16_t v, const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof(four));
    int8x16_t x4 = vreinterpretq_s8_s32(vdupq_n_s32(four));
    p.low = vmlal_s8(p.low, vget_low_s8(v), vget_low_s8(x4));
    p.high = vmlal_high_s8(p.high, v, x4);
    return p;
}

#include "kernels/codes_tiles.h"

PRODUCTS(neon)

const struct kernels kernels_neon_blocks = {
    .isa = "neon",
    .needs = CPU_NEON,
    PRODUCTS_OF(neon),
};
