/* avx512vnni_blocks.c - the types of blocks.h whose codes are smaller than bytes, on top of
 * avx512vnni.c.
 *
 * Up to DIRECT tokens, when memory is the limit, a tile decodes the weights between the products.
 * With more, the weights of a turn of columns are unpacked once for all tokens, into the L1 cache:
 * codes become bytes, scales and offsets floats, and the products are common to all types. Types
 * differ in code_512, sub_scale_512 and sub_min_512 only. */
#include <immintrin.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/sys/cpu.h"
#include "kernels/x86/tiles512.h"

/* The weights of one panel in a turn, as the products want them. Values without offset are stored
 * as value + 128, with sub-blocks of 16 columns as value + 32: bias and half of struct qact take
 * that off again. */
enum { TURN = 512 }; /* columns, a multiple of every block */
struct unpacked {
    _Alignas(64) unsigned char code[TURN / 4][64]; /* as in a panel: 16 rows x 4 columns */
    float scale[TURN / 16][PANEL];                 /* of each sub-block */
    float offset[TURN / 16][PANEL];
};

typedef void unpack_turn(struct unpacked *to, const struct panels *w, size_t p, size_t k0,
                         size_t k1, size_t ahead);

INLINE __m512i bytes_512(char value)
{
    return _mm512_set1_epi8(value);
}

/* Return the low or the high nibbles of a line. */
INLINE __m512i nibbles(const unsigned char *line, bool high)
{
    __m512i pair = _mm512_loadu_si512(line);
    return _mm512_and_si512(high ? _mm512_srli_epi16(pair, 4) : pair, bytes_512(15));
}

/* Return a line turned so that the two bits from bit 2 * i on become bits `to` and `to` + 1; the
 * other bits are any. */
INLINE __m512i two_bits(const unsigned char *line, size_t i, size_t to)
{
    return _mm512_rolv_epi32(_mm512_loadu_si512(line), _mm512_set1_epi32((int)(to - 2 * i) & 31));
}

/* Add `more` to the bytes of v where bit `bit` of the line is set. */
INLINE __m512i add_bit(__m512i v, const unsigned char *line, size_t bit, char more)
{
    __mmask64 set = _mm512_test_epi8_mask(_mm512_loadu_si512(line), bytes_512((char)(1 << bit)));
    return _mm512_mask_add_epi8(v, set, v, bytes_512(more));
}

/* Return (v & mask) | set. */
INLINE __m512i mask_set(__m512i v, char mask, char set)
{
    return _mm512_ternarylogic_epi64(v, bytes_512(mask), bytes_512(set), 0xea);
}

/* Return how many runs of 32 columns of a block are decoded by code of their own. */
INLINE size_t runs_of(enum ptype type)
{
    return type == P_Q4_K || type == P_Q5_K ? 2 : 1;
}

/* Return line c of 32 columns: run `first` + `turn` of a block, where turn is a constant below
 * runs_of(type), and first a multiple of that. */
INLINE __m512i code_512(enum ptype type, const struct block *b, size_t first, size_t turn, size_t c)
{
    const size_t at = first + turn;
    const __m512i iq4 =
        _mm512_broadcast_i32x4(_mm_add_epi8(_mm_setr_epi8(IQ4_VALUES), _mm_set1_epi8((char)-128)));
    const unsigned char *half = b->q + at * 256 + c % 4 * 64; /* whose high nibbles are 16..31 */
    const unsigned char *run = b->q + (at / 2 * 8 + c) * 64;  /* ... are the next 32 columns */
    const unsigned char *two = b->q + (at / 4 * 8 + c) * 64;
    __m512i v;
    switch (type) {
    case P_Q4:
        return _mm512_add_epi8(nibbles(half, c / 4), bytes_512(128 - 8));
    case P_Q4_1:
        return nibbles(half, c / 4);
    case P_Q5_0:
        v = _mm512_loadu_si512(half);
        v = mask_set(c / 4 ? _mm512_srli_epi16(v, 4) : v, 15, 128 - 16);
        return add_bit(v, b->h, c, 16);
    case P_Q5_1:
        return add_bit(nibbles(half, c / 4), b->h, c, 16);
    case P_IQ4_NL:
    case P_IQ4_XS:
        return _mm512_shuffle_epi8(iq4, nibbles(half, c / 4));
    case P_Q4_K:
        return nibbles(run, turn % 2);
    case P_Q5_K:
        return add_bit(nibbles(run, turn % 2), b->h + c * 64, at, 16);
    case P_Q6_K:
        v = _mm512_loadu_si512(b->q + (at / 4 * 16 + at % 2 * 8 + c) * 64);
        v = _mm512_ternarylogic_epi64(
            _mm512_srlv_epi16(v, _mm512_set1_epi16((short)(at % 4 / 2 * 4))), bytes_512(15),
            two_bits(b->h + (at / 4 * 8 + c) * 64, at % 4, 4), 0xe2);
        return _mm512_and_si512(v, bytes_512(63));
    case P_Q2_K:
        return _mm512_and_si512(two_bits(two, at % 4, 0), bytes_512(3));
    default: /* P_Q3_K */
        v = mask_set(two_bits(two, at % 4, 0), 3, 32 - 4);
        return add_bit(v, b->h + c * 64, at, 4);
    }
}

