/* t_quant.c - GGUF's types of weights. Those that are written: cases worked out by hand (halves are
 * in t_math.c), plain double arithmetic and, on the test data, the bytes of ggml. Those that are
 * read go through panels: t_panels.c has blocks of each type, and t_types.c the values that another
 * engine reads.
 */
#include "tests/support/test.h"
#include "weights/quant.h"
#include "weights/weights.h"

enum { BLOCK = 32, ROUNDS = 4000 };

static unsigned get16(const unsigned char *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static void test_q8_0(void)
{
    /* amax 127 makes d = 1, so the values themselves are rounded, halves away from zero */
    float x[BLOCK] = { 127, -127, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 0.49999997f, 126.5f };
    static const int want[9] = { 127, -127, 1, -1, 2, 3, -3, 0, 127 };
    unsigned char q[34], zero[34] = { 0 };
    quant_encode(q, W_Q8_0, x, BLOCK);
    CHECK(get16(q) == 0x3c00);
    for (int i = 0; i < BLOCK; i++)
        CHECK((int8_t)q[2 + i] == (i < 9 ? want[i] : 0));
    memset(x, 0, sizeof(x));
    quant_encode(q, W_Q8_0, x, BLOCK);
    CHECK(memcmp(q, zero, sizeof(q)) == 0);
    /* a stored -128 is a value like any other */
    q[0] = 0;
    q[1] = 0x38; /* 0.5 */
    q[2] = 0x80;
    quant_decode(x, W_Q8_0, q, BLOCK);
    CHECK(x[0] == -64 && x[1] == 0);
}

static void test_q4_0(void)
{
    /* The largest is -8, so d = 1; 8.5 is added before truncating. */
    float x[BLOCK] = { -8, 0.5f, -0.5f, 7.4f, 7.6f, 0.49f }, y[BLOCK];
    static const unsigned want[6] = { 0, 9, 8, 15, 15, 8 };
    unsigned char q[18];
    x[16] = -7.9f; /* the high nibble of the first byte */
    x[17] = 8;     /* as large as -8 but later, so it does not decide the sign */
    quant_encode(q, W_Q4_0, x, BLOCK);
    CHECK(get16(q) == 0x3c00);
    for (int i = 0; i < 6; i++)
        CHECK((q[2 + i] & 15) == want[i]);
    CHECK(q[2] >> 4 == 0 && q[3] >> 4 == 15);
    /* the largest is +4, so d = -0.5 */
    memset(x, 0, sizeof(x));
    x[5] = 4;
    quant_encode(q, W_Q4_0, x, BLOCK);
    CHECK(get16(q) == 0xb800 && (q[7] & 15) == 0 && (q[2] & 15) == 8);
    quant_decode(y, W_Q4_0, q, BLOCK);
    CHECK(y[5] == 4 && y[0] == 0 && y[21] == 0);
}

/* Recompute every stored number of random blocks in double from the definition. */
static void test_random(void)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        float x[BLOCK], max = 0;
        unsigned char q8[34], q4[18];
        double spread = exp_f64(8 * rand_unit(1, round) - 4);
        for (uint64_t i = 0; i < BLOCK; i++) {
            x[i] = (float)((rand_unit(2, round * BLOCK + i) - 0.5) * spread);
            if (fabsf(x[i]) > fabsf(max))
                max = x[i];
        }
        quant_encode(q8, W_Q8_0, x, BLOCK);
        quant_encode(q4, W_Q4_0, x, BLOCK);
        float d8 = fabsf(max) / 127, d4 = max / -8;
        CHECK(get16(q8) == f16_from_f32(d8) && get16(q4) == f16_from_f32(d4));
        for (int i = 0; i < BLOCK; i++) {
            double v = (double)(x[i] * (1 / d8));
            int want = (int)floor(fabs(v) + 0.5) * (v < 0 ? -1 : 1);
            CHECK((int8_t)q8[2 + i] == want);
            float shifted = x[i] * (1 / d4) + 8.5f;
            unsigned nibble = i < 16 ? q4[2 + i] & 15u : q4[2 + i - 16] >> 4;
            CHECK(nibble == (shifted < 15 ? (unsigned)shifted : 15u));
        }
    }
}

/* Infinities and NaN come from broken files. The bytes do not matter, but nothing may overflow. */
static void test_wild(void)
{
    const float wild[] = { INFINITY, -INFINITY, NAN, 1e-45f, -1e-40f, 3e38f };
    unsigned char q[34];
    float x[BLOCK];
    for (size_t k = 0; k < sizeof(wild) / sizeof(*wild); k++) {
        for (int i = 0; i < BLOCK; i++)
            x[i] = i % 2 ? wild[k] : 1e-45f;
        quant_encode(q, W_Q8_0, x, BLOCK);
        quant_encode(q, W_Q4_0, x, BLOCK);
    }
    CHECK(quant_known(W_Q4_0) && !quant_known(16));
}

