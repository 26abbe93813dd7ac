/* t_panels.c - packing moves every byte to where panels.h says, for any shape. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/panels.h"
#include "tests/support/test.h"

struct form {
    void (*pack)(unsigned char *dst, const void *src, size_t rows, size_t cols, size_t p);
    enum ptype type;
    size_t unit, bytes; /* columns and bytes of the smallest piece of a row in a file */
};

static const struct form forms[] = {
    { panels_pack_f32, P_F32, 1, 4 },      { panels_pack_f16, P_F32, 1, 2 },
    { panels_pack_bf16, P_BF16, 1, 2 },    { panels_pack_q8_0, P_Q8, GROUP, 34 },
    { panels_pack_q4_0, P_Q4, GROUP, 18 },
};

static void put_half(unsigned char *dst, const unsigned char *src)
{
    uint16_t h;
    memcpy(&h, src, sizeof(h));
    float f = f32_from_f16(h);
    memcpy(dst, &f, sizeof(f));
}

/* Place piece g of row r, as the definition in panels.h states it. */
static void place(unsigned char *panel, const struct form *f, size_t r, size_t g,
                  const unsigned char *src)
{
    unsigned char *b = panel + g / 2 * (f->type == P_Q8 ? 1088 : 576);
    if (f->pack == panels_pack_f16)
        put_half(panel + (g * 16 + r) * 4, src);
    else if (f->type == P_F32)
        memcpy(panel + (g * 16 + r) * 4, src, 4);
    else if (f->type == P_BF16)
        memcpy(panel + (g / 2 * 16 + r) * 4 + g % 2 * 2, src, 2);
    if (f->type != P_Q8 && f->type != P_Q4)
        return;
    memcpy(b + g % 2 * 32 + r * 2, src, 2);
    for (size_t k = 0; k < f->bytes - 2; k++)
        if (f->type == P_Q8)
            b[64 + g % 2 * 512 + k / 4 * 64 + r * 4 + k % 4] = (unsigned char)(src[2 + k] + 128);
        else
            b[64 + g % 2 * 256 + k / 4 * 64 + r * 4 + k % 4] = src[2 + k];
}

/* Fill a panel with rows that the matrix lacks. */
static void clear(unsigned char *panel, enum ptype type, size_t bytes)
{
    memset(panel, type == P_Q8 ? 128 : type == P_Q4 ? 0x88 : 0, bytes);
    for (size_t at = 0; type == P_Q8 && at < bytes; at += 1088)
        memset(panel + at, 0, 64);
    for (size_t at = 0; type == P_Q4 && at < bytes; at += 576)
        memset(panel + at, 0, 64);
}

/* The source ends where its memory ends and is not aligned; the panels hold garbage before. */
static void shape(const struct form *f, size_t rows, size_t pieces, uint64_t seed)
{
    size_t panel_bytes, total, size = rows * pieces * f->bytes;
    CHECK(panels_bytes(&panel_bytes, &total, f->type, rows, pieces * f->unit));
    unsigned char *memory = malloc(size + 1), *src = memory + 1;
    unsigned char *got = malloc(total), *want = malloc(panel_bytes);
    CHECK(memory && got && want);
    for (size_t i = 0; i < size; i++)
        src[i] = (unsigned char)rand_u64(seed, i);
    memset(got, 0x5a, total);
    for (size_t p = panels_count(rows); p-- > 0;)
        f->pack(got + p * panel_bytes, src, rows, pieces * f->unit, p);
    for (size_t p = 0; p < panels_count(rows); p++) {
        clear(want, f->type, panel_bytes);
        for (size_t r = p * 16; r < rows && r < p * 16 + 16; r++)
            for (size_t g = 0; g < pieces; g++)
                place(want, f, r % 16, g, src + (r * pieces + g) * f->bytes);
        CHECK(!memcmp(want, got + p * panel_bytes, panel_bytes));
    }
    free(memory);
    free(got);
    free(want);
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
    all_halves();
    return 0;
}
