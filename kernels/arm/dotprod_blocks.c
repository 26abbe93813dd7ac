/* dotprod_blocks.c - the products of GGUF's other types with SDOT. */
#include <arm_neon.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/arm/codes_arm.h"

#define MOST 4
enum { AT_ONCE = 4 };

/* SDOT adds to 32 bits and takes codes and IQ4's values alike. */
struct part {
    int32x4_t sum;
};

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

#include "kernels/codes_tiles.h"

PRODUCTS(dotprod)

const struct kernels kernels_dotprod_blocks = {
    .isa = "dotprod",
    .needs = CPU_NEON | CPU_DOTPROD,
    PRODUCTS_OF(dotprod),
};
