/* t_quant_encode.c - write GGUF's quantised types: cases by hand, how near K-quants come to the
 * weights, and, on the test data, the bytes of ggml's reference and the error of llama-quantize. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/test.h"
#include "weights/quant.h"
#include "weights/weights.h"

enum { SUPER = 256, MANY = 64 * SUPER };

static const int types[] = { W_Q4_0, W_Q4_1, W_Q5_0, W_Q5_1, W_Q8_0, W_Q4_K, W_Q5_K, W_Q6_K };

enum { TYPES = sizeof(types) / sizeof(*types) };

static unsigned get16(const unsigned char *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static void test_by_hand(void)
{
    unsigned char q[24];
    float x[32] = { 0 };
    x[1] = 15; /* Q4_1: m = -15, d = 2 */
    x[2] = -15;
    x[3] = 1.1f; /* (1.1 + 15) / 2 + 0.5 = 8.55 */
    x[20] = 0.9f;
    quant_encode(q, W_Q4_1, x, NULL, 32);
    CHECK(get16(q) == 0x4000 && get16(q + 2) == 0xcb80);
    CHECK(q[4] == 0x88 && q[5] == 0x8f && q[6] == 0x80 && q[7] == 0x88 && q[8] == 0x88);
    x[1] = 16; /* Q5_1: m = -15, d = 1 */
    quant_encode(q, W_Q5_1, x, NULL, 32);
    CHECK(get16(q) == 0x3c00 && get16(q + 2) == 0xcb80);
    CHECK(q[8] == 0xff && q[9] == 0xff && q[10] == 0xf0 && q[11] == 0xf0 && q[12] == 0x0f);
    CHECK(q[4] == 0x0a && q[5] == 0 && q[6] == 0x10 && q[7] == 0);
    x[1] = -16; /* Q5_0: d = 1, 16 is added */
    quant_encode(q, W_Q5_0, x, NULL, 32);
    CHECK(get16(q) == 0x3c00 && q[6] == 0 && q[7] == 0 && q[8] == 0x01 && q[9] == 0x01);
    CHECK(q[2] == 0xf9 && q[3] == 0xff && q[10] == 0x10);
}

/* Return values spread like weights, with mean 0 and deviation 1: the sum of twelve uniform ones,
 * from a generator written out here so that they are the same everywhere. */
static float next_value(uint64_t *state)
{
    float sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (float)(*state >> 40) / (float)(1 << 24);
    }
    return sum;
}

/* Encode and decode x[n]; return the sum of w times the squared differences (w NULL: 1). */
static double error_of(int type, const float *x, const float *weight, const float *w, size_t n)
{
    static unsigned char q[MANY * 2];
    static float y[MANY];
    double sum = 0;
    quant_encode(q, type, x, weight, n);
    quant_decode(y, type, q, n);
    for (size_t i = 0; i < n; i++)
        sum += (w ? (double)w[i] : 1) * (double)(x[i] - y[i]) * (double)(x[i] - y[i]);
    return sum;
}

/* The error is what the number of bits suggests, within a few per cent, and weights move it to
 * where it matters less. */
static void test_error(void)
{
    static const double most[TYPES] = {
        0.088, 0.081, 0.0435, 0.039, 0.0055, 0.0714, 0.035, 0.0181
    };
    static float x[MANY], w[MANY];
    uint64_t state = 1;
    for (size_t i = 0; i < MANY; i++) {
        x[i] = 0.02f * next_value(&state);
        w[i] = i % 7 ? 0.05f : 20;
    }
    for (size_t k = 0; k < TYPES; k++) {
        double rms = sqrt(error_of(types[k], x, NULL, NULL, MANY) / MANY) / 0.02;
        double plain = error_of(types[k], x, NULL, w, MANY);
        double weighted = error_of(types[k], x, w, w, MANY);
        printf("%s: error %.4f of a deviation; weights take %.2f of theirs away\n",
               wtype_name(types[k]), rms, 1 - weighted / plain);
        CHECK(rms < most[k] && rms > 0.9 * most[k]);
        CHECK(types[k] == W_Q8_0 ? weighted == plain : weighted < 0.8 * plain);
    }
}

/* Values close together far from zero, with and without weights: those below it lose a little more
 * than values around it; all those above it become multiples of one scale, which is a loss of about
 * their deviation. */
static void test_offset(void)
{
    static const struct {
        float offset;
        double most[2]; /* of the deviation: Q4_K, Q5_K */
    } cases[] = { { -1, { 0.09, 0.06 } }, { -10, { 0.13, 0.11 } }, { -100, { 0.14, 0.11 } },
                  { 1, { 0.95, 0.55 } },  { 10, { 1.1, 1.1 } },    { 100, { 1.6, 1.4 } } };
    static float x[MANY], w[MANY];
    for (size_t k = 0; k < 2 * sizeof(cases) / sizeof(*cases); k++) {
        const float *weights = k % 2 ? w : NULL;
        uint64_t state = 7;
        double total = 0;
        for (size_t i = 0; i < MANY; i++) {
            x[i] = cases[k / 2].offset + 0.02f * next_value(&state);
            w[i] = 0.2f + (float)(i * i % 13) / 6;
            total += weights ? (double)w[i] : 1;
        }
        for (int type = W_Q4_K; type <= W_Q5_K; type++) {
            double rms = sqrt(error_of(type, x, weights, weights, MANY) / total) / 0.02;
            printf("%s at %g%s: error %.4f of a deviation\n", wtype_name(type),
                   (double)cases[k / 2].offset, weights ? ", weighted" : "", rms);
            CHECK(rms < cases[k / 2].most[type - W_Q4_K]);
        }
    }
}