static void test_floats(void)
{
    struct err err;
    float x[64], y[64];
    unsigned char q[68];
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i - 20);
    quant_encode(q, W_Q8_0, x, 64);
    struct tensor t = {
        .name = "t", .type = W_Q8_0, .ndim = 1, .shape = { 64 }, .data = q, .bytes = sizeof(q)
    };
    CHECK(weights_floats(y, &t, 32, 32, "f.gguf", &err) == OK && fabsf(y[31] - 43) < 0.1f);
    CHECK(weights_floats(y, &t, 16, 32, "f.gguf", &err) == ERR_FORMAT);
    CHECK(weights_floats(y, &t, 32, 64, "f.gguf", &err) == ERR_FORMAT &&
          strstr(err.msg, "f.gguf: tensor t: values 32 to 96"));
    CHECK(weights_floats(y, &t, SIZE_MAX - 31, 64, "f.gguf", &err) == ERR_FORMAT);
    t.type = 16;
    CHECK(weights_floats(y, &t, 0, 32, "f.gguf", &err) == ERR_FORMAT && strstr(err.msg, "IQ2_XXS"));
    double d[2] = { 0.5, -3 };
    struct tensor f64 = {
        .name = "d", .type = W_F64, .ndim = 1, .shape = { 2 }, .data = d, .bytes = sizeof(d)
    };
    CHECK(weights_floats(y, &f64, 1, 1, "f.gguf", &err) == OK && y[0] == -3);
    int type;
    CHECK(wtype_parse(&type, "q4_K") && type == 12 && strcmp(wtype_name(30), "BF16") == 0);
    CHECK(!wtype_parse(&type, "q4_") && !wtype_parse(&type, "") && !wtype_name(4));
}

/* Write each tensor of a file of ggml's from its source in F32: the bytes must be the file's. */
static bool test_files(void)
{
    static const char *const names[] = { "src-f32", "f16", "bf16", "q8_0", "q4_0" };
    struct weights *src = NULL, *w;
    struct err err;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (weights_open(&w, test_data("weights/kquants/%s.gguf", names[i]), &err) != OK)
            return false;
        src = src ? src : w;
        for (size_t k = 0; k < weights_ntensors(w); k++) {
            const struct tensor *t = weights_tensor(w, k), *s = weights_find(src, t->name);
            unsigned char *q = malloc(t->bytes);
            CHECK(s && s->type == W_F32 && q);
            quant_encode(q, t->type, s->data, s->bytes / sizeof(float));
            CHECK(memcmp(q, t->data, t->bytes) == 0);
            free(q);
        }
        if (w != src)
            weights_close(w);
    }
    weights_close(src);
    return true;
}

/* A tensor is decoded from any block on; anything else and other types are refused by name. */
static void test_block_floats(void)
{
    struct err err;
    struct tensor t = { .name = "t", .type = W_Q4_K, .ndim = 2, .shape = { 1, 512 } };
    static unsigned char two[288];
    static float out[256];
    t.data = two;
    t.bytes = sizeof(two);
    two[144 + 1] = two[144 + 3] = 0x3c; /* d and dmin of the second block */
    two[144 + 4] = two[144 + 8] = 1;
    CHECK(weights_floats(out, &t, 256, 256, "f.gguf", &err) == OK && out[0] == -1 && out[32] == 0);
    CHECK(weights_floats(out, &t, 32, 256, "f.gguf", &err) == ERR_FORMAT);
    CHECK(weights_floats(out, &t, 256, 32, "f.gguf", &err) == ERR_FORMAT);
    static const int no[] = { 9, 15, 16, 17, 18, 19, 21, 22, 29, 34, 35, 39, 40, W_I32, W_F8_E4M3 };
    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
        char found[64];
        t.type = no[i];
        snprintf(found, sizeof(found), "IQ4_XS, found %s", wtype_name(no[i]));
        CHECK(weights_floats(out, &t, 0, 256, "f.gguf", &err) == ERR_FORMAT);
        CHECK(strncmp(err.msg, "f.gguf: tensor t: expected F64", 30) == 0);
        CHECK(strcmp(strstr(err.msg, "IQ4_XS"), found) == 0);
        strcat(found, "; take a Q4_K_M");
        CHECK(quant_refuse("f.gguf", &t, &err) == ERR_FORMAT && strstr(err.msg, found));
        CHECK(strncmp(err.msg, "f.gguf: tensor t: expected F32", 30) == 0);
    }
}

int main(void)
{
    test_q8_0();
    test_q4_0();
    test_random();
    test_wild();
    test_floats();
    test_block_floats();
    if (!test_files())
        SKIP("no weights/kquants at $MIZZLE_TESTDATA (default ../shared/data)");
    return 0;
}
