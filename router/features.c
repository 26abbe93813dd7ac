#include "router/features.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/math.h"
#include "model/text/tokenizer.h"
#include "router/policy.h"
#include "router/router.h"

/* True for a byte that words are made of; those beyond ASCII are taken for letters. */
static bool features_in_word(char c)
{
    unsigned char b = (unsigned char)c;
    return b >= 0x80 || (b >= '0' && b <= '9') || ((b | 32) >= 'a' && (b | 32) <= 'z');
}

/* Find the row of (before, last) in a table, by halves. */
static const struct router_context *find_context(const struct router_context *rows, size_t n,
                                                 float before, float last)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct router_context *c = &rows[mid];
        if (c->before < before || (c->before == before && c->last < last))
            low = mid + 1;
        else
            high = mid;
    }
    const struct router_context *c = &rows[low];
    return low < n && c->before == before && c->last == last ? c : NULL;
}

float features_context(const struct router_context *rows, size_t nrows, const uint32_t *ids,
                       size_t n)
{
    const struct router_context *c = NULL;
    if (n > 1)
        c = find_context(rows, nrows, (float)ids[n - 2], (float)ids[n - 1]);
    if (!c && n)
        c = find_context(rows, nrows, -1, (float)ids[n - 1]);
    return (c ? c : rows)->score; /* the mean is the first row */
}

void features_of(float out[FEATURES], const struct features_text *t, const float *logits,
                 size_t size, const struct router *table, const struct kernels *k)
{
    size_t last_n = 0, next_n = 0;
    struct policy_confidence c;
    policy_confidence(&c, logits, size, k);
    const char *last = tokenizer_bytes(t->tok, t->ids[t->n - 1], &last_n);
    const char *next = tokenizer_bytes(t->tok, (uint32_t)c.best, &next_n);
    char end = last_n ? last[last_n - 1] : '\n', begin = next_n ? *next : '\n';
    out[FEATURE_P1] = c.p1;
    out[FEATURE_P2] = c.p2;
    out[FEATURE_MARGIN] = c.margin;
    out[FEATURE_ENTROPY] = (float)c.entropy;
    out[FEATURE_GAP] = c.gap;
    out[FEATURE_POSITION] = (float)log_f64((double)(t->n > t->prompt ? t->n - t->prompt : 0) + 1);
    out[FEATURE_WORD] = !(features_in_word(end) && features_in_word(begin));
    out[FEATURE_SENTENCE] = !last_n || (end && strchr(".!?\n", end));
    out[FEATURE_CONTEXT] = table ? router_score_ids(table, t->ids, t->n) : 0;
}
