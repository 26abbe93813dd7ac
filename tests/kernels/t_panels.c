/* t_panels.c - packing moves every byte to where panels.h says, for any shape. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/panels.h"
#include "tests/support/test.h"

static void pack_floats(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    panels_pack(dst, P_F32, src, rows, cols, p);
}

static void pack_bf16(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p)
{
    panels_pack(dst, P_BF16, src, rows, cols, p);
}

struct form {
    void (*pack)(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p);
    enum ptype type;
    size_t bytes; /* of a value in a file */
};

static const struct form forms[] = { { pack_floats, P_F32, 4 },
                                     { panels_pack_f16, P_F32, 2 },
                                     { pack_bf16, P_BF16, 2 } };

/* Return the value at src, as a file of this form stores it. */
static float value(const struct form *f, const unsigned char *src)
{
    uint16_t h;
    float v;
    memcpy(&v, src, f->bytes == 4 ? 4 : 2);
    memcpy(&h, src, sizeof(h));
    return f->bytes == 4 ? v : f->type == P_BF16 ? f32_from_bf16(h) : f32_from_f16(h);
}

/* Place column g of row r, as the definition in panels.h states it. */
static void place(unsigned char *panel, const struct form *f, size_t r, size_t g,
                  const unsigned char *src)
{
    float v = value(f, src);
    if (f->type == P_F32)
        memcpy(panel + (g * 16 + r) * 4, &v, 4);
    else
        memcpy(panel + (g / 2 * 16 + r) * 4 + g % 2 * 2, src, 2);
}

/* The source ends where its memory ends and is not aligned; the panels hold garbage before. Every
 * value comes back from them, and rows that the matrix lacks are 0. */
static void shape(const struct form *f, size_t rows, size_t cols, uint64_t seed)
{
    size_t panel_bytes, total, size = rows * cols * f->bytes;
    CHECK(panels_bytes(&panel_bytes, &total, f->type, rows, cols));
    unsigned char *memory = malloc(size + 1), *src = memory + 1;
    unsigned char *got = malloc(total), *want = malloc(panel_bytes);
    const struct panels w = { f->type, rows, cols, panel_bytes, got, NULL };
    float *row = malloc(cols * sizeof(*row));
    CHECK(memory && got && want && row);
    for (size_t i = 0; i < size; i++)
        src[i] = (unsigned char)rand_u64(seed, i);
    memset(got, 0x5a, total);
    for (size_t p = panels_count(rows); p-- > 0;)
        f->pack(got + p * panel_bytes, src, rows, cols, p);
    for (size_t p = 0; p < panels_count(rows); p++) {
        memset(want, 0, panel_bytes);
        for (size_t r = p * 16; r < rows && r < p * 16 + 16; r++)
            for (size_t g = 0; g < cols; g++)
                place(want, f, r % 16, g, src + (r * cols + g) * f->bytes);
        CHECK(!memcmp(want, got + p * panel_bytes, panel_bytes));
        for (size_t r = p * 16; r < p * 16 + 16; r++) {
            panels_row(row, &w, r);
            for (size_t k = 0; k < cols; k++) {
                float v = r < rows ? value(f, src + (r * cols + k) * f->bytes) : 0;
                CHECK(!memcmp(&v, row + k, sizeof(v)));
            }
        }
    }
    free(memory);
    free(got);
    free(want);
    free(row);
}

static float half_at(const unsigned char *p)
{
    return f32_from_f16((uint16_t)(p[0] | p[1] << 8));
}

/* Return six bits of the twelve bytes that hold eight scales (i < 8) and eight minimums of Q4_K. */
static int six_bits(const unsigned char *b, size_t i)
{
    size_t j = i % 8;
    if (j < 4)
        return b[j + i / 8 * 4] & 63;
    return (i < 8 ? b[j + 4] & 15 : b[j + 4] >> 4) | (b[j - 4 + i / 8 * 4] >> 6) << 4;
}

/* Return column c of a block of 32 columns, as GGUF stores it. */
static float small_value(enum ptype type, const unsigned char *b, size_t c)
{
    static const int iq4[] = { -127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113 };
    size_t at[] = { [P_Q4] = 2, [P_Q4_1] = 4, [P_Q5_0] = 6, [P_Q5_1] = 8, [P_IQ4_NL] = 2 };
    if (type == P_Q8)
        return (float)(signed char)b[2 + c] * half_at(b);
    int low = c < 16 ? b[at[type] + c] & 15 : b[at[type] + c - 16] >> 4;
    int high = type == P_Q5_0 || type == P_Q5_1 ? b[at[type] - 4 + c / 8] >> c % 8 & 1 : 0;
    switch (type) {
    case P_Q4:
        return (float)(low - 8) * half_at(b);
    case P_Q5_0:
        return (float)(low + 16 * high - 16) * half_at(b);
    case P_IQ4_NL:
        return (float)iq4[low] * half_at(b);
    default:
        return (float)(low + 16 * high) * half_at(b) + half_at(b + 2);
    }
}

