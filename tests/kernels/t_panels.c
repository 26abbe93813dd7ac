/* t_panels.c - packing moves every byte to where panels.h says, for any shape. */
#include "kernels/panels.h"
#include "tests/support/test.h"

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

/* A matrix in a file: the type of its panels, and whether its values are F16. */
struct form {
    enum ptype type;
    bool f16;
};

/* Return the bytes of so many columns of a row in the file. */
static size_t raw_bytes(struct form f, size_t cols)
{
    return f.f16 ? cols * sizeof(uint16_t) : panels_raw(f.type, cols);
}

/* Return column k of the row at src. */
static float value(struct form f, const unsigned char *src, size_t k)
{
    size_t unit = panels_unit(f.type);
    const unsigned char *b = src + raw_bytes(f, k / unit * unit);
    float v;
    memcpy(&v, b, f.type == P_F32 && !f.f16 ? 4 : 2);
    return f.f16              ? half_at(b)
           : f.type == P_F32  ? v
           : f.type == P_BF16 ? f32_from_bf16((uint16_t)(b[0] | b[1] << 8))
           : unit == 256      ? large_value(f.type, b, k % unit)
                              : small_value(f.type, b, k % unit);
}

/* Check that a float lies where panels.h puts column k of row r. */
static void check_place(struct form f, const unsigned char *panel, size_t r, size_t k, float want)
{
    uint16_t h = bf16_from_f32(want);
    if (f.type == P_F32)
        CHECK(!memcmp(panel + (k * 16 + r) * 4, &want, 4));
    else if (f.type == P_BF16 && want == want)
        CHECK(!memcmp(panel + (k / 2 * 16 + r) * 4 + k % 2 * 2, &h, 2));
}

/* The source ends where its memory ends and is not aligned; the panels hold garbage before. Every
 * value comes back from them, and rows that the matrix lacks are 0. */
static void shape(struct form f, size_t rows, size_t cols, uint64_t seed)
{
    size_t stride = raw_bytes(f, cols), size = rows * stride, total;
    struct panels w = { .type = f.type, .rows = rows, .cols = cols };
    CHECK(panels_bytes(&w.panel_bytes, &total, f.type, rows, cols) && w.panel_bytes % 64 == 0);
    unsigned char *memory = malloc(size + 1), *src = memory + 1, *dst = malloc(total);
    float *row = malloc(cols * sizeof(*row));
    CHECK(memory && dst && row);
    for (size_t i = 0; i < size; i++)
        src[i] = (unsigned char)rand_u64(seed, i);
    memset(dst, 0x5a, total);
    for (size_t p = panels_count(rows); p-- > 0;)
        if (f.f16)
            panels_pack_f16(dst + p * w.panel_bytes, src, rows, cols, p);
        else
            panels_pack(dst + p * w.panel_bytes, f.type, src, rows, cols, p);
    w.data = dst;
    for (size_t r = 0; r < panels_count(rows) * PANEL; r++) {
        panels_row(row, &w, r);
        for (size_t k = 0; k < cols; k++) {
            float want = r < rows ? value(f, src + r * stride, k) : 0;
            CHECK(want == row[k] || (want != want && row[k] != row[k]));
            check_place(f, dst + r / PANEL * w.panel_bytes, r % PANEL, k, want);
        }
    }
    free(memory);
    free(dst);
    free(row);
}

int main(void)
{
    static const struct form floats[] = { { P_F32, false }, { P_F32, true }, { P_BF16, false } };
    for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++) {
        for (uint64_t n = 0; n < 60; n++)
            shape(floats[i], 1 + rand_below(i, n, 50), 1 + rand_below(i + 10, n, 150), n);
        shape(floats[i], 32, 28, 100); /* rows short enough to be asked for in advance */
        shape(floats[i], 16, 1000, 101);
    }
    for (enum ptype type = P_Q8; type < P_TYPES; type++) {
        struct form f = { type, false };
        size_t unit = panels_unit(type);
        for (uint64_t n = 0; n < 20; n++)
            shape(f, 1 + rand_below(type, n, 50), unit * (1 + rand_below(type + 100u, n, 6)), n);
        shape(f, 16, unit * 40, 101); /* rows too long for that */
    }
    return 0;
}
