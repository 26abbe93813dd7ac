/* t_sample.c - each filter by hand, ties, odd logits, and the distribution by counting. */
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "model/sample.h"
#include "tests/support/test.h"

static struct kernels kernels;

static const struct sample_params plain = { .temp = 1, .top_p = 1, .repeat_penalty = 1, .seed = 9 };

/* Count how often each of n ids comes in 4,000 draws. */
static void draw(size_t *counts, const struct sample_params *p, const float *logits, size_t n)
{
    struct sampler *s;
    uint32_t prefix[4000] = { 0 };
    memset(counts, 0, n * sizeof(*counts));
    CHECK(sampler_open(&s, p, n, &kernels, NULL) == OK);
    for (size_t i = 1; i <= 4000; i++) {
        uint32_t id = sampler_pick(s, logits, prefix, i);
        CHECK(id < n && sampler_pick(s, logits, prefix, i) == id);
        counts[id]++;
    }
    sampler_close(s);
}

static void check_filters(void)
{
    /* weights 8, 4, 2, 1, 1 of 16 */
    const float x[] = { 2.0794415f, 1.3862944f, 0.6931472f, 0, 0 };
    const double share[] = { 0.5, 0.25, 0.125, 0.0625, 0.0625 };
    size_t c[5];
    double chi = 0;
    draw(c, &plain, x, 5);
    for (size_t i = 0; i < 5; i++)
        chi +=
            ((double)c[i] - 4000 * share[i]) * ((double)c[i] - 4000 * share[i]) / (4000 * share[i]);
    CHECK(chi < 18.5); /* 0.1 % level at 4 degrees of freedom */
    static const struct {
        struct sample_params p; /* of those that differ from plain */
        size_t ids, least;      /* those that come, and how often the last of them does */
    } rows[] = {
        { { .top_k = 2, .top_p = 1, .temp = 1 }, 2, 1151 },
        { { .top_k = 4, .top_p = 1, .temp = 1 }, 4, 1 }, /* of equal logits, the lower id stays */
        { { .top_p = 0.7f, .temp = 1 }, 2, 1 },
        { { .min_p = 0.2f, .top_p = 1, .temp = 1 }, 3, 1 },
        { { .top_p = 1, .temp = 0.01f }, 1, 4000 },
        { { .top_p = 0, .temp = 1 }, 1, 4000 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sample_params p = rows[i].p;
        size_t all = 0;
        p.repeat_penalty = plain.repeat_penalty;
        p.seed = plain.seed;
        draw(c, &p, x, 5);
        for (size_t k = 0; k < rows[i].ids; k++)
            all += c[k];
        CHECK(all == 4000 && c[rows[i].ids - 1] >= rows[i].least && (i || c[0] > 2500));
    }
}

/* The filters work at temperature 1, and the draw at the temperature that is set: with 4, the first
 * of the weights 8 and 4 comes in 0.543 of all draws. */
static void check_order(void)
{
    const float x[] = { 2.0794415f, 1.3862944f, 0.6931472f, 0, 0 };
    size_t c[5];
    for (int i = 0; i < 2; i++) {
        struct sample_params p = plain;
        p.temp = 4;
        p.top_p = i ? 1 : 0.7f;
        p.min_p = i ? 0.3f : 0;
        draw(c, &p, x, 5);
        CHECK(c[0] + c[1] == 4000 && c[0] > 2052 && c[0] < 2292); /* 3.8 standard deviations */
    }
}

static uint32_t pick(const struct sample_params *p, const float *x, size_t n, const uint32_t *ids,
                     size_t count)
{
    struct sampler *s;
    CHECK(sampler_open(&s, p, n, &kernels, NULL) == OK);
    uint32_t id = sampler_pick(s, x, ids, count);
    sampler_close(s);
    return id;
}

static void check_greedy(void)
{
    const float ties[] = { 1, 5, 5, 9 }, odd[] = { NAN, -INFINITY, -3, NAN };
    const float none[] = { NAN, -INFINITY };
    const uint32_t prefix[] = { 1, 1, 3, 900 };
    struct sample_params p = plain;
    p.temp = 0;
    CHECK(pick(&p, ties, 3, prefix, 1) == 1); /* id 3 is not in use */
    CHECK(pick(&p, odd, 4, prefix, 1) == 2 && pick(&plain, odd, 4, prefix, 1) == 2);
    CHECK(pick(&p, none, 2, prefix, 1) == 0 && pick(&plain, none, 2, prefix, 1) == 0);
    p.repeat_penalty = 2; /* 5 / 2 once, however often the prefix has it */
    CHECK(pick(&p, ties, 3, prefix, 4) == 2);
    const struct sample_bias bias[] = { { 0, 1.75f }, { 900, 9 } };
    p.bias = bias; /* 1 + 1.75 is more than 5 / 2, which is less than 5 */
    p.nbias = 2;
    CHECK(pick(&p, ties, 2, prefix, 4) == 0 && pick(&p, ties, 3, prefix, 4) == 2);
    p.nbias = 0;
    const float below[] = { -3, -2 };
    CHECK(pick(&p, below, 2, prefix, 4) == 0); /* -2 * 2 */
}

/* A pick depends only on the prefix: it is the same backwards, and from a fresh sampler. */
static void check_prefix_alone(void)
{
    struct sampler *a, *b;
    struct sample_params p = plain;
    uint32_t prefix[60], first[60];
    float x[60][8];
    p.repeat_penalty = 1.5f;
    p.top_p = 0.9f;
    CHECK(sampler_open(&a, &p, 8, &kernels, NULL) == OK);
    CHECK(sampler_open(&b, &p, 8, &kernels, NULL) == OK);
    for (size_t i = 0; i < 60; i++) {
        prefix[i] = (uint32_t)rand_below(3, i, 8);
        for (size_t k = 0; k < 8; k++)
            x[i][k] = (float)rand_unit(4, i * 8 + k) * 3 - 1;
    }
    for (size_t i = 1; i < 60; i++)
        first[i] = sampler_pick(a, x[i], prefix, i);
    for (size_t i = 59; i > 0; i--)
        CHECK(sampler_pick(a, x[i], prefix, i) == first[i] &&
              sampler_pick(b, x[i], prefix, i) == first[i]);
    sampler_close(a);
    sampler_close(b);
}

static int open_once(const void *params)
{
    struct sampler *s;
    int rc = sampler_open(&s, params, 4, &kernels, NULL);
    sampler_close(s);
    return rc;
}

static void check_errors(void)
{
    struct err err;
    struct sampler *s;
    struct sample_params bad[5] = { plain, plain, plain, plain, plain };
    bad[0].temp = -1;
    bad[1].top_p = -0.1f;
    bad[2].min_p = 2;
    bad[3].repeat_penalty = 0;
    bad[4].temp = NAN;
    for (size_t i = 0; i < 5; i++)
        CHECK(sampler_open(&s, &bad[i], 4, &kernels, &err) == ERR_ARG && !s);
    CHECK(sampler_open(&s, &plain, 0, &kernels, &err) == ERR_ARG && !s);
    torture_each(open_once, &plain);
}

int main(void)
{
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    check_filters();
    check_order();
    check_greedy();
    check_prefix_alone();
    check_errors();
    return 0;
}