/* Return column c of a block of 256 columns, as GGUF stores it. */
static float large_value(enum ptype type, const unsigned char *b, size_t c)
{
    size_t n = c / 128, j = c / 32 % 4, l = c % 32; /* two halves of four runs of 32 columns */
    int q, sc;
    switch (type) {
    case P_Q2_K:
        q = b[16 + n * 32 + l] >> j * 2 & 3;
        return half_at(b + 80) * (float)(b[c / 16] & 15) * (float)q -
               half_at(b + 82) * (float)(b[c / 16] >> 4);
    case P_Q3_K:
        q = (b[32 + n * 32 + l] >> j * 2 & 3) - (b[l] >> c / 32 & 1 ? 0 : 4);
        sc = (b[96 + c / 16 % 8] >> c / 128 * 4 & 15) | (b[104 + c / 16 % 4] >> c / 64 * 2 & 3)
                                                            << 4;
        return half_at(b + 108) * (float)(sc - 32) * (float)q;
    case P_Q6_K:
        q = (b[n * 64 + j % 2 * 32 + l] >> j / 2 * 4 & 15) | (b[128 + n * 32 + l] >> j * 2 & 3)
                                                                 << 4;
        return half_at(b + 208) * (float)(signed char)b[192 + c / 16] * (float)(q - 32);
    case P_IQ4_XS:
        sc = (b[4 + c / 64] >> c / 32 % 2 * 4 & 15) | (b[2 + c / 128] >> c / 32 % 4 * 2 & 3) << 4;
        unsigned char nl[18] = { b[0], b[1] };
        memcpy(nl + 2, b + 8 + c / 32 * 16, 16);
        nl[0] = 0, nl[1] = 0x3c; /* d = 1 */
        return half_at(b) * (float)(sc - 32) * small_value(P_IQ4_NL, nl, l);
    default:
        q = b[(type == P_Q5_K ? 48 : 16) + c / 64 * 32 + l] >> c / 32 % 2 * 4 & 15;
        if (type == P_Q5_K)
            q |= (b[16 + l] >> c / 32 & 1) << 4;
        return half_at(b) * (float)six_bits(b + 4, c / 32) * (float)q -
               half_at(b + 2) * (float)six_bits(b + 4, 8 + c / 32);
    }
}

/* Rows of random blocks come out of their panels as they are; rows that the matrix lacks are 0. */
static void blocks(enum ptype type, size_t rows, size_t n, uint64_t seed)
{
    size_t unit = panels_unit(type), cols = n * unit, size = rows * panels_raw(type, cols), total;
    struct panels w = { .type = type, .rows = rows, .cols = cols };
    CHECK(panels_bytes(&w.panel_bytes, &total, type, rows, cols) && w.panel_bytes % 64 == 0);
    unsigned char *memory = malloc(size + 1), *src = memory + 1, *dst = malloc(total);
    float *row = malloc(cols * sizeof(*row));
    CHECK(memory && dst && row);
    for (size_t i = 0; i < size; i++)
        src[i] = (unsigned char)rand_u64(seed, i);
    memset(dst, 0x5a, total);
    for (size_t p = panels_count(rows); p-- > 0;)
        panels_pack(dst + p * w.panel_bytes, type, src, rows, cols, p);
    w.data = dst;
    for (size_t r = 0; r < panels_count(rows) * PANEL; r++) {
        panels_row(row, &w, r);
        for (size_t k = 0; k < cols; k++) {
            const unsigned char *b =
                src + panels_raw(type, r * cols) + panels_raw(type, k / unit * unit);
            float want = r >= rows     ? 0
                         : unit == 256 ? large_value(type, b, k % unit)
                                       : small_value(type, b, k % unit);
            CHECK(want == row[k] || (want != want && row[k] != row[k]));
        }
    }
    free(memory);
    free(dst);
    free(row);
}

/* All halves, as one row of each panel position. */
static void all_halves(void)
{
    enum { COLS = 1 << 12 };
    static uint16_t src[16][COLS];
    static float dst[COLS][16];
    for (size_t i = 0; i < 1 << 16; i++)
        src[i % 16][i / 16] = (uint16_t)i;
    panels_pack_f16((unsigned char *)dst, src, 16, COLS, 0);
    for (size_t i = 0; i < 1 << 16; i++) {
        float f = f32_from_f16((uint16_t)i);
        CHECK(!memcmp(&f, &dst[i / 16][i % 16], sizeof(f)));
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        for (uint64_t n = 0; n < 60; n++)
            shape(&forms[i], 1 + rand_below(i, n, 50), 1 + rand_below(i + 10, n, 150), n);
        shape(&forms[i], 32, 28, 100); /* rows short enough to be asked for in advance */
        shape(&forms[i], 16, 1000, 101);
    }
    for (enum ptype type = P_Q8; type < P_TYPES; type++) {
        for (uint64_t n = 0; n < 20; n++)
            blocks(type, 1 + rand_below(type, n, 50), 1 + rand_below(type + 100u, n, 6), n);
        blocks(type, 16, 40, 101); /* rows too long for that */
    }
    all_halves();
    return 0;
}
