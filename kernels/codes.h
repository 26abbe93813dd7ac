/* codes.h - how the codes of GGUF's types are decoded, written once for all vector lengths. An
 * instruction set's file defines what differs, in vectors of VEC rows, and includes this header:
 *
 *   vec, vec_set1, vec_mul, vec_fma   floats, as for attn.h
 *   CODE_LANE, EACH(x)                what codes are shifted in, and x in each byte of it
 *   code_table(v)                     the values of IQ4's codes
 *   code_zero(type)                   what a code, as the set multiplies it, is above its value
 *   widen_halves(p)                   VEC f16 at p as floats
 *
 * Then codes_tiles.h has the products; i8mm.c has its own. */
#ifndef KERNELS_CODES_H
#define KERNELS_CODES_H

#include <string.h>

#include "kernels/blocks.h"
#include "kernels/tiles.h"

#if defined(CODE_LANE) /* an instruction set includes it */

enum { VECS = PANEL / VEC, VEC_BYTES = VEC * 4 };

typedef CODE_LANE codes __attribute__((vector_size(VEC_BYTES)));
typedef uint32_t words __attribute__((vector_size(VEC_BYTES)));
typedef int32_t sums __attribute__((vector_size(VEC_BYTES)));
typedef uint16_t halves __attribute__((vector_size(VEC * 2)));

/* The scales and offsets of the sub-blocks of 32 columns. */
struct factors {
    float scale[2][PANEL], offset[2][PANEL];
};

/* A turn of columns, unpacked: lines of 16 rows x 4 columns. */
enum { TURN = 1024, TURN_GROUPS = TURN / GROUP, LINE = 64, LINES = GROUP / 4 };
struct unpacked {
    struct factors f[TURN_GROUPS];
    unsigned char q[TURN_GROUPS][LINES * LINE];
};

INLINE codes load_codes(const unsigned char *p)
{
    codes v;
    memcpy(&v, p, sizeof(v));
    return v;
}

INLINE words load_words(const unsigned char *p)
{
    words v;
    memcpy(&v, p, sizeof(v));
    return v;
}

INLINE vec load_floats(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof(v));
    return v;
}

INLINE void store_floats(float *p, vec v)
{
    memcpy(p, &v, sizeof(v));
}

/* True for types whose lines hold columns 4j of a group in the low nibbles, 16 + 4j in the high. */
INLINE bool paired(enum ptype type)
{
    return block_forms[type].cols == GROUP || type == P_IQ4_XS;
}

/* Return how many groups of 32 columns lie interleaved in the lines of a block: one that is paired,
 * or one for each part of a byte. */
INLINE size_t period_of(enum ptype type)
{
    return paired(type)                       ? 1
           : type == P_Q5_K || type == P_Q3_K ? 8
           : type == P_Q2_K || type == P_Q6_K ? 4
                                              : 2;
}

/* Return how many vectors of codes decode makes, and how many sub-blocks a group has. */
INLINE size_t decoded(enum ptype type)
{
    return paired(type) ? 2 : period_of(type);
}

INLINE size_t subs_of(enum ptype type)
{
    return GROUP / block_forms[type].sub;
}

/* Return `bits` bits of each byte, moved from bit `from` to bit `to`. */
INLINE codes move_bits(codes v, unsigned bits, unsigned from, unsigned to)
{
    codes at = from < to ? v << (to - from) : from > to ? v >> (from - to) : v;
    if (sizeof(CODE_LANE) == 1 && from + bits == 8 && to == 0)
        return at; /* the shift has left nothing else */
    return at & EACH(((1u << bits) - 1) << to);
}

/* Decode a vector of lines `line`: for paired types columns 4 * line and 16 + 4 * line, else
 * columns 4 * line of each group of the period. q and h point to the period's first line. */
INLINE void decode(enum ptype type, codes *out, const unsigned char *q, const unsigned char *h,
                   size_t line, size_t i)
{
    const unsigned char *at = q + line * LINE + i * VEC_BYTES;
    codes v = load_codes(at), low = move_bits(v, 4, 0, 0), high = move_bits(v, 4, 4, 0);
    if (type == P_Q8) {
        out[0] = v;
        out[1] = load_codes(at + 4 * LINE);
    } else if (type == P_Q4 || type == P_Q4_1 || type == P_Q4_K) {
        out[0] = low;
        out[1] = high;
    } else if (type == P_IQ4_NL || type == P_IQ4_XS) {
        out[0] = code_table(low);
        out[1] = code_table(high);
    } else if (type == P_Q5_0 || type == P_Q5_1) {
        codes fifth = load_codes(h + i * VEC_BYTES);
        out[0] = low | move_bits(fifth, 1, (unsigned)line, 4);
        out[1] = high | move_bits(fifth, 1, (unsigned)line + 4, 4);
    } else if (type == P_Q2_K) {
        REPEAT (j, 4)
            out[j] = move_bits(v, 2, 2 * (unsigned)j, 0);
    } else {
        codes more = load_codes(h + line * LINE + i * VEC_BYTES);
        REPEAT (j, 4) {
            unsigned u = (unsigned)j;
            v = load_codes(at + j * LINES * LINE);
            if (type == P_Q5_K) {
                out[2 * j] = move_bits(v, 4, 0, 0) | move_bits(more, 1, 2 * u, 4);
                out[2 * j + 1] = move_bits(v, 4, 4, 0) | move_bits(more, 1, 2 * u + 1, 4);
            } else if (type == P_Q6_K && j < 2) {
                out[j] = move_bits(v, 4, 0, 0) | move_bits(more, 2, 2 * u, 4);
                out[2 + j] = move_bits(v, 4, 4, 0) | move_bits(more, 2, 4 + 2 * u, 4);
            } else if (type == P_Q3_K && j < 2) {
                REPEAT (o, 4)
                    out[4 * j + o] = move_bits(v, 2, 2 * (unsigned)o, 0) |
                                     move_bits(more, 1, 4 * u + (unsigned)o, 2);
            }
        }
    }
}