/* Blocks of one value, and of one value among zeros, come back almost as they were. */
static void test_constant(void)
{
    static const float values[] = { 0, 1, -1, 0.3f, -250, 65000 };
    float x[SUPER];
    for (size_t k = 0; k < TYPES; k++)
        for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++)
            for (size_t spare = 0; spare < SUPER; spare += 255) {
                for (size_t i = 0; i < SUPER; i++)
                    x[i] = spare == 0 || i == spare ? values[v] : 0;
                double want = fabs((double)values[v]) * 0.003, limit = SUPER * want * want;
                CHECK(error_of(types[k], x, NULL, NULL, SUPER) <= limit);
            }
}

/* Broken files hold anything: no result is expected, and nothing may overflow. */
static void test_wild(void)
{
    static const float wild[] = { INFINITY, -INFINITY, NAN, 1e-45f, -1e-40f, 3e38f, -3e38f, 1e20f };
    unsigned char q[2 * SUPER];
    float x[SUPER], w[SUPER];
    for (size_t k = 0; k < TYPES; k++)
        for (size_t v = 0; v < sizeof(wild) / sizeof(*wild); v++)
            for (size_t step = 1; step <= SUPER; step *= 4) {
                for (size_t i = 0; i < SUPER; i++) {
                    x[i] = i % step ? 1e-3f * (float)i : wild[v];
                    w[i] = i % 3 ? 1e-30f : 1e30f;
                }
                quant_encode(q, types[k], x, NULL, SUPER);
                quant_encode(q, types[k], x, w, SUPER);
                quant_decode(x, types[k], q, SUPER);
            }
    CHECK(quant_written(W_Q4_1) && !quant_written(W_Q2_K) && !quant_written(W_F64));
}

/* Write each tensor of the file's type from the source. The bytes must be the file's, or, for a
 * K-quant, the error at most that of the file. */
static void check_file(const struct weights *src, const char *root, const char *name)
{
    struct err err;
    struct weights *w;
    char path[512];
    unsigned n = 0;
    double worst = 0;
    snprintf(path, sizeof(path), "%s/weights/kquants/%s", root, name);
    CHECK(weights_open(&w, path, &err) == OK);
    for (size_t i = 0; i < weights_ntensors(w); i++) {
        const struct tensor *t = weights_tensor(w, i), *s = weights_find(src, t->name);
        CHECK(s && s->type == W_F32);
        if (t->type == W_F32)
            continue;
        size_t count = s->bytes / sizeof(float);
        unsigned char *q = malloc(t->bytes);
        float *x = malloc(3 * s->bytes), *y = x + count, *z = y + count;
        double ours = 0, theirs = 0;
        CHECK(q && x && weights_floats(x, s, 0, count, "f.gguf", &err) == OK);
        CHECK(weights_floats(y, t, 0, count, "f.gguf", &err) == OK);
        quant_encode(q, t->type, x, NULL, count);
        quant_decode(z, t->type, q, count);
        for (size_t k = 0; k < count; k++) {
            theirs += pow((double)(x[k] - y[k]), 2);
            ours += pow((double)(x[k] - z[k]), 2);
        }
        CHECK(strstr(name, "_k") ? ours <= theirs : memcmp(q, t->data, t->bytes) == 0);
        worst = sqrt(ours / theirs) > worst ? sqrt(ours / theirs) : worst;
        n++;
        free(x);
        free(q);
    }
    CHECK(n == 8);
    if (strstr(name, "_k"))
        printf("%s: at most %.4f of llama-quantize's error\n", name, worst);
    weights_close(w);
}

static bool test_files(void)
{
    static const char *const names[] = { "f16.gguf",    "bf16.gguf", "q8_0.gguf", "q4_0.gguf",
                                         "q4_1.gguf",   "q5_0.gguf", "q5_1.gguf", "q4_k_m.gguf",
                                         "q5_k_m.gguf", "q6_k.gguf" };
    const char *root = getenv("MIZZLE_TESTDATA");
    struct weights *src;
    struct err err;
    char path[512];
    root = root ? root : "../shared/data";
    snprintf(path, sizeof(path), "%s/weights/kquants/src-f32.gguf", root);
    if (weights_open(&src, path, &err) != OK)
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        check_file(src, root, names[i]);
    weights_close(src);
    return true;
}

int main(void)
{
    test_by_hand();
    test_error();
    test_offset();
    test_constant();
    test_wild();
    if (!test_files()) {
        puts("SKIP: no weights/kquants/src-f32.gguf at $MIZZLE_TESTDATA (default ../shared/data)");
        return 77;
    }
    return 0;
}
