#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/blocks.h"
#include "kernels/math.h"
#include "kernels/panels.h"

const char *panels_type_name(enum ptype type)
{
    static const char *const names[P_TYPES] = { "f32",  "bf16", "q8_0",   "q4_0",  "q4_1",
                                                "q5_0", "q5_1", "q2_k",   "q3_k",  "q4_k",
                                                "q5_k", "q6_k", "iq4_nl", "iq4_xs" };
    return names[type];
}

size_t panels_count(size_t rows)
{
    return rows / PANEL + (rows % PANEL != 0);
}

size_t panels_unit(enum ptype type)
{
    return type <= P_BF16 ? 1 : block_forms[type].cols;
}

size_t panels_raw(enum ptype type, size_t cols)
{
    if (type <= P_BF16)
        return cols * (type == P_F32 ? sizeof(float) : sizeof(uint16_t));
    return cols / block_forms[type].cols * block_forms[type].raw_bytes;
}

bool panels_bytes(size_t *panel_bytes, size_t *total, enum ptype type, size_t rows, size_t cols)
{
    size_t bytes, all, head = 0;
    size_t unit = PANEL * sizeof(float), units = type == P_BF16 ? cols / 2 + cols % 2 : cols;
    if (!cols || cols % panels_unit(type))
        return false;
    if (type > P_BF16) {
        const struct block_form *f = &block_forms[type];
        unit = f->bytes;
        units = cols / f->panel_cols + (cols % f->panel_cols != 0);
        head = block_head(type, cols);
    }
    if (!size_mul(&bytes, units, unit) || !size_add(&bytes, bytes, head) ||
        !size_mul(&all, bytes, panels_count(rows)))
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

/* Ask for bytes of the next panel's rows in the order of memory, while this one is packed. Reading
 * 16 rows side by side confuses the hardware prefetcher when they share pages; long rows do not. */
INLINE void ask_rows(const unsigned char *next, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(next + i);
}

static void pack_f32(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
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
static void pack_bf16(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
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

/* Where a block in a GGUF file holds what, and how many words of each: d and m are f16 scales, s
 * the sub-blocks' scales (12 bytes of 6 bits each in Q3_K, Q4_K, Q5_K; 16 bytes in Q2_K, Q6_K), q
 * the low bits of the codes, two or four in a byte, and h their high bits (Q3_K's hmask, one in a
 * byte's bit; Q5_K's qh; Q6_K's qh, two bits). weights/README.md has the formulas. */
static const struct raw_form {
    unsigned char d, m, s, h, q, words_s, words_h, words_q;
} raw_forms[P_TYPES] = {
    [P_Q8] = { .q = 2, .words_q = 8 },
    [P_Q4] = { .q = 2, .words_q = 4 },
    [P_Q4_1] = { .m = 2, .q = 4, .words_q = 4 },
    [P_Q5_0] = { .h = 2, .q = 6, .words_h = 1, .words_q = 4 },
    [P_Q5_1] = { .m = 2, .h = 4, .q = 8, .words_h = 1, .words_q = 4 },
    [P_Q2_K] = { .d = 80, .m = 82, .s = 0, .q = 16, .words_s = 4, .words_q = 16 },
    [P_Q3_K] = { .d = 108, .s = 96, .h = 0, .q = 32, .words_s = 3, .words_h = 8, .words_q = 16 },
    [P_Q4_K] = { .m = 2, .s = 4, .q = 16, .words_s = 3, .words_q = 32 },
    [P_Q5_K] = { .m = 2, .s = 4, .h = 16, .q = 48, .words_s = 3, .words_h = 8, .words_q = 32 },
    [P_Q6_K] = { .d = 208, .s = 192, .h = 128, .q = 0, .words_s = 4, .words_h = 16, .words_q = 32 },
    [P_IQ4_NL] = { .q = 2, .words_q = 4 },
    [P_IQ4_XS] = { .m = 2, .s = 4, .q = 8, .words_s = 1, .words_q = 32 },
};

/* Store a word of each of the first `have` rows, whose bit 4j + i becomes bit 8i + j: each step
 * swaps two bits of every bit's index. Of the other rows it is 0. */
INLINE void spread_rows(unsigned char *dst, const unsigned char *src, size_t stride, size_t have)
{
    static const struct {
        unsigned by;
        uint32_t low;
    } swaps[] = { { 14, 0x0000cccc }, { 7, 0x00aa00aa }, { 2, 0x0c0c0c0c }, { 1, 0x22222222 } };
    for (size_t r = 0; r < PANEL; r += 4, dst += 16) {
        uint32_t w[4];
        REPEAT (i, 4)
            w[i] = r + i < have ? load_u32(src + (r + i) * stride) : 0;
        QUAD x = { w[0], w[1], w[2], w[3] };
        REPEAT (i, 4) {
            QUAD differ = (x ^ x >> swaps[i].by) & swaps[i].low;
            x ^= differ ^ differ << swaps[i].by;
        }
        memcpy(dst, &x, 16);
    }
}

/* Move the parts of the block that holds column k from `have` rows of a file, `stride` bytes apart,
 * to a panel. */
INLINE void pack_block(unsigned char *dst, enum ptype type, const unsigned char *src, size_t stride,
                       size_t have, size_t cols, size_t k)
{
    const struct raw_form *raw = &raw_forms[type];
    const struct block b = block_at(type, dst, cols, k);
    unsigned char *d = dst + (b.d - dst), *m = dst + (b.m - dst), *h = dst + (b.h - dst);
    for (size_t r = 0; r < have; r++)
        memcpy(d + r * 2, src + r * stride + raw->d, 2);
    for (size_t r = 0; raw->m && r < have; r++)
        memcpy(m + r * 2, src + r * stride + raw->m, 2);
    if (raw->words_s)
        turn_rows(dst + (b.s - dst), src + raw->s, stride, have, raw->words_s, 0);
    if (raw->words_h == 1)
        spread_rows(h, src + raw->h, stride, have);
    if (raw->words_h > 1)
        turn_rows(h, src + raw->h, stride, have, raw->words_h, 0);
    /* Flipping the top bit of a byte adds 128. */
    turn_rows(dst + (b.q - dst), src + raw->q, stride, have, raw->words_q,
              type == P_Q8 ? Q8_ZERO * 0x01010101u : 0);
}

/* Rows and groups that the matrix lacks become zeros: with the scale 0 any code is 0. */
INLINE void pack_blocks(unsigned char *dst, enum ptype type, const unsigned char *src, size_t rows,
                        size_t cols, size_t p)
{
    const struct block_form *f = &block_forms[type];
    size_t have = rows_in(rows, p), stride = panels_raw(type, cols), bytes, total;
    src += p * PANEL * stride;
    if ((have < PANEL || cols % f->panel_cols) && panels_bytes(&bytes, &total, type, rows, cols))
        memset(dst, 0, bytes);
    else if (f->head)
        memset(dst, 0, block_head(type, cols));
    enum { MOST = 16384 }; /* what stays in L1 beside this panel, before and after */
    bool asks = PANEL * stride <= MOST && (p + 1) * PANEL < rows;
    for (size_t k = 0; k < cols; k += f->cols) {
        size_t at = k / f->cols * f->raw_bytes;
        if (asks)
            ask_rows(src + PANEL * (stride + at), PANEL * f->raw_bytes);
        pack_block(dst, type, src + at, stride, have, cols, k);
    }
}

void panels_pack(unsigned char *dst, enum ptype type, const void *src, size_t rows, size_t cols,
                 size_t p)
{
    switch (type) {
    case P_F32:
        pack_f32(dst, src, rows, cols, p);
        break;
    case P_BF16:
        pack_bf16(dst, src, rows, cols, p);
        break;
    case P_Q8:
        pack_blocks(dst, P_Q8, src, rows, cols, p);
        break;
    case P_Q4:
    case P_IQ4_NL:
        pack_blocks(dst, P_Q4, src, rows, cols, p);
        break;
    case P_Q5_0:
        pack_blocks(dst, P_Q5_0, src, rows, cols, p);
        break;
    default:
        pack_blocks(dst, type, src, rows, cols, p);
        break;
    }
}

/* Dequantise row r of a panel into out[cols]. */
static void row_blocks(float *out, enum ptype type, const unsigned char *panel, size_t r,
                       size_t cols)
{
    const struct block_form *f = &block_forms[type];
    for (size_t k = 0; k < cols; k += f->sub) {
        struct block b = block_at(type, panel, cols, k);
        size_t in = k % f->cols, sub = in / f->sub;
        float scale = block_scale(type, &b, sub, r);
        float offset = f->offset ? block_offset(type, &b, sub, r) : 0;
        for (size_t i = 0; i < f->sub; i++) {
            out[k + i] = (float)block_value(type, &b, in + i, r) * scale;
            if (f->offset)
                out[k + i] += offset;
        }
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
    default:
        row_blocks(out, w->type, panel, r, w->cols);
        break;
    }
}
