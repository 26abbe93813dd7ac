#include "router/caps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"

enum { PRICE_PLACES = 6 };

const struct caps_limits caps_none = { UINT64_MAX, UINT64_MAX, UINT64_MAX, { 0, 0, 0 } };

bool caps_limited(const struct caps_limits *l)
{
    return l->tokens != UINT64_MAX || l->upload != UINT64_MAX || l->budget != UINT64_MAX;
}

/* Return a + b * c, or UINT64_MAX when that does not fit. */
static uint64_t add_product(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t product, sum;
    if (__builtin_mul_overflow(b, c, &product) || __builtin_add_overflow(a, product, &sum))
        return UINT64_MAX;
    return sum;
}

/* Return the cost so far plus that of this call with `down` tokens coming down. */
static uint64_t cost_with(const struct caps_limits *l, const struct caps_count *c,
                          const struct caps_call *call, size_t down)
{
    size_t n = call->n, cached = c->warm < n ? c->warm : n;
    uint64_t cost = add_product(c->cost, cached, l->price.cached);
    cost = add_product(cost, n - cached, l->price.up);
    return add_product(cost, down, l->price.down);
}

const char *caps_refuse(const struct caps_limits *l, const struct caps_count *c,
                        const struct caps_call *call)
{
    if (add_product(c->tokens, call->tokens, 1) > l->tokens)
        return "--max-cloud-tokens is reached";
    if (l->upload != UINT64_MAX && add_product(c->upload, call->bytes, 1) > l->upload)
        return "--max-upload-bytes would be exceeded";
    if (l->budget != UINT64_MAX && cost_with(l, c, call, call->tokens) > l->budget)
        return "--cloud-budget would be exceeded";
    return NULL;
}

void caps_add(const struct caps_limits *l, struct caps_count *c, const struct caps_call *call,
              bool answered)
{
    c->cost = cost_with(l, c, call, answered ? call->tokens : 0);
    c->upload = add_product(c->upload, call->bytes, 1);
    c->tokens = add_product(c->tokens, call->tokens, 1);
    c->warm = call->n;
}

void caps_begin(struct caps *c, const struct caps_limits *limits)
{
    *c = (struct caps){ .limits = limits ? *limits : caps_none };
    c->quota.most = c->limits.tokens;
}

void caps_text(struct caps *c, const uint32_t *prompt, size_t n)
{
    size_t shared = 0;
    while (shared < n && shared < c->last_n && c->last[shared] == prompt[shared])
        shared++;
    c->count.warm = shared;
}

/* Keep the prefix for the next caps_text. */
static void caps_keep(struct caps *c, const uint32_t *ids, size_t n)
{
    c->last_n = 0;
    if (n > c->last_cap) {
        size_t cap = n < SIZE_MAX / 8 ? 2 * n : n, want;
        uint32_t *more = size_mul(&want, cap, sizeof(*more)) ? realloc(c->last, want) : NULL;
        if (!more) /* the next text then counts as new to the server, which costs more */
            return;
        c->last = more;
        c->last_cap = cap;
    }
    if (n)
        memcpy(c->last, ids, n * sizeof(*ids));
    c->last_n = n;
}

void caps_commit(struct caps *c, const uint32_t *ids, const struct caps_call *call, bool answered)
{
    caps_add(&c->limits, &c->count, call, answered);
    c->count.tokens = atomic_load(&c->quota.taken);
    caps_keep(c, ids, call->n);
}

void caps_resume(struct caps *c, const struct caps *from)
{
    uint64_t had = c->count.tokens; /* the counts of each include those before it */
    c->count = from->count;
    if (from->count.tokens > had)
        atomic_fetch_add(&c->quota.taken, from->count.tokens - had);
    caps_keep(c, from->last, from->last_n);
}

void caps_end(struct caps *c)
{
    free(c->last);
    *c = (struct caps){ .limits = caps_none };
}

bool caps_decimal(uint64_t *out, const char *text, size_t n, unsigned places)
{
    uint64_t v = 0;
    bool point = false;
    size_t digits = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || (point && !places))
            return false;
        places -= point;
        digits++;
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v))
            return false;
    }
    while (places--)
        if (__builtin_mul_overflow(v, 10u, &v))
            return false;
    *out = v;
    return digits > 0;
}

void caps_amount(char out[CAPS_AMOUNT], uint64_t pico)
{
    const uint64_t whole = UINT64_C(1000000000000);
    int n = snprintf(out, CAPS_AMOUNT, "%llu.%012llu", (unsigned long long)(pico / whole),
                     (unsigned long long)(pico % whole));
    while (out[n - 1] == '0' && out[n - 2] != '.')
        out[--n] = 0;
}

bool caps_price(struct caps_price *out, const char *text)
{
    uint64_t *to[] = { &out->up, &out->cached, &out->down };
    for (size_t i = 0; i < 3; i++) {
        size_t n = strcspn(text, ",");
        if (!caps_decimal(to[i], text, n, PRICE_PLACES) || (text[n] == ',') != (i < 2))
            return false;
        text += n + 1;
    }
    return true;
}
