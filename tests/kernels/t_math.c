/* t_math.c - kernels/math.h against libm and against known bits; scalar.c by hand. */
#include "kernels/kernels.h"
#include "tests/support/test.h"

static uint32_t bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static void exp_sigmoid_f32(void)
{
    double worst = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        float x = (float)(rand_unit(1, i) * 175 - 87);
        double want = exp((double)x), ulp = ldexp(1, ilogb(want) - 23);
        worst = fmax(worst, fabs((double)exp_f32(x) - want) / ulp);
        double s = 1 / (1 + exp(-(double)x));
        CHECK(fabs((double)sigmoid_f32(x) - s) <= 3e-7 * s);
    }
    CHECK(worst < 2);
    CHECK(exp_f32(0) == 1 && exp_f32(-0.0f) == 1);
    CHECK(exp_f32(-87) > 0 && exp_f32(-87.00001f) == 0 && exp_f32(-INFINITY) == 0);
    CHECK(exp_f32(NAN) == 0 && exp_f32(INFINITY) == exp_f32(88) && exp_f32(89) == exp_f32(88));
    CHECK(sigmoid_f32(INFINITY) == 1 && sigmoid_f32(0) == 0.5f);
    /* A few values, recorded once: every machine must give the same bits. */
    static const struct {
        float x;
        uint32_t y;
    } known[] = { { 1, 0x402df854u },     { -1, 0x3ebc5ab2u }, { 0.5f, 0x3fd3094cu },
                  { -0.1f, 0x3f67a36du }, { 10, 0x46ac14efu }, { -20, 0x310da433u },
                  { -87, 0x00b33687u },   { 88, 0x7ef882b7u }, { 3.14159f, 0x41b92005u } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        CHECK(bits(exp_f32(known[i].x)) == known[i].y);
}

static void doubles(void)
{
    for (uint32_t i = 0; i < 100000; i++) {
        double u = rand_unit(2, i), x = u * 1416 - 708, s, c;
        CHECK(fabs(exp_f64(x) - exp(x)) <= 1e-15 * exp(x));
        double y = exp_f64(x);
        CHECK(fabs(log_f64(y) - log(y)) <= 1e-15 * fabs(log(y)) + 1e-300);
        y = 0.5 + u;
        CHECK(fabs(log_f64(y) - log(y)) <= 1e-15 * fabs(log(y)));
        double a = ldexp(u * 2 - 1, (int)(i % 31));
        sincos_f64(&s, &c, a);
        CHECK(fabs(s - sin(a)) <= 1e-15 && fabs(c - cos(a)) <= 1e-15);
        double p = pow(1e6, -u);
        CHECK(fabs(pow_f64(1e6, -u) - p) <= 5e-15 * p);
    }
    CHECK(exp_f64(0) == 1 && exp_f64(-709) == 0 && exp_f64((double)NAN) == 0);
    CHECK(exp_f64(1000) == exp_f64(709) && exp_f64((double)INFINITY) == exp_f64(709));
    CHECK(log_f64(1) == 0 && fabs(log_f64(5e-324) + 744.4400719213812) < 1e-12);
    CHECK(pow_f64(3, 0) == 1);
}

/* Convert all 65,536 halves there and back, and check rounding at every half-way point. */
static void halves(void)
{
    for (uint32_t i = 0; i < 0x10000; i++) {
        uint16_t h = (uint16_t)i;
        float f = f32_from_f16(h), b = f32_from_bf16(h);
        if (f != f)
            CHECK((f16_from_f32(f) & 0x7fff) > 0x7c00);
        else
            CHECK(f16_from_f32(f) == h);
        if (b != b)
            CHECK((bf16_from_f32(b) & 0x7fff) > 0x7f80);
        else
            CHECK(bf16_from_f32(b) == h);
        if ((h & 0x7fff) < 0x7bff) { /* half-way to its successor: to even */
            uint16_t even = (uint16_t)(h + (h & 1));
            float mid = f + (f32_from_f16((uint16_t)(h + 1)) - f) * 0.5f;
            CHECK(f16_from_f32(mid) == even);
            CHECK(f16_from_f32(from_bits(bits(mid) + 1)) == h + 1);
            CHECK(f16_from_f32(from_bits(bits(mid) - 1)) == h);
        }
        if ((h & 0x7fff) < 0x7f80) {
            uint32_t mid = (uint32_t)h << 16 | 0x8000;
            CHECK(bf16_from_f32(from_bits(mid)) == (uint16_t)(h + (h & 1)));
            CHECK(bf16_from_f32(from_bits(mid + 1)) == h + 1);
            CHECK(bf16_from_f32(from_bits(mid - 1)) == h);
        }
    }
    CHECK(f32_from_f16(0x3c00) == 1 && f32_from_f16(0x0001) == 0x1p-24f);
    CHECK(f32_from_f16(0xfbff) == -65504 && f32_from_f16(0x7c00) == INFINITY);
    CHECK(f16_from_f32(65519.9f) == 0x7bff && f16_from_f32(65520) == 0x7c00);
    CHECK(f16_from_f32(0x1p-25f) == 0 && f16_from_f32(0x1.000002p-25f) == 1);
    CHECK(f16_from_f32(-0.0f) == 0x8000 && f16_from_f32(1e-45f) == 0);
    CHECK(f16_from_f32(from_bits(0x7f7fffff)) == 0x7c00); /* the largest float */
    CHECK(bf16_from_f32(from_bits(0x7f7fffff)) == 0x7f80);
    CHECK((f16_from_f32(from_bits(0x7f800001)) & 0x7fff) > 0x7c00); /* a signalling NaN stays one */
    CHECK((bf16_from_f32(from_bits(0x7f800001)) & 0x7fc0) == 0x7fc0);
}