/* Return word i of the sub-scales, shifted right; the bits above the ones wanted are any. */
INLINE __m512i word_512(const struct block *b, size_t i, size_t shift)
{
    return _mm512_srli_epi32(_mm512_loadu_si512(b->s + i * 64), (unsigned char)shift);
}

/* Return the low `bits` bits of a, and, above them, two bits of b that are in their place. */
INLINE __m512i field_512(__m512i a, int bits, __m512i b)
{
    const __m512i low = _mm512_set1_epi32((1 << bits) - 1), two = _mm512_set1_epi32(3 << bits);
    return _mm512_or_si512(_mm512_and_si512(a, low), _mm512_and_si512(b, two));
}

/* The factor of a sub-block, as block_sub_scale defines it. */
INLINE __m512i sub_scale_512(enum ptype type, const struct block *b, size_t sub)
{
    const __m512i centre = _mm512_set1_epi32(32);
    size_t at = sub % 4 * 8;
    __m512i v;
    switch (type) {
    case P_Q2_K:
        return _mm512_and_si512(word_512(b, sub / 4, at), _mm512_set1_epi32(15));
    case P_Q3_K: /* the two bits of sub-block `sub` are at 2 * (sub / 4) of byte sub % 4 of word 2
                  */
        v = _mm512_loadu_si512(b->s + 128);
        v = at + sub / 4 * 2 < 4 ? _mm512_slli_epi32(v, (unsigned char)(4 - at - sub / 4 * 2))
                                 : _mm512_srli_epi32(v, (unsigned char)(at + sub / 4 * 2 - 4));
        v = field_512(word_512(b, sub / 4 % 2, at + sub / 8 * 4), 4, v);
        return _mm512_sub_epi32(v, centre);
    case P_Q4_K:
    case P_Q5_K:
        if (sub < 4)
            return _mm512_and_si512(word_512(b, 0, at), _mm512_set1_epi32(63));
        return field_512(word_512(b, 2, at), 4, word_512(b, 0, at + 2));
    case P_Q6_K:
        v = _mm512_loadu_si512(b->s + sub / 4 * 64);
        return _mm512_srai_epi32(_mm512_slli_epi32(v, (unsigned char)(24 - at)), 24);
    default: /* P_IQ4_XS */
        v = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)b->m));
        v = sub < 2 ? _mm512_slli_epi32(v, (unsigned char)(4 - 2 * sub))
                    : _mm512_srli_epi32(v, (unsigned char)(2 * sub - 4));
        return _mm512_sub_epi32(field_512(word_512(b, 0, 4 * sub), 4, v), centre);
    }
}

/* The factor of the minimum, as block_sub_min defines it. */
INLINE __m512i sub_min_512(enum ptype type, const struct block *b, size_t sub)
{
    size_t at = sub % 4 * 8;
    if (type == P_Q2_K)
        return _mm512_and_si512(word_512(b, sub / 4, at + 4), _mm512_set1_epi32(15));
    if (sub < 4)
        return _mm512_and_si512(word_512(b, 1, at), _mm512_set1_epi32(63));
    return field_512(word_512(b, 2, at + 4), 4, word_512(b, 1, at + 2));
}

