/* avx512vnni.c - AVX-512's byte dot product, on top of avx512.c. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/x86/tiles512.h"

/* Broadcast four activations, so that every row meets them. */
INLINE __m512i bcast4(const int8_t *x)
{
    int32_t v;
    memcpy(&v, x, sizeof(v));
    return _mm512_set1_epi32(v);
}

/* Add one group: acc = fmaf((float)sum, scale_w * scale_x, acc). `scale` points to the scales of
 * the first panel. */
INLINE void add_group(__m512 *acc, const __m512i *sum, size_t np, size_t nt,
                      const unsigned char *scale, size_t panel_bytes, const float *xs, size_t ldxs)
{
    REPEAT (i, np) {
        const void *s = scale + i * panel_bytes;
        __m512 ws = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)s));
        REPEAT (j, nt)
            acc[i * nt + j] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[i * nt + j]),
                                _mm512_mul_ps(ws, _mm512_set1_ps(xs[j * ldxs])), acc[i * nt + j]);
    }
}

/* Weights are stored as value + 128, because the instruction needs one unsigned side. Each sum
 * starts at -128 * sum(x), which takes the 128 off again. */
INLINE void tile_q8(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1, size_t ahead,
                    float *y, size_t ldy, const struct panels *w, const struct qact *x)
{
    const unsigned char *panel = w->data + p * w->panel_bytes;
    size_t cols = w->cols, groups = cols / GROUP;
    __m512 acc[12];
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t g = k0 / GROUP; g < k1 / GROUP; g++) {
        const unsigned char *b = panel + g / 2 * Q8_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 512;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        REPEAT (j, nt)
            if (np > 1 && nt > 1)
                __builtin_prefetch(xq + (nt + j) * cols, 0, 3); /* the next tile's */
        ask_ahead(panel, w->panel_bytes, g * (Q8_BLOCK / 2), ahead, np, nt, 9);
        __m512i sum[12];
        REPEAT (i, np * nt)
            sum[i] = _mm512_set1_epi32(x->bias[(t + i % nt) * groups + g]);
        REPEAT (c, 8) {
            __m512i wq[4];
            REPEAT (i, np)
                wq[i] = _mm512_loadu_si512(q + i * w->panel_bytes + c * 64);
            REPEAT (i, np * nt)
                sum[i] =
                    _mm512_dpbusd_epi32(sum[i], wq[i / nt], bcast4(xq + i % nt * cols + c * 4));
        }
        add_group(acc, sum, np, nt, b + g % 2 * 32, w->panel_bytes, x->scale + t * groups + g,
                  groups);
    }
    store_tile(y, ldy, acc, np, nt);
}

/* Up to FEW_TOKENS, panels are walked one at a time: memory likes one plain stream. Two at a time
 * need half of the broadcasts, which counts when products wait for the multipliers. Some families
 * like two streams when there are few tokens (tune.h). */
static void matmul_q8_avx512vnni(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                                 size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n > FEW_TOKENS)
        TURNS(6, 2, tile_q8, y, ldy, w, x);
    else if (n <= 3 && tune_of(w).panels > 1)
        TURNS(3, 2, tile_q8, y, ldy, w, x);
    TURNS(8, 1, tile_q8, y, ldy, w, x);
}

/* As Q8, with value + 8 in a nibble: low nibbles are columns 0..15 of a group, high ones 16..31. */
INLINE void tile_q4(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1, size_t ahead,
                    float *y, size_t ldy, const struct panels *w, const struct qact *x)
{
    const __m512i nibble = _mm512_set1_epi8(15);
    const unsigned char *panel = w->data + p * w->panel_bytes;
    size_t cols = w->cols, groups = cols / GROUP;
    __m512 acc[12];
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t g = k0 / GROUP; g < k1 / GROUP; g++) {
        const unsigned char *b = panel + g / 2 * Q4_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 256;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        REPEAT (j, nt)
            if (np > 1 && nt > 1)
                __builtin_prefetch(xq + (nt + j) * cols, 0, 3); /* the next tile's */
        ask_ahead(panel, w->panel_bytes, g * (Q4_BLOCK / 2), ahead, np, nt, 5);
        __m512i sum[12];
        REPEAT (i, np * nt)
            sum[i] = _mm512_srai_epi32(_mm512_set1_epi32(x->bias[(t + i % nt) * groups + g]), 4);
        REPEAT (c, 4) {
            __m512i lo[4], hi[4];
            REPEAT (i, np) {
                __m512i pair = _mm512_loadu_si512(q + i * w->panel_bytes + c * 64);
                lo[i] = _mm512_and_si512(pair, nibble);
                hi[i] = _mm512_and_si512(_mm512_srli_epi16(pair, 4), nibble);
            }
            REPEAT (i, np * nt) {
                const int8_t *xc = xq + i % nt * cols + c * 4;
                sum[i] = _mm512_dpbusd_epi32(sum[i], lo[i / nt], bcast4(xc));
                sum[i] = _mm512_dpbusd_epi32(sum[i], hi[i / nt], bcast4(xc + 16));
            }
        }
        add_group(acc, sum, np, nt, b + g % 2 * 32, w->panel_bytes, x->scale + t * groups + g,
                  groups);
    }
    store_tile(y, ldy, acc, np, nt);
}

