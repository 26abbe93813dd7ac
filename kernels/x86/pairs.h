/* pairs.h - what the sets without a byte dot product share: avx2_blocks.c and avx512_blocks.c add
 * up products with vpmaddubsw, whose sums of pairs have 16 bits. */
#ifndef KERNELS_X86_PAIRS_H
#define KERNELS_X86_PAIRS_H

#include "kernels/blocks.h"
#include "kernels/tiles.h"

/* Codes are unsigned, as vpmaddubsw wants them. Those of IQ4 are looked up, with their sign. */
INLINE int32_t code_zero(enum ptype type)
{
    return block_forms[type].zero;
}

/* Products of the largest code and 127, two for each line, have to fit in 16 bits: 8 * 2 * 15 *
 * 127 = 30480, 4 * 2 * 31 * 127 = 31496, 2 * 2 * 63 * 127 = 32004, 2 * 127 * 127 = 32258. */
INLINE size_t part_lines(enum ptype type)
{
    return type == P_IQ4_NL || type == P_IQ4_XS                 ? 1
           : type == P_Q6_K                                     ? 2
           : type == P_Q5_0 || type == P_Q5_1 || type == P_Q5_K ? 4
                                                                : 8;
}

#endif
