#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/panels.h"
#include "kernels/tiles.h"

enum {
    GGUF_Q8_0 = 34, /* f16 scale, i8[32] */
    GGUF_Q4_0 = 18, /* f16 scale, u8[16], whose low nibbles are columns 0..15 */
};

const char *panels_type_name(enum ptype type)
{
    static const char *const names[] = { "f32", "bf16", "q8_0", "q4_0" };
    return names[type];
}

size_t panels_count(size_t rows)
{
    return rows / PANEL + (rows % PANEL != 0);
}

bool panels_bytes(size_t *panel_bytes, size_t *total, enum ptype type, size_t rows, size_t cols)
{
    size_t units, bytes, all;
    bool grouped = type == P_Q8 || type == P_Q4;
    if (!cols || (grouped && cols % GROUP))
        return false;
    if (grouped)
        units = cols / (2 * GROUP) + (cols % (2 * GROUP) != 0);
    else
        units = type == P_BF16 ? cols / 2 + cols % 2 : cols;
    size_t unit = type == P_Q8 ? Q8_BLOCK : type == P_Q4 ? Q4_BLOCK : PANEL * sizeof(float);
    if (!size_mul(&bytes, units, unit) || !size_mul(&all, bytes, panels_count(rows)))
        return false;
    *panel_bytes = bytes;
    *total = all;
    return true;
}

