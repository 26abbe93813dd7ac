/* blocks.h - how the quantised types of panels.h encode a weight: where the parts of a block lie in
 * a panel, and what a code, a scale and an offset are. panels_row and scalar.c are written with
 * these functions; the other sets use the places and the numbers.
 *
 * A weight is value * scale + offset. `value` is an integer from the code: code - zero, or what a
 * table holds for it (IQ4). A sub-block is the run of columns that shares a scale and an offset.
 * Source of the encodings: the block types of GGUF, as ggml's ggml-common.h documents them. */
#ifndef KERNELS_BLOCKS_H
#define KERNELS_BLOCKS_H

#include "kernels/math.h"
#include "kernels/panels.h"
#include "kernels/tiles.h"

/* What is constant about a type. Offsets count from the start of a block of a panel; 0: the type
 * has no such part. In types whose block holds two groups of 32 columns, the parts of the second
 * lie behind those of the first. */
struct block_form {
    unsigned short cols, raw_bytes;   /* of a block of a row in a GGUF file */
    unsigned short panel_cols, bytes; /* of a block of a panel */
    unsigned char sub;                /* columns of a sub-block */
    unsigned char zero;               /* what a code is above its value */
    unsigned char head;               /* bytes for each block before the first one: its d */
    bool offset;                      /* has offsets */
    unsigned short m, s, h, q;        /* offsets of the parts */
};

static const struct block_form block_forms[P_TYPES] = {
    [P_Q8] = { 32, 34, 64, 1088, 32, Q8_ZERO, 0, false, 0, 0, 0, 64 },
    [P_Q4] = { 32, 18, 64, 576, 32, 8, 0, false, 0, 0, 0, 64 },
    [P_Q4_1] = { 32, 20, 32, 320, 32, 0, 0, true, 32, 0, 0, 64 },
    [P_Q5_0] = { 32, 22, 64, 704, 32, 16, 0, false, 0, 0, 64, 192 },
    [P_Q5_1] = { 32, 24, 32, 384, 32, 0, 0, true, 32, 0, 64, 128 },
    [P_Q2_K] = { 256, 84, 256, 1344, 16, 0, 0, true, 32, 64, 0, 320 },
    [P_Q3_K] = { 256, 110, 256, 1728, 16, 4, 32, false, 0, 0, 192, 704 },
    [P_Q4_K] = { 256, 144, 256, 2304, 32, 0, 0, true, 32, 64, 0, 256 },
    [P_Q5_K] = { 256, 176, 256, 2816, 32, 0, 0, true, 32, 64, 256, 768 },
    [P_Q6_K] = { 256, 210, 256, 3328, 16, 32, 32, false, 0, 0, 256, 1280 },
    [P_IQ4_NL] = { 32, 18, 64, 576, 32, 0, 0, false, 0, 0, 0, 64 },
    [P_IQ4_XS] = { 256, 136, 256, 2176, 32, 0, 0, false, 32, 64, 0, 128 },
};

/* The values of IQ4's codes. */
#define IQ4_VALUES -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113

/* The parts of the block, or of the group of 32 columns of a smaller type, that holds a column. */
struct block {
    const unsigned char *d; /* f16[16] */
    const unsigned char *m; /* f16[16]; IQ4_XS: u16[16] high bits of the sub-scales */
    const unsigned char *s; /* u32[][16] sub-scales */
    const unsigned char *h; /* [][16][4] high bits of the codes */
    const unsigned char *q; /* [][16][4] codes or their low bits */
};

/* Return the bytes before the first block of a panel. */
INLINE size_t block_head(enum ptype type, size_t cols)
{
    const struct block_form *f = &block_forms[type];
    return (cols / f->panel_cols * f->head + 63) / 64 * 64;
}

/* Return the parts of the block that holds column k of a panel of `cols` columns. */
INLINE struct block block_at(enum ptype type, const unsigned char *panel, size_t cols, size_t k)
{
    const struct block_form *f = &block_forms[type];
    size_t i = k / f->panel_cols, second = f->panel_cols == 2 * GROUP && k / GROUP % 2;
    const unsigned char *b = panel + block_head(type, cols) + i * f->bytes;
    return (struct block){
        .d = f->head ? panel + i * f->head : b + second * 32,
        .m = b + f->m,
        .s = b + f->s,
        .h = b + f->h + second * 64,
        .q = b + f->q + second * (type == P_Q8 ? 512 : 256),
    };
}