/* How many columns of one panel fit into UNPACKED, at 512 bytes per group. */
enum { BYTE_COLUMNS = UNPACKED / 512 * GROUP };

/* Unpack the nibbles of columns [k0, k1) of np panels into bytes. A turn's weights then serve all
 * tokens, and the masks and shifts are paid once. */
INLINE void unpack_q4(size_t np, unsigned char *to, const struct panels *w, size_t p, size_t k0,
                      size_t k1)
{
    const __m512i nibble = _mm512_set1_epi8(15);
    for (size_t i = 0; i < np; i++)
        for (size_t g = k0 / GROUP; g < k1 / GROUP; g++) {
            const unsigned char *q =
                w->data + (p + i) * w->panel_bytes + g / 2 * Q4_BLOCK + SCALES + g % 2 * 256;
            unsigned char *out = to + (i * (BYTE_COLUMNS / np) + g * GROUP - k0) * 16;
            REPEAT (c, 4) {
                __m512i pair = _mm512_loadu_si512(q + c * 64);
                _mm512_store_si512(out + c * 64, _mm512_and_si512(pair, nibble));
                _mm512_store_si512(out + 256 + c * 64,
                                   _mm512_and_si512(_mm512_srli_epi16(pair, 4), nibble));
            }
        }
}

/* The tile for many tokens: tile_q8 on unpacked nibbles, with the bias of Q4. */
INLINE void tile_nibbles(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1,
                         const unsigned char *unpacked, float *y, size_t ldy,
                         const struct panels *w, const struct qact *x)
{
    size_t cols = w->cols, groups = cols / GROUP, each = BYTE_COLUMNS / np * 16;
    __m512 acc[12];
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t g = k0 / GROUP; g < k1 / GROUP; g++, unpacked += 512) {
        const unsigned char *scale = w->data + p * w->panel_bytes + g / 2 * Q4_BLOCK + g % 2 * 32;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        REPEAT (j, nt)
            __builtin_prefetch(xq + (nt + j) * cols, 0, 3); /* the next tile's */
        __m512i sum[12];
        REPEAT (i, np * nt)
            sum[i] = _mm512_srai_epi32(_mm512_set1_epi32(x->bias[(t + i % nt) * groups + g]), 4);
        REPEAT (c, 8) {
            __m512i wq[2];
            REPEAT (i, np)
                wq[i] = _mm512_load_si512(unpacked + i * each + c * 64);
            REPEAT (i, np * nt)
                sum[i] =
                    _mm512_dpbusd_epi32(sum[i], wq[i / nt], bcast4(xq + i % nt * cols + c * 4));
        }
        add_group(acc, sum, np, nt, scale, w->panel_bytes, x->scale + t * groups + g, groups);
    }
    store_tile(y, ldy, acc, np, nt);
}

static void matmul_q4_avx512vnni(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                                 size_t n, size_t p0, size_t p1)
{
    _Alignas(64) unsigned char unpacked[UNPACKED];
    size_t p = p0;
    if (n > FEW_TOKENS)
        UNPACKED_TURNS(6, 2, unpack_q4, BYTE_COLUMNS, tile_nibbles, y, ldy, w, x);
    else if (n <= 3 && tune_of(w).panels > 1)
        TURNS(3, 2, tile_q4, y, ldy, w, x);
    TURNS(8, 1, tile_q4, y, ldy, w, x);
}

const struct kernels kernels_avx512vnni = {
    .isa = "avx512vnni",
    .needs = CPU_AVX2 | CPU_AVX512 | CPU_AVX512VNNI,
    .rest = &kernels_avx512vnni_blocks,
    .matmul_q8 = matmul_q8_avx512vnni,
    .matmul_q4 = matmul_q4_avx512vnni,
};
