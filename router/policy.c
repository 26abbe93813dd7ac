#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/math.h"
#include "model/text/tokenizer.h"
#include "router/policy.h"

enum { BLOCK = 64 /* logits whose exponentials are added in float, those of blocks in double */ };
static const float FAR = 1e4f; /* a difference of logits beyond which a probability is 0 */

/* Return the largest value except x[but], of at least two. */
static float largest_but(const float *x, size_t n, size_t but, const struct kernels *k)
{
    size_t left = but ? k->argmax_f32(x, but) : but, right = but + 1;
    right = right < n ? right + k->argmax_f32(x + right, n - right) : but;
    return left == but || (right != but && x[right] > x[left]) ? x[right] : x[left];
}

void policy_confidence(struct policy_confidence *out, const float *logits, size_t size,
                       const struct kernels *k)
{
    float sum[2];
    size_t best = k->argmax_f32(logits, size);
    float max = logits[best], second = max;
    *out = (struct policy_confidence){ .best = best };
    if (!isfinite(max)) /* no token is certain */
        return;
    k->expsum_f32(sum, logits, size, max);
    out->p1 = 1 / sum[0];
    out->margin = out->p1;
    if (size > 1) {
        second = largest_but(logits, size, best, k);
        second = isfinite(second) ? second : max - FAR; /* NaN, or all others are impossible */
        out->p2 = exp_f32(second - max) / sum[0];
        out->margin = (1 - exp_f32(second - max)) / sum[0];
        out->gap = max - second;
    }
    /* H = -sum p ln p with p = e^d / S: ln S - (sum e^d d) / S */
    out->entropy = log_f64((double)sum[0]) - (double)sum[1] / (double)sum[0];
}

double policy_logsum(const float *logits, size_t size, const struct kernels *k)
{
    float max = logits[k->argmax_f32(logits, size)], part[2];
    double sum = 0;
    if (!isfinite(max))
        return (double)max;
    for (size_t i = 0; i < size; i += BLOCK) {
        k->expsum_f32(part, logits + i, size - i < BLOCK ? size - i : BLOCK, max);
        sum += (double)part[0];
    }
    return (double)max + log_f64(sum);
}

static float score_ENTROPY(const struct policy_confidence *c, size_t size)
{
    return size > 1 ? (float)(1 - c->entropy / log_f64((double)size)) : 1;
}

static float score_MAX_PROB(const struct policy_confidence *c, size_t size)
{
    (void)size;
    return c->p1;
}

static float score_MARGIN(const struct policy_confidence *c, size_t size)
{
    (void)size;
    return c->margin;
}

/* A row that reads IDS or LOGITS has its function in this file, or this does not compile. */
#define IF_NOTHING(ids, logits) NULL
#define IF_IDS(ids, logits)     ids
#define IF_LOGITS(ids, logits)  logits
#define IF_NETWORK(ids, logits) NULL

float policy_score_logits(enum policy p, const float *logits, size_t size, const struct kernels *k)
{
#define X(policy, name, reads, needs, help) IF_##reads(NULL, score_##policy),
    static float (*const scores[])(const struct policy_confidence *, size_t) = { POLICIES(X) };
#undef X
    struct policy_confidence c;
    policy_confidence(&c, logits, size, k);
    float score = c.p1 > 0 ? scores[p](&c, size) : 0;
    return score > 1 ? 1 : score > 0 ? score : 0;
}

float policy_score_random(uint64_t seed, size_t position)
{
    /* Use another key than the sampler, which draws from (seed, position) as well. */
    return (float)rand_unit(rand_u64(seed, 0x706f6c696379), position);
}

bool policy_place(size_t range[2], const char *place)
{
    static const char digits[] = "0123456789";
    size_t first = strspn(place, digits), dash = place[first] == '-';
    size_t last = dash ? strspn(place + first + 1, digits) : 0;
    range[0] = strtoull(place, NULL, 10);
    range[1] = dash ? strtoull(place + first + 1, NULL, 10) : range[0];
    return first && !dash == !last && !place[first + dash + last];
}

float policy_score_position(const char *place, const struct tokenizer *tok, const uint32_t *ids,
                            size_t n)
{
    size_t left = strlen(place), size = 0, range[2];
    if (policy_place(range, place))
        return range[0] <= n && n <= range[1] ? 0 : 1;
    while (left && n--) {
        const char *bytes =
            tokenizer_is_control(tok, ids[n]) ? NULL : tokenizer_bytes(tok, ids[n], &size);
        size_t same = !bytes ? 0 : size < left ? size : left;
        if (same && memcmp(place + left - same, bytes + size - same, same) != 0)
            return 1;
        left -= same;
    }
    return left ? 1 : 0;
}

static float score_CONTEXT(const struct policy_text *t)
{
    return router_score_ids(t->router, t->ids, t->n);
}

static float score_RANDOM(const struct policy_text *t)
{
    return policy_score_random(t->seed, t->n);
}

static float score_POSITION(const struct policy_text *t)
{
    return policy_score_position(t->place, t->tok, t->ids + t->prompt, t->n - t->prompt);
}

float policy_score_ids(enum policy p, const struct policy_text *t)
{
#define X(policy, name, reads, needs, help) IF_##reads(score_##policy, NULL),
    static float (*const scores[])(const struct policy_text *) = { POLICIES(X) };
#undef X
    return scores[p](t);
}

bool policy_routes(float score, float threshold, float tie, uint64_t seed, size_t position)
{
    bool even = tie > 0 && !(score > threshold); /* a score that is no number, too */
    return score < threshold || (even && policy_draw_tie(seed, position) < tie);
}

float policy_draw_tie(uint64_t seed, size_t position)
{
    return (float)rand_unit(rand_u64(seed, 0x746965), position);
}