/* Return the code in column k of a block and in row r. */
INLINE int block_code(enum ptype type, const struct block *b, size_t k, size_t r)
{
    size_t at = r * 4 + k % 4;               /* in a line of 16 rows x 4 columns */
    size_t line = k % 32 / 4, turn = k / 32; /* turn: which 32 columns of 256 */
    switch (type) {
    case P_Q8:
        return Q8_ZERO ? b->q[line * 64 + at] : (signed char)b->q[line * 64 + at];
    case P_Q4:
    case P_Q4_1:
    case P_IQ4_NL:
    case P_IQ4_XS:
        return b->q[turn * 256 + line % 4 * 64 + at] >> line / 4 * 4 & 15;
    case P_Q5_0:
    case P_Q5_1:
        return (b->q[line % 4 * 64 + at] >> line / 4 * 4 & 15) | (b->h[at] >> line & 1) << 4;
    case P_Q4_K:
        return b->q[(turn / 2 * 8 + line) * 64 + at] >> turn % 2 * 4 & 15;
    case P_Q5_K:
        return (b->q[(turn / 2 * 8 + line) * 64 + at] >> turn % 2 * 4 & 15) |
               (b->h[line * 64 + at] >> turn & 1) << 4;
    case P_Q6_K:
        return (b->q[(turn / 4 * 16 + turn % 2 * 8 + line) * 64 + at] >> turn % 4 / 2 * 4 & 15) |
               (b->h[(turn / 4 * 8 + line) * 64 + at] >> turn % 4 * 2 & 3) << 4;
    case P_Q2_K:
        return b->q[(turn / 4 * 8 + line) * 64 + at] >> turn % 4 * 2 & 3;
    case P_Q3_K:
        return (b->q[(turn / 4 * 8 + line) * 64 + at] >> turn % 4 * 2 & 3) |
               (b->h[line * 64 + at] >> turn & 1) << 2;
    default:
        return 0;
    }
}

/* Return the value that column k of a block has in row r. */
INLINE int block_value(enum ptype type, const struct block *b, size_t k, size_t r)
{
    static const signed char iq4[] = { IQ4_VALUES };
    int code = block_code(type, b, k, r);
    return type == P_IQ4_NL || type == P_IQ4_XS ? iq4[code] : code - block_forms[type].zero;
}

/* Return half r of 16. */
INLINE uint16_t block_u16(const unsigned char *p, size_t r)
{
    return (uint16_t)(p[2 * r] | p[2 * r + 1] << 8);
}

/* Return byte i of the sub-scales of row r, as GGUF numbers them: word i / 4 of the row. */
INLINE int block_byte(const struct block *b, size_t i, size_t r)
{
    return b->s[i / 4 * 64 + r * 4 + i % 4];
}

/* Return the factor of sub-block `sub` of a block in row r. It is 1 in types without sub-scales. */
INLINE int block_sub_scale(enum ptype type, const struct block *b, size_t sub, size_t r)
{
    switch (type) {
    case P_Q2_K:
        return block_byte(b, sub, r) & 15;
    case P_Q3_K:
        return ((block_byte(b, sub % 8, r) >> sub / 8 * 4 & 15) |
                (block_byte(b, 8 + sub % 4, r) >> sub / 4 * 2 & 3) << 4) -
               32;
    case P_Q4_K:
    case P_Q5_K:
        return (sub < 4 ? block_byte(b, sub, r) & 63
                        : (block_byte(b, sub + 4, r) & 15) | block_byte(b, sub - 4, r) >> 6 << 4);
    case P_Q6_K:
        return (int8_t)block_byte(b, sub, r);
    case P_IQ4_XS:
        return ((block_byte(b, sub / 2, r) >> sub % 2 * 4 & 15) |
                (block_u16(b->m, r) >> sub * 2 & 3) << 4) -
               32;
    default:
        return 1;
    }
}

/* Return the factor of dmin of sub-block `sub`, in types that have one. */
INLINE int block_sub_min(enum ptype type, const struct block *b, size_t sub, size_t r)
{
    if (type == P_Q2_K)
        return block_byte(b, sub, r) >> 4;
    return (sub < 4 ? block_byte(b, sub + 4, r) & 63
                    : block_byte(b, sub + 4, r) >> 4 | block_byte(b, sub, r) >> 6 << 4);
}

INLINE float block_scale(enum ptype type, const struct block *b, size_t sub, size_t r)
{
    float d = f32_from_f16(block_u16(b->d, r));
    return block_forms[type].cols == GROUP ? d : d * (float)block_sub_scale(type, b, sub, r);
}

/* Return the offset of sub-block `sub`, in types that have one. */
INLINE float block_offset(enum ptype type, const struct block *b, size_t sub, size_t r)
{
    float m = f32_from_f16(block_u16(b->m, r));
    return block_forms[type].cols == GROUP ? m : -(m * (float)block_sub_min(type, b, sub, r));
}

#endif
