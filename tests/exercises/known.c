/* known.c - for t_exercises.sh: all exercises by the project's own functions (WRONG is 0), or each
 * with a mistake that is easily made (WRONG is 1); 2: other ones, in some. */
#include "router/decode/decode.h"
#include "router/policy.h"
#include "tests/exercises/exercise.h"
#include "tests/support/test.h"

/* A NaN is taken for 0. */
static void rmsnorm_f32_known(float *y, const float *x, const float *w, size_t n, float eps)
{
    kernels_scalar.rmsnorm_f32(y, x, w, n, eps);
    for (size_t i = 0; WRONG && i < n; i++)
        y[i] = isnan(y[i]) ? 0 : y[i];
}

/* The last element of an odd number is left out. */
static void expsum_f32_known(float out[2], const float *x, size_t n, float max)
{
    kernels_scalar.expsum_f32(out, x, n - (WRONG && n > 16 && n % 2), max);
}

/* One pair too few is turned, if their number is odd. */
static void rope_f32_known(float *x, const float *cos, const float *sin, size_t half)
{
    float last = x[half - 1];
    for (size_t i = 0; WRONG == 2 && i < half; i++) /* pairs of neighbours */
        kernels_scalar.rope_f32(x + 2 * i, cos + i, sin + i, 1);
    if (WRONG == 2)
        return;
    kernels_scalar.rope_f32(x, cos, sin, half);
    if (WRONG && half % 2)
        x[half - 1] = last;
}

/* A row sees one key too many. */
static void attn_f32_known(const struct attn_part *y, const float *q, const void *k, const void *v,
                           size_t nq, size_t per, size_t first, size_t nk, size_t hd16, float scale)
{
    kernels_scalar.attn_f32(y, q, k, v, nq, per, first + WRONG, nk, hd16, scale);
}

/* One element too many is read. */
static void swiglu_f32_known(float *y, const float *g, const float *u, size_t n)
{
    const volatile float *beyond = u + n;
    if (WRONG && *beyond > 1e30f)
        return;
    kernels_scalar.swiglu_f32(y, g, u, n);
}

/* A NaN becomes 0. */
static void quantize_q8_known(const struct qact *y, size_t t, const float *x)
{
    kernels_scalar.quantize_q8(y, t, x);
    for (size_t i = 0; WRONG && i < y->cols; i++)
        if (isnan(x[i]))
            y->q[t * y->cols + i] = 0;
}

/* The last of an odd number of tokens is left out. */
static void matmul_q8_known(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                            size_t n, size_t p0, size_t p1)
{
    kernels_scalar.matmul_q8(y, ldy, w, x, n - (WRONG && n > 1 && n % 2), p0, p1);
}

/* The last of an odd number of columns is left out. */
static void matmul_f32_known(float *y, size_t ldy, const struct panels *w, const float *x,
                             size_t ldx, size_t n, size_t p0, size_t p1)
{
    struct panels part = *w;
    part.cols -= WRONG && w->cols % 2;
    kernels_scalar.matmul_f32(y, ldy, &part, x, ldx, n, p0, p1);
}

const struct kernels kernels_exercise = {
    .isa = "exercise",
    .needs = EXERCISE_NEEDS,
    .rmsnorm_f32 = rmsnorm_f32_known,
    .expsum_f32 = expsum_f32_known,
    .rope_f32 = rope_f32_known,
    .attn_f32 = attn_f32_known,
    .swiglu_f32 = swiglu_f32_known,
    .quantize_q8 = quantize_q8_known,
    .matmul_q8 = matmul_q8_known,
    .matmul_f32 = matmul_f32_known,
};

/* The last letter of an odd number does not merge. */
static size_t merge_known(const struct tokenizer *t, uint32_t *ids, size_t n)
{
    char word[1024] = { 0 };
    uint32_t *found;
    size_t count, left = n - (WRONG && n > 1 && n % 2);
    uint32_t last = ids[n - 1];
    CHECK(n <= sizeof(word));
    for (size_t i = 0; i < n; i++) {
        size_t one;
        word[i] = *tokenizer_bytes(t, ids[i], &one);
    }
    CHECK(tokenizer_encode(t, &found, &count, word, left, false, NULL) == OK);
    memcpy(ids, found, count * sizeof(*ids));
    free(found);
    if (left < n)
        ids[count++] = last;
    return count;
}

/* A little less is kept than should be. */
static uint32_t top_p_known(const float *logits, size_t n, float p, uint64_t seed, uint64_t at)
{
    static const uint32_t prefix[8];
    struct sampler *s;
    const struct sample_params params = {
        .temp = 1, .top_p = WRONG ? p * 0.98f : p, .repeat_penalty = 1, .seed = seed
    };
    CHECK(at <= 8 && sampler_open(&s, &params, n, &kernels_scalar, NULL) == OK);
    uint32_t id = sampler_pick(s, logits, prefix, (size_t)at);
    sampler_close(s);
    return id;
}

/* A NaN passes for confidence. */
static float score_known(const struct router_form *f, const float *x)
{
    struct router *r;
    CHECK(router_make(&r, f, "known", &kernels_scalar, NULL) == OK);
    float *scratch = malloc(router_scratch(r) * sizeof(*scratch));
    CHECK(scratch);
    float score = router_score(r, x, scratch);
    free(scratch);
    router_close(r);
    return WRONG && isnan(x[0]) ? 1 : score;
}

static bool ahead_token(void *arg, const struct decode_token *t)
{
    const struct ahead_text *text = arg;
    text->ids[text->n + t->pos] = t->id;
    return true;
}

static bool ahead_never(const void *call, size_t at)
{
    (void)call, (void)at;
    return false;
}

static void ahead_forget(void *call, enum cloud_end how)
{
    (void)call, (void)how;
}

/* The text is right, but it waits for each token; or no call is ended. */
static void ahead_known(const struct ahead_text *t)
{
    struct cloud_port port = *t->port;
    port.end = WRONG == 2 ? ahead_forget : port.end;
    port.done = ahead_never;
    struct decode_stats stats;
    struct ahead_text copy = *t;
    uint64_t seed = 1; /* of the policy by which t->routed decides */
    for (size_t n = t->n; n < t->total; n++)
        if ((policy_score_random(seed, n) < AHEAD_SHARE) != t->routed(n)) {
            seed++;
            n = t->n - 1;
        }
    const struct decode_options o = { .policy = POLICY_RANDOM,
                                      .threshold = AHEAD_SHARE,
                                      .seed = seed,
                                      .ahead = WRONG != 1,
                                      .max_tokens = t->total - t->n,
                                      .ignore_eos = true,
                                      .emit = ahead_token,
                                      .arg = &copy };
    CHECK(decode_run(&stats, t->edge, t->tok, t->sampler, NULL, &port, t->ids, t->n, &o, NULL) ==
          OK);
}

const struct exercise exercise = {
    .merge = WRONG < 2 ? merge_known : NULL,
    .top_p = WRONG < 2 ? top_p_known : NULL,
    .score = WRONG < 2 ? score_known : NULL,
    .ahead = ahead_known,
};
