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

void panels_pack_f32(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    size_t have = rows_in(rows, p);
    const unsigned char *s = (const unsigned char *)src + p * PANEL * cols * sizeof(float);
    memset(dst, 0, cols * PANEL * sizeof(float));
    for (size_t r = 0; r < have; r++)
        for (size_t k = 0; k < cols; k++)
            memcpy(dst + (k * PANEL + r) * sizeof(float), s + (r * cols + k) * sizeof(float),
                   sizeof(float));
}

void panels_pack_f16(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    size_t have = rows_in(rows, p);
    const unsigned char *s = (const unsigned char *)src + p * PANEL * cols * 2;
    memset(dst, 0, cols * PANEL * sizeof(float));
    for (size_t r = 0; r < have; r++)
        for (size_t k = 0; k < cols; k++) {
            float f = f32_from_f16(panels_load_u16(s + (r * cols + k) * 2));
            memcpy(dst + (k * PANEL + r) * sizeof(f), &f, sizeof(f));
        }
}

/* Two columns of a row are moved as one 32-bit word; an odd last column goes alone. */
void panels_pack_bf16(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    size_t have = rows_in(rows, p);
    const unsigned char *s = (const unsigned char *)src + p * PANEL * cols * 2;
    memset(dst, 0, (cols + cols % 2) * PANEL * 2);
    for (size_t k = 0; k + 1 < cols; k += 2)
        for (size_t r = 0; r < have; r++)
            store_u32(dst + (k / 2 * PANEL + r) * 4, load_u32(s + (r * cols + k) * 2));
    for (size_t r = 0; cols % 2 && r < have; r++)
        memcpy(dst + (cols / 2 * PANEL + r) * 4, s + (r * cols + cols - 1) * 2, 2);
}

/* Groups of 32 columns are the unit of both quantised types. Rows and groups that the matrix lacks
 * become zeros: scale 0, value 128. Flipping the top bit of each byte adds 128. */
void panels_pack_q8_0(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    size_t have = rows_in(rows, p), groups = cols / GROUP;
    const unsigned char *s = (const unsigned char *)src + p * PANEL * groups * GGUF_Q8_0;
    for (size_t g = 0; g < groups + groups % 2; g++) {
        unsigned char *scale = dst + g / 2 * Q8_BLOCK + g % 2 * 32;
        unsigned char *q = dst + g / 2 * Q8_BLOCK + SCALES + g % 2 * 512;
        memset(scale, 0, 32);
        memset(q, 128, 512);
        if (g == groups)
            break;
        for (size_t r = 0; r < have; r++) {
            const unsigned char *b = s + (r * groups + g) * GGUF_Q8_0;
            memcpy(scale + r * 2, b, 2);
            for (size_t c = 0; c < GROUP / 4; c++)
                store_u32(q + c * 64 + r * 4, load_u32(b + 2 + c * 4) ^ 0x80808080u);
        }
    }
}

/* GGUF stores nibbles as value + 8 already, low ones for columns 0..15, so bytes are only moved. */
void panels_pack_q4_0(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    size_t have = rows_in(rows, p), groups = cols / GROUP;
    const unsigned char *s = (const unsigned char *)src + p * PANEL * groups * GGUF_Q4_0;
    for (size_t g = 0; g < groups + groups % 2; g++) {
        unsigned char *scale = dst + g / 2 * Q4_BLOCK + g % 2 * 32;
        unsigned char *q = dst + g / 2 * Q4_BLOCK + SCALES + g % 2 * 256;
        memset(scale, 0, 32);
        memset(q, 0x88, 256);
        if (g == groups)
            break;
        for (size_t r = 0; r < have; r++) {
            const unsigned char *b = s + (r * groups + g) * GGUF_Q4_0;
            memcpy(scale + r * 2, b, 2);
            for (size_t c = 0; c < GROUP / 8; c++)
                store_u32(q + c * 64 + r * 4, load_u32(b + 2 + c * 4));
        }
    }
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
