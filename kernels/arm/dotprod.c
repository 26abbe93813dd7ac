/* dotprod.c - SDOT (ARMv8.2 FEAT_DotProd): the products of all quantised types. The rest comes from
 * neon.c. */
#include <arm_neon.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/arm/codes_arm.h"

#define MOST 4
enum { LOADED = 4 };

/* SDOT adds to 32 bits and takes codes and IQ4's values alike. */
struct part {
    int32x4_t sum;
};

INLINE size_t part_lines(enum ptype type)
{
    (void)type;
    return 8;
}

#define part_open(s)     ((struct part){ (int32x4_t)(s) })
#define part_close(s, p) ((sums)(p).sum)
#define part_step(type, p, v, x, line) \
    ((struct part){ dot_line((p).sum, (int8x16_t)(v), vld1q_s8((x) + (line) / 4 * 16), line) })

/* Multiply by one of four lines' activations. The instruction broadcasts them itself, if the lane
 * is a literal. */
INLINE int32x4_t dot_line(int32x4_t sum, int8x16_t v, int8x16_t x, size_t line)
{
    switch (line % 4) {
    case 0:
        return vdotq_laneq_s32(sum, v, x, 0);
    case 1:
        return vdotq_laneq_s32(sum, v, x, 1);
    case 2:
        return vdotq_laneq_s32(sum, v, x, 2);
    default:
        return vdotq_laneq_s32(sum, v, x, 3);
    }
}

#include "kernels/codes_tiles.h"

PRODUCTS(dotprod)
PRODUCT(q8_dotprod, P_Q8)
PRODUCT(q4_dotprod, P_Q4)

const struct kernels kernels_dotprod = {
    .isa = "dotprod",
    .needs = CPU_NEON | CPU_DOTPROD,
    .matmul_q8 = matmul_q8_dotprod,
    .matmul_q4 = matmul_q4_dotprod,
    PRODUCTS_OF(dotprod),
};