INLINE __m512 halves_512(const unsigned char *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* The scales and offsets of a block, one for each sub-block. */
struct scales {
    _Alignas(64) float scale[16][PANEL];
    float offset[16][PANEL];
};

typedef void unpack_scales(float (*scale)[PANEL], float (*offset)[PANEL], const struct block *b);

INLINE void scales_512(enum ptype type, float (*scale)[PANEL], float (*offset)[PANEL],
                       const struct block *b)
{
    const struct block_form f = block_forms[type];
    const size_t subs = (size_t)f.cols / f.sub;
    __m512 d = halves_512(b->d);
    REPEAT (sub, 16) {
        if (sub == subs)
            break;
        __m512 factor = _mm512_cvtepi32_ps(sub_scale_512(type, b, sub));
        _mm512_store_ps(scale[sub], f.cols == GROUP ? d : _mm512_mul_ps(d, factor));
    }
    if (!f.offset)
        return;
    __m512 m = halves_512(b->m), minus = _mm512_xor_ps(m, _mm512_set1_ps(-0.0f));
    REPEAT (sub, 16) {
        if (sub == subs)
            break;
        __m512 factor = _mm512_cvtepi32_ps(sub_min_512(type, b, sub));
        _mm512_store_ps(offset[sub], f.cols == GROUP ? m : _mm512_mul_ps(minus, factor));
    }
}

/* Return the bytes that 32 columns of a panel take. */
INLINE size_t run_bytes(enum ptype type)
{
    return (size_t)block_forms[type].bytes * GROUP / block_forms[type].panel_cols;
}

/* Unpack columns [k0, k1) of panel p. */
INLINE void unpack_512(enum ptype type, unpack_scales *scales, struct unpacked *to,
                       const struct panels *w, size_t p, size_t k0, size_t k1, size_t ahead)
{
    const struct block_form f = block_forms[type];
    const unsigned char *panel = w->data + p * w->panel_bytes;
    for (size_t k = k0; k < k1; k += f.cols) {
        const struct block b = block_at(type, panel, w->cols, k);
        unsigned char(*code)[64] = &to->code[(k - k0) / 4];
        scales(&to->scale[(k - k0) / f.sub], &to->offset[(k - k0) / f.sub], &b);
        for (size_t first = 0; first < f.cols / GROUP; first += runs_of(type))
            REPEAT (turn, runs_of(type)) {
                ask_ahead(panel, w->panel_bytes, (k / GROUP + first + turn) * run_bytes(type),
                          ahead, 1, 4, (run_bytes(type) + 63) / 64);
                REPEAT (c, 8)
                    _mm512_store_si512(code[(first + turn) * 8 + c],
                                       code_512(type, &b, first, turn, c));
            }
    }
}

/* Broadcast four activations, so that every row meets them. */
INLINE __m512i bcast4(const int8_t *x)
{
    int32_t v;
    memcpy(&v, x, sizeof(v));
    return _mm512_set1_epi32(v);
}

/* Return the first value of the sums of a sub-block, half `half` of group g or the whole: what
 * takes off what its codes are above its values. */
INLINE __m512i first_512(size_t sub, bool offset, const struct qact *x, size_t g, size_t half)
{
    return _mm512_set1_epi32(offset ? 0 : sub < GROUP ? x->half[2 * g + half] : x->bias[g]);
}

/* Add a sub-block to a sum: its products, and, if the type has one, its offset. */
INLINE void add_block(__m512 *acc, __m512i sum, const float *scale, const float *offset, size_t sub,
                      bool has_offset, const struct qact *x, size_t g, size_t half)
{
    __m512 xs = _mm512_set1_ps(x->scale[g]), factor = _mm512_set1_ps(x->sum[g]);
    *acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(_mm512_load_ps(scale), xs), *acc);
    if (!has_offset)
        return;
    if (sub < GROUP) {
        factor = _mm512_cvtepi32_ps(_mm512_set1_epi32(x->half[2 * g + half]));
        factor = _mm512_mul_ps(xs, _mm512_mul_ps(factor, _mm512_set1_ps(-0x1p-5f)));
    }
    *acc = _mm512_fmadd_ps(_mm512_load_ps(offset), factor, *acc);
}