/* Return the factor of a sub-block from the words of its rows (block_sub_scale and block_sub_min),
 * m as they are in IQ4_XS. */
INLINE sums sub_scales(enum ptype type, const words *s, words m, size_t sub)
{
    const unsigned j = (unsigned)sub % 4 * 8, turn = (unsigned)sub / 4, u = (unsigned)sub;
    switch (type) {
    case P_Q2_K:
        return (sums)(s[turn] >> j & 15);
    case P_Q3_K:
        return (sums)((s[turn % 2] >> (j + turn / 2 * 4) & 15) | (s[2] >> (j + turn * 2) & 3)
                                                                     << 4) -
               32;
    case P_Q6_K:
        return (sums)(s[turn] << (24 - j)) >> 24;
    case P_IQ4_XS:
        return (sums)((s[0] >> u * 4 & 15) | (m >> u * 2 & 3) << 4) - 32;
    default:
        return (sums)(turn ? (s[2] >> j & 15) | (s[0] >> (j + 2) & 48) : s[0] >> j & 63);
    }
}

INLINE sums sub_mins(enum ptype type, const words *s, size_t sub)
{
    const unsigned j = (unsigned)sub % 4 * 8, turn = (unsigned)sub / 4;
    if (type == P_Q2_K)
        return (sums)(s[turn] >> (j + 4) & 15);
    return (sums)(turn ? (s[2] >> (j + 4) & 15) | (s[1] >> (j + 2) & 48) : s[1] >> j & 63);
}

/* Return how many words of sub-scales a row of a block has. */
INLINE size_t scale_words(enum ptype type)
{
    return type == P_IQ4_XS ? 1 : type == P_Q2_K || type == P_Q6_K ? 4 : 3;
}

/* Unpack the scales and offsets of a block: of 256 columns, or of 32. */
INLINE void unpack_factors(enum ptype type, struct factors *to, const struct block *b)
{
    const struct block_form *f = &block_forms[type];
    REPEAT (i, VECS) {
        words s[4];
        vec d = widen_halves(b->d + i * VEC * 2), m = d;
        if (f->offset)
            m = widen_halves(b->m + i * VEC * 2);
        if (f->cols == GROUP) {
            store_floats(to->scale[0] + i * VEC, d);
            if (f->offset)
                store_floats(to->offset[0] + i * VEC, m);
            continue;
        }
        halves high;
        memcpy(&high, b->m + i * VEC * 2, sizeof(high));
        REPEAT (j, 4)
            if (j < scale_words(type))
                s[j] = load_words(b->s + j * LINE + i * VEC_BYTES);
        REPEAT (sub, 16) {
            if (sub * f->sub == 256)
                break;
            struct factors *at = &to[sub / subs_of(type)];
            size_t in = sub % subs_of(type);
            sums scale = sub_scales(type, s, __builtin_convertvector(high, words), sub);
            store_floats(at->scale[in] + i * VEC, d * __builtin_convertvector(scale, vec));
            if (f->offset)
                store_floats(at->offset[in] + i * VEC,
                             -(m * __builtin_convertvector(sub_mins(type, s, sub), vec)));
        }
    }
}

/* Return what the sum of a sub-block begins with: -zero times the sum of its activations. g counts
 * groups over all tokens. */
INLINE sums sum_begin(enum ptype type, const struct qact *x, size_t g, size_t sub)
{
    int32_t zero = code_zero(type);
    if (!zero)
        return (sums){ 0 };
    bool whole = block_forms[type].sub == GROUP;
    sums b = (sums){ 0 } + (whole ? x->bias[g] : x->half[2 * g + sub]);
    return b >> __builtin_ctz((unsigned)((whole ? 128 : 32) / zero));
}