static uint16_t panels_load_u16(const unsigned char *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static uint32_t load_u32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static void store_u32(unsigned char *p, uint32_t v)
{
    memcpy(p, &v, sizeof(v));
}

/* Return how many rows of panel p the matrix has; the last panel may be partial. */
static size_t rows_in(size_t rows, size_t p)
{
    size_t left = rows - p * PANEL;
    return left < PANEL ? left : PANEL;
}

/* Four words in a register; every compiler knows the processor's baseline instructions for it. */
#define QUAD __attribute__((vector_size(16))) uint32_t

/* Pick four words of a and b, which are numbered 0 to 7. */
#if defined(__clang__)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (QUAD){ i, j, k, l })
#endif

/* Turn four rows of four words, `stride` bytes apart, into four columns, 64 bytes apart. */
INLINE void turn_quads(unsigned char *dst, const unsigned char *src, size_t stride, uint32_t flip)
{
    QUAD a, b, c, d, low, high, x, y;
    memcpy(&a, src, 16);
    memcpy(&b, src + stride, 16);
    memcpy(&c, src + 2 * stride, 16);
    memcpy(&d, src + 3 * stride, 16);
    low = PICK(a, b, 0, 4, 1, 5) ^ flip, x = PICK(c, d, 0, 4, 1, 5) ^ flip;
    high = PICK(a, b, 2, 6, 3, 7) ^ flip, y = PICK(c, d, 2, 6, 3, 7) ^ flip;
    a = PICK(low, x, 0, 1, 4, 5), b = PICK(low, x, 2, 3, 6, 7);
    c = PICK(high, y, 0, 1, 4, 5), d = PICK(high, y, 2, 3, 6, 7);
    memcpy(dst, &a, 16);
    memcpy(dst + 64, &b, 16);
    memcpy(dst + 128, &c, 16);
    memcpy(dst + 192, &d, 16);
}

/* Store word j of each of the first `have` rows, which are `stride` bytes apart, in column j of a
 * panel of 32-bit words, for j < n. The bits of flip are inverted. */
INLINE void turn_rows(unsigned char *dst, const unsigned char *src, size_t stride, size_t have,
                      size_t n, uint32_t flip)
{
    size_t j = 0;
    for (; have == PANEL && j + 4 <= n; j += 4)
        for (size_t r = 0; r < PANEL; r += 4)
            turn_quads(dst + j * 64 + r * 4, src + r * stride + j * 4, stride, flip);
    for (; j < n; j++)
        for (size_t r = 0; r < have; r++)
            store_u32(dst + j * 64 + r * 4, load_u32(src + r * stride + j * 4) ^ flip);
}

/* Ask for the rows of a panel in the order of memory. Reading 16 rows side by side confuses the
 * hardware prefetcher when they share pages; long rows do not. */
static void ask_rows(const unsigned char *src, size_t bytes)
{
    enum { MOST = 24576 }; /* what stays in L1 beside the panel that is written */
    for (size_t i = 0; bytes <= MOST && i < bytes; i += 64)
        __builtin_prefetch(src + i);
}

void panels_pack_f32(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    size_t have = rows_in(rows, p), row_bytes = cols * sizeof(float);
    if (have < PANEL)
        memset(dst, 0, cols * PANEL * sizeof(float));
    turn_rows(dst, (const unsigned char *)src + p * PANEL * row_bytes, row_bytes, have, cols, 0);
}

/* Widen four halves as f32_from_f16 does: small ones are mag * 2^-24, large ones infinite or NaN.
 */
INLINE QUAD widen_quad(const unsigned char *p)
{
    __attribute__((vector_size(8))) uint16_t half;
    __attribute__((vector_size(16))) float tiny;
    memcpy(&half, p, sizeof(half));
    QUAD h = __builtin_convertvector(half, QUAD), mag = h & 0x7fff;
    QUAD small = (QUAD)(mag < 0x400), large = (QUAD)(mag >= 0x7c00);
    QUAD quiet = (QUAD)(mag > 0x7c00) & 0x400000;
    QUAD usual = ((mag << 13) + (112u << 23) + (large & (112u << 23))) | quiet;
    tiny =
        __builtin_convertvector((__attribute__((vector_size(16))) int32_t)mag, __typeof__(tiny)) *
        0x1p-24f;
    return (h & 0x8000) << 16 | (small & (QUAD)tiny) | (~small & usual);
}

void panels_pack_f16(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    enum { SOME = 64 };
    float wide[PANEL][SOME];
    size_t have = rows_in(rows, p);
    const unsigned char *s = (const unsigned char *)src + p * PANEL * cols * 2;
    if (have < PANEL)
        memset(dst, 0, cols * PANEL * sizeof(float));
    for (size_t k = 0; k < cols; k += SOME) {
        size_t n = cols - k < SOME ? cols - k : SOME;
        for (size_t r = 0; r < have; r++) {
            const unsigned char *h = s + (r * cols + k) * 2;
            size_t i = 0;
            for (; i + 4 <= n; i += 4) {
                QUAD f = widen_quad(h + i * 2);
                memcpy(&wide[r][i], &f, sizeof(f));
            }
            for (; i < n; i++)
                wide[r][i] = f32_from_f16(panels_load_u16(h + i * 2));
        }
        turn_rows(dst + k * 64, (const unsigned char *)wide, sizeof(wide[0]), have, n, 0);
    }
}

/* A word is two columns of a row; an odd last column goes alone. */
void panels_pack_bf16(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    size_t have = rows_in(rows, p), words = cols / 2;
    const unsigned char *s = (const unsigned char *)src + p * PANEL * cols * 2;
    if (have < PANEL)
        memset(dst, 0, words * 64);
    turn_rows(dst, s, cols * 2, have, words, 0);
    if (cols % 2) {
        memset(dst + words * 64, 0, 64);
        for (size_t r = 0; r < have; r++)
            memcpy(dst + words * 64 + r * 4, s + (r * cols + cols - 1) * 2, 2);
    }
}

/* Pack groups of 32 columns: in GGUF a scale and n words for each row, in a panel 16 scales and n
 * columns of words. Rows and groups that the matrix lacks become zeros: scale 0, bytes `none`. */
INLINE void pack_groups(unsigned char *dst, const unsigned char *src, size_t have, size_t groups,
                        size_t n, uint32_t flip, int none)
{
    size_t block = 2 + n * 4, stride = groups * block, half = n * 64;
    ask_rows(src, have * stride);
    for (size_t g = 0; g < groups + groups % 2; g++) {
        unsigned char *scale = dst + g / 2 * (SCALES + 2 * half) + g % 2 * 32;
        unsigned char *q = dst + g / 2 * (SCALES + 2 * half) + SCALES + g % 2 * half;
        const unsigned char *b = src + g * block;
        if (g == groups || have < PANEL) {
            memset(scale, 0, 32);
            memset(q, none, half);
        }
        if (g == groups)
            break;
        for (size_t r = 0; r < have; r++)
            memcpy(scale + r * 2, b + r * stride, 2);
        turn_rows(q, b + 2, stride, have, n, flip);
    }
}

/* Flipping the top bit of each byte adds 128. */
void panels_pack_q8_0(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    size_t groups = cols / GROUP;
    const unsigned char *s = (const unsigned char *)src + p * PANEL * groups * GGUF_Q8_0;
    pack_groups(dst, s, rows_in(rows, p), groups, 8, 0x80808080u, 128);
}

/* GGUF stores nibbles as value + 8 already, low ones for columns 0..15, so bytes are only moved. */
void panels_pack_q4_0(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    size_t groups = cols / GROUP;
    const unsigned char *s = (const unsigned char *)src + p * PANEL * groups * GGUF_Q4_0;
    pack_groups(dst, s, rows_in(rows, p), groups, 4, 0, 0x88);
}

/* Dequantise row r of a Q8 panel into out[cols]. */
static void row_q8(float *out, const unsigned char *panel, size_t r, size_t cols)
{
    for (size_t k = 0; k < cols; k++) {
        const unsigned char *b = panel + k / 64 * Q8_BLOCK;
        size_t g = k / GROUP % 2, c = k % GROUP;
        int q = b[SCALES + g * 512 + c / 4 * 64 + r * 4 + c % 4] - 128;
        out[k] = (float)q * f32_from_f16(panels_load_u16(b + g * 32 + r * 2));
    }
}

/* Dequantise row r of a Q4 panel into out[cols]. */
static void row_q4(float *out, const unsigned char *panel, size_t r, size_t cols)
{
    for (size_t k = 0; k < cols; k++) {
        const unsigned char *b = panel + k / 64 * Q4_BLOCK;
        size_t g = k / GROUP % 2, c = k % (GROUP / 2);
        int pair = b[SCALES + g * 256 + c / 4 * 64 + r * 4 + c % 4];
        int q = (k % GROUP < GROUP / 2 ? pair & 15 : pair >> 4) - 8;
        out[k] = (float)q * f32_from_f16(panels_load_u16(b + g * 32 + r * 2));
    }
}

void panels_row(float *out, const struct panels *w, size_t r)
{
    const unsigned char *panel = w->data + r / PANEL * w->panel_bytes;
    r %= PANEL;
    switch (w->type) {
    case P_F32:
        for (size_t k = 0; k < w->cols; k++)
            memcpy(out + k, panel + (k * PANEL + r) * sizeof(float), sizeof(float));
        break;
    case P_BF16:
        for (size_t k = 0; k < w->cols; k++)
            out[k] = f32_from_bf16(panels_load_u16(panel + ((k / 2 * PANEL + r) * 2 + k % 2) * 2));
        break;
    case P_Q8:
        row_q8(out, panel, r, w->cols);
        break;
    case P_Q4:
        row_q4(out, panel, r, w->cols);
        break;
    }
}