/* The common tile, on unpacked weights. */
INLINE void tile_blocks(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1,
                        const struct unpacked *u, size_t sub, bool offset, float *y, size_t ldy,
                        const struct panels *w, const struct qact *x)
{
    size_t cols = w->cols, groups = cols / GROUP;
    __m512 acc[12];
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t k = k0; k < k1; k += sub) {
        const int8_t *xq = x->q + t * cols + k;
        size_t g = t * groups + k / GROUP, s = (k - k0) / sub;
        __m512i sum[12];
        if (k % GROUP == 0 && nt > 3)
            REPEAT (j, nt)
                __builtin_prefetch(xq + (nt + j) * cols, 0, 3); /* the next tile's */
        REPEAT (i, np * nt)
            sum[i] = first_512(sub, offset, x, g + i % nt * groups, k % GROUP / sub);
        REPEAT (c, sub / 4) {
            __m512i wq[2];
            REPEAT (i, np)
                wq[i] = _mm512_load_si512(u[i].code[(k - k0) / 4 + c]);
            REPEAT (j, nt)
                REPEAT (i, np)
                    sum[i * nt + j] =
                        _mm512_dpbusd_epi32(sum[i * nt + j], wq[i], bcast4(xq + j * cols + c * 4));
        }
        REPEAT (j, nt)
            REPEAT (i, np)
                add_block(&acc[i * nt + j], sum[i * nt + j], u[i].scale[s], u[i].offset[s], sub,
                          offset, x, g + j * groups, k % GROUP / sub);
    }
    store_tile(y, ldy, acc, np, nt);
}

/* The tile for so few tokens that memory is the limit: it decodes the weights of np panels between
 * the products, so that the reads of memory are spread evenly. */
INLINE void tile_direct(size_t np, size_t nt, size_t p, size_t t, size_t ahead, enum ptype type,
                        unpack_scales *scales, float *y, size_t ldy, const struct panels *w,
                        const struct qact *x)
{
    const struct block_form f = block_forms[type];
    const unsigned char *panel = w->data + p * w->panel_bytes;
    size_t cols = w->cols, groups = cols / GROUP;
    const int8_t *row[8]; /* the activations of each token */
    __m512 acc[8];
    REPEAT (j, nt)
        row[j] = x->q + (t + j) * cols;
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, 0);
    for (size_t k = 0; k < cols; k += f.cols) {
        struct block b[2];
        struct scales s[2];
        REPEAT (i, np) {
            b[i] = block_at(type, panel + i * w->panel_bytes, cols, k);
            scales(s[i].scale, s[i].offset, &b[i]);
        }
        for (size_t first = 0; first < f.cols / GROUP; first += runs_of(type))
            REPEAT (turn, runs_of(type)) {
                size_t g = k / GROUP + first + turn;
                ask_ahead(panel, w->panel_bytes, g * run_bytes(type), ahead, np, nt,
                          (run_bytes(type) + 63) / 64);
                g += t * groups;
                REPEAT (half, 2) {
                    if (half * f.sub == GROUP)
                        break;
                    size_t sub = (first + turn) * GROUP / f.sub + half;
                    size_t at = k + (first + turn) * GROUP + half * f.sub;
                    __m512i sum[8];
                    REPEAT (j, np * nt)
                        sum[j] = first_512(f.sub, f.offset, x, g + j % nt * groups, half);
                    REPEAT (c, f.sub / 4u)
                        REPEAT (i, np) {
                            __m512i wq = code_512(type, &b[i], first, turn, half * 4 + c);
                            REPEAT (j, nt)
                                sum[i * nt + j] = _mm512_dpbusd_epi32(sum[i * nt + j], wq,
                                                                      bcast4(row[j] + at + c * 4));
                        }
                    REPEAT (j, nt)
                        REPEAT (i, np)
                            add_block(&acc[i * nt + j], sum[i * nt + j], s[i].scale[sub],
                                      s[i].offset[sub], f.sub, f.offset, x, g + j * groups, half);
                }
            }
    }
    store_tile(y, ldy, acc, np, nt);
}

/* Unpack the same columns of np panels. Up to FEW_TOKENS this prefetches, beyond tiles do. */
INLINE void unpack_panels(size_t np, unpack_turn *unpack, struct unpacked *u,
                          const struct panels *w, size_t p, size_t k0, size_t k1, size_t n)
{
    REPEAT (i, np)
        unpack(&u[i], w, p + i, k0, k1, n > FEW_TOKENS ? 0 : ahead_of(w, n));
}

#define BLOCKS_TURNS(most, np)                                                                 \
    CUT(most, np, (size_t)TURN, unpack_panels(np, unpack, u, w, p, k0, k1, n), tile_blocks, u, \
        sub, offset, y, ldy, w, x)