/* Add a sub-block: acc = fmaf((float)sum, scale_w * scale_x, acc), and its offset. */
INLINE vec add_sub(enum ptype type, vec acc, sums sum, const struct factors *f, size_t sub,
                   size_t i, const struct qact *x, size_t g)
{
    vec xs = vec_set1(x->scale[g]);
    acc = vec_fma(__builtin_convertvector(sum, vec),
                  vec_mul(load_floats(f->scale[sub] + i * VEC), xs), acc);
    if (!block_forms[type].offset)
        return acc;
    vec xsum = vec_set1(x->sum[g]);
    if (block_forms[type].sub < GROUP) {
        sums half = (sums){ 0 } + x->half[2 * g + sub];
        xsum = vec_mul(xs, __builtin_convertvector(-(half >> 5), vec));
    }
    return vec_fma(load_floats(f->offset[sub] + i * VEC), xsum, acc);
}

/* Move b on by a period. */
INLINE void next_period(enum ptype type, struct block *b)
{
    b->q += type == P_IQ4_XS ? 256 : type == P_Q6_K ? 1024 : 512;
    b->h += 512;
}

/* Prefetch what lies `ahead` behind `n` groups from group g on. */
INLINE void ask_groups(enum ptype type, const unsigned char *panel, const struct panels *w,
                       size_t g, size_t n, size_t ahead, size_t nt)
{
    const struct block_form *f = &block_forms[type];
    const size_t each = f->bytes / (f->panel_cols / GROUP);
    ask_ahead(panel, w->panel_bytes, g * each, ahead, 1, nt, (n * each + 63) / 64);
}

/* Unpack line `line` of the period that begins with group g of `to`. */
INLINE void unpack_line(enum ptype type, struct unpacked *to, size_t g, const struct block *b,
                        size_t line)
{
    REPEAT (i, VECS) {
        codes v[8];
        decode(type, v, b->q, b->h, line, i);
        REPEAT (o, decoded(type)) {
            unsigned char *at =
                paired(type) ? to->q[g] + (line + 4 * o) * LINE : to->q[g + o] + line * LINE;
            memcpy(at + i * VEC_BYTES, &v[o], sizeof(v[o]));
        }
    }
}

/* Unpack columns [k0, k1) of a panel. */
INLINE void unpack_codes(enum ptype type, struct unpacked *to, const struct panels *w, size_t p,
                         size_t k0, size_t k1, size_t ahead)
{
    const unsigned char *panel = w->data + p * w->panel_bytes;
    const size_t span = block_forms[type].cols, period = period_of(type);
    for (size_t k = k0; k < k1; k += span) {
        struct block b = block_at(type, panel, w->cols, k);
        size_t g = (k - k0) / GROUP;
        unpack_factors(type, to->f + g, &b);
        for (size_t m = 0; m < span / GROUP; m += period) {
            ask_groups(type, panel, w, k / GROUP + m, period, ahead, 4);
            if (paired(type))
                REPEAT (line, 4)
                    unpack_line(type, to, g + m, &b, line);
            else
                for (size_t line = 0; line < LINES; line++)
                    unpack_line(type, to, g + m, &b, line);
            next_period(type, &b);
        }
    }
}

/* Define one product with the set's own matmul_codes. */
#define PRODUCT(name, type)                                                                       \
    static void matmul_##name(float *y, size_t ldy, const struct panels *w, const struct qact *x, \
                              size_t n, size_t p0, size_t p1)                                     \
    {                                                                                             \
        matmul_codes(type, y, ldy, w, x, n, p0, p1);                                              \
    }

/* Define the products of a set; PRODUCTS_OF names them for its table. */
#define PRODUCTS(set)               \
    PRODUCT(q4_1_##set, P_Q4_1)     \
    PRODUCT(q5_0_##set, P_Q5_0)     \
    PRODUCT(q5_1_##set, P_Q5_1)     \
    PRODUCT(q2_k_##set, P_Q2_K)     \
    PRODUCT(q3_k_##set, P_Q3_K)     \
    PRODUCT(q4_k_##set, P_Q4_K)     \
    PRODUCT(q5_k_##set, P_Q5_K)     \
    PRODUCT(q6_k_##set, P_Q6_K)     \
    PRODUCT(iq4_nl_##set, P_IQ4_NL) \
    PRODUCT(iq4_xs_##set, P_IQ4_XS)
#define PRODUCTS_OF(set)                                                \
    .matmul_q4_1 = matmul_q4_1_##set, .matmul_q5_0 = matmul_q5_0_##set, \
    .matmul_q5_1 = matmul_q5_1_##set, .matmul_q2_k = matmul_q2_k_##set, \
    .matmul_q3_k = matmul_q3_k_##set, .matmul_q4_k = matmul_q4_k_##set, \
    .matmul_q5_k = matmul_q5_k_##set, .matmul_q6_k = matmul_q6_k_##set, \
    .matmul_iq4_nl = matmul_iq4_nl_##set, .matmul_iq4_xs = matmul_iq4_xs_##set

#endif

#endif