static void randoms(void)
{
    uint64_t seen = 0;
    double sum = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        double u = rand_unit(7, i);
        CHECK(u >= 0 && u < 1);
        sum += u;
        uint64_t b = rand_below(7, i, 10);
        CHECK(b < 10 && rand_below(7, i, 1) == 0);
        seen |= (uint64_t)1 << b;
    }
    CHECK(seen == 1023 && fabs(sum / 10000 - 0.5) < 0.02);
    CHECK(rand_u64(1, 2) == rand_u64(1, 2) && rand_u64(1, 2) != rand_u64(2, 1));
    CHECK(rand_u64(1, 0) == 0x5e41ab087439611eu && rand_u64(0, UINT64_MAX) == 0x48218226ff3cd4bfu);
}

/* A product small enough to verify by hand, computed by scalar.c. */
static void product_by_hand(void)
{
    static _Alignas(64) float panel[2][16]; /* two columns */
    panel[0][0] = 1, panel[1][0] = 2, panel[0][15] = -3, panel[1][15] = 0.5f;
    struct panels w = { P_F32, 16, 2, sizeof(panel), (const unsigned char *)panel, NULL };
    float x[] = { 10, 20 }, y[16];
    kernels_scalar.matmul_f32(y, 16, &w, x, 2, 1, 0, 1);
    CHECK(y[0] == 50 && y[15] == -20 && y[7] == 0);
    CHECK(kernels_scalar.argmax_f32((const float[]){ NAN, 1, 3, 3 }, 4) == 2);
    CHECK(kernels_scalar.argmax_f32((const float[]){ NAN, -INFINITY }, 2) == 0);
    float out[2];
    kernels_scalar.expsum_f32(out, (const float[]){ 0, 0, -1000 }, 3, 0);
    CHECK(out[0] == 2 && out[1] == 0);
}

/* Attention cut into two blocks and merged equals the softmax over both, in double precision. */
static void attention_merges(void)
{
    enum { HD = 16, NK = 80 };
    static float q[HD], k[NK * HD], turned[NK * HD], v[NK * HD];
    float max[2], sum[2], out[2][HD];
    for (size_t i = 0; i < NK * HD; i++) {
        k[i] = (float)(rand_unit(8, i) * 4 - 2);
        v[i] = (float)(rand_unit(9, i) * 2 - 1);
        q[i % HD] = (float)(rand_unit(10, i % HD) * 4 - 2);
    }
    for (size_t j = 0; j < NK; j++)
        kvcache_put_key(KVCACHE_F32, turned + j / 16 * 16 * HD, j % 16, k + j * HD, HD);
    for (size_t b = 0; b < 2; b++) {
        struct attn_part part = { &max[b], &sum[b], out[b] };
        kernels_scalar.attn_f32(&part, q, turned + b * 64 * HD, v + b * 64 * HD, 1, 1, b ? 16 : 64,
                                b ? 16 : 64, HD, 0.25f);
    }
    kernels_scalar.attn_merge(&max[0], &sum[0], out[0], max[1], sum[1], out[1], HD);
    double want[HD] = { 0 }, total = 0;
    for (size_t j = 0; j < NK; j++) {
        double s = 0;
        for (size_t d = 0; d < HD; d++)
            s += (double)q[d] * (double)k[j * HD + d];
        double e = exp(s * 0.25);
        total += e;
        for (size_t d = 0; d < HD; d++)
            want[d] += e * (double)v[j * HD + d];
    }
    for (size_t d = 0; d < HD; d++)
        CHECK(fabs((double)(out[0][d] / sum[0]) - want[d] / total) < 1e-6);
}

int main(void)
{
    exp_sigmoid_f32();
    doubles();
    halves();
    randoms();
    product_by_hand();
    attention_merges();
    return 0;
}