/* Every product, with a constant sub-block and presence of offsets. */
INLINE void products(unpack_turn *unpack, size_t sub, bool offset, float *y, size_t ldy,
                     const struct panels *w, const struct qact *x, size_t n, size_t p0, size_t p1)
{
    struct unpacked u[2];
    size_t p = p0;
    BLOCKS_TURNS(6, 2);
    BLOCKS_TURNS(6, 1);
}

static void products_32(unpack_turn *unpack, float *y, size_t ldy, const struct panels *w,
                        const struct qact *x, size_t n, size_t p0, size_t p1)
{
    products(unpack, 32, false, y, ldy, w, x, n, p0, p1);
}

static void products_32_offset(unpack_turn *unpack, float *y, size_t ldy, const struct panels *w,
                               const struct qact *x, size_t n, size_t p0, size_t p1)
{
    products(unpack, 32, true, y, ldy, w, x, n, p0, p1);
}

static void products_16(unpack_turn *unpack, float *y, size_t ldy, const struct panels *w,
                        const struct qact *x, size_t n, size_t p0, size_t p1)
{
    products(unpack, 16, false, y, ldy, w, x, n, p0, p1);
}

static void products_16_offset(unpack_turn *unpack, float *y, size_t ldy, const struct panels *w,
                               const struct qact *x, size_t n, size_t p0, size_t p1)
{
    products(unpack, 16, true, y, ldy, w, x, n, p0, p1);
}

enum { DIRECT = 8 }; /* tokens of tile_direct */

#define MATMUL(name, type, products)                                                              \
    static void scales_##name(float(*scale)[PANEL], float(*offset)[PANEL], const struct block *b) \
    {                                                                                             \
        scales_512(type, scale, offset, b);                                                       \
    }                                                                                             \
    static void unpack_##name(struct unpacked *to, const struct panels *w, size_t p, size_t k0,   \
                              size_t k1, size_t ahead)                                            \
    {                                                                                             \
        unpack_512(type, scales_##name, to, w, p, k0, k1, ahead);                                 \
    }                                                                                             \
    static void matmul_##name##_avx512vnni(float *y, size_t ldy, const struct panels *w,          \
                                           const struct qact *x, size_t n, size_t p0, size_t p1)  \
    {                                                                                             \
        size_t p = p0;                                                                            \
        if (n <= 2 && tune_of(w).panels > 1)                                                      \
            WALK(2, 2, tile_direct, AHEAD, type, scales_##name, y, ldy, w, x);                    \
        if (n <= DIRECT)                                                                          \
            WALK(8, 1, tile_direct, AHEAD, type, scales_##name, y, ldy, w, x);                    \
        else                                                                                      \
            products(unpack_##name, y, ldy, w, x, n, p, p1);                                      \
    }

MATMUL(q4, P_Q4, products_32)
MATMUL(q4_1, P_Q4_1, products_32_offset)
MATMUL(q5_0, P_Q5_0, products_32)
MATMUL(q5_1, P_Q5_1, products_32_offset)
MATMUL(q2_k, P_Q2_K, products_16_offset)
MATMUL(q3_k, P_Q3_K, products_16)
MATMUL(q4_k, P_Q4_K, products_32_offset)
MATMUL(q5_k, P_Q5_K, products_32_offset)
MATMUL(q6_k, P_Q6_K, products_16)
MATMUL(iq4_nl, P_IQ4_NL, products_32)
MATMUL(iq4_xs, P_IQ4_XS, products_32)

const struct kernels kernels_avx512vnni_blocks = {
    .isa = "avx512vnni",
    .needs = CPU_AVX2 | CPU_AVX512 | CPU_AVX512VNNI,
    .matmul_q4 = matmul_q4_avx512vnni,
    .matmul_q4_1 = matmul_q4_1_avx512vnni,
    .matmul_q5_0 = matmul_q5_0_avx512vnni,
    .matmul_q5_1 = matmul_q5_1_avx512vnni,
    .matmul_q2_k = matmul_q2_k_avx512vnni,
    .matmul_q3_k = matmul_q3_k_avx512vnni,
    .matmul_q4_k = matmul_q4_k_avx512vnni,
    .matmul_q5_k = matmul_q5_k_avx512vnni,
    .matmul_q6_k = matmul_q6_k_avx512vnni,
    .matmul_iq4_nl = matmul_iq4_nl_avx512vnni,
    .matmul_iq4_xs = matmul_iq4_xs_avx512vnni,
};
