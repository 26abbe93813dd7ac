/* t_caps.c - tests limits on tokens, bytes and money against sums made by hand and a plain
 * model. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "router/caps.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

static const char *refuse(const struct caps_limits *l, const struct caps_count *c, size_t n,
                          size_t bytes)
{
    return caps_refuse(l, c, &(struct caps_call){ n, 1, 0, bytes });
}

static void commit(struct caps *c, const uint32_t *ids, size_t n, size_t bytes, bool answered)
{
    quota_take(&c->quota, 1);
    caps_commit(c, ids, &(struct caps_call){ .n = n, .tokens = 1, .bytes = bytes }, answered);
}

static bool decimal(uint64_t *out, const char *text, unsigned places)
{
    return caps_decimal(out, text, strlen(text), places);
}

static void test_decimal(void)
{
    uint64_t v = 7;
    CHECK(decimal(&v, "1.50", 12) && v == UINT64_C(1500000000000));
    CHECK(decimal(&v, "0", 6) && v == 0 && decimal(&v, ".5", 1) && v == 5);
    CHECK(decimal(&v, "12.", 2) && v == 1200 && decimal(&v, "0.000001", 6) && v == 1);
    CHECK(decimal(&v, "18446744073709551615", 0) && v == UINT64_MAX);
    CHECK(decimal(&v, "18446744.073709551615", 12) && v == UINT64_MAX);
    static const char *const bad[] = { "",
                                       ".",
                                       "-1",
                                       "+1",
                                       "1e3",
                                       "0x10",
                                       "1.2.3",
                                       " 1",
                                       "1 ",
                                       "nan",
                                       "inf",
                                       "1,5",
                                       "18446744073709551616" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!decimal(&v, bad[i], 6));
    static const struct {
        uint64_t pico;
        const char *text;
    } amounts[] = { { 0, "0.0" },
                    { 1, "0.000000000001" },
                    { UINT64_C(12500000000), "0.0125" },
                    { UINT64_C(3000000000000), "3.0" },
                    { UINT64_MAX, "18446744.073709551615" } };
    for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
        char text[CAPS_AMOUNT];
        caps_amount(text, amounts[i].pico);
        CHECK(strcmp(text, amounts[i].text) == 0);
    }
    CHECK(!decimal(&v, "0.0000001", 6) && !decimal(&v, "1.0", 0));
    CHECK(!decimal(&v, "18446744.073709551616", 12) && !decimal(&v, "99999999999999999999", 0));
}

static void test_by_hand(void)
{
    const uint32_t ids[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, other[] = { 1, 2, 9, 9 };
    /* Per million tokens: up 2, cached 0.5, down 8. */
    struct caps_limits l = { .tokens = 4, .upload = 1000, .budget = UINT64_MAX };
    struct caps c;
    CHECK(caps_price(&l.price, "2,0.5,8"));
    CHECK(l.price.up == 2000000 && l.price.cached == 500000 && l.price.down == 8000000);
    caps_begin(&c, &l);
    caps_text(&c, ids, 4);
    CHECK(!refuse(&c.limits, &c.count, 4, 100));
    commit(&c, ids, 4, 100, true); /* 4 up, 1 down */
    CHECK(c.count.cost == 4 * 2000000 + 8000000 && c.count.tokens == 1 && c.count.upload == 100);
    commit(&c, ids, 6, 150, false); /* 4 cached, 2 up, nothing down */
    CHECK(c.count.cost == 16000000 + 4 * 500000 + 2 * 2000000 && c.count.tokens == 2);
    CHECK(c.count.upload == 250);
    caps_text(&c, other, 4); /* shares 2 ids with the last prefix */
    commit(&c, other, 4, 100, true);
    CHECK(c.count.cost == 22000000 + 2 * 500000 + 2 * 2000000 + 8000000);
    caps_text(&c, ids, 3);
    CHECK(c.count.warm == 2);
    CHECK(!refuse(&c.limits, &c.count, 3, 650));
    CHECK(strstr(refuse(&c.limits, &c.count, 3, 651), "--max-upload-bytes"));
    CHECK(strstr(refuse(&c.limits, &c.count, 3, SIZE_MAX), "--max-upload-bytes"));
    commit(&c, ids, 3, 100, true);
    CHECK(c.count.tokens == 4);
    CHECK(strstr(refuse(&c.limits, &c.count, 3, 1), "--max-cloud-tokens"));
    caps_end(&c);
}

/* Exactly the budget is allowed; 10^-12 less is not. */
static void test_budget(void)
{
    struct caps_limits l = caps_none;
    struct caps c;
    CHECK(caps_price(&l.price, "2,0.5,8"));
    l.budget = 16000000;
    struct caps_count none = { 0 };
    CHECK(!refuse(&l, &none, 4, 1));
    l.budget--;
    CHECK(strstr(refuse(&l, &none, 4, 1), "--cloud-budget"));
    /* A call is charged for all tokens it asks for. */
    l.budget = 8 * 2000000 + 3 * 8000000;
    CHECK(!caps_refuse(&l, &none, &(struct caps_call){ 8, 3, 0, 1 }));
    CHECK(strstr(caps_refuse(&l, &none, &(struct caps_call){ 8, 4, 0, 1 }), "--cloud-budget"));
    l.tokens = 3;
    CHECK(strstr(caps_refuse(&l, &none, &(struct caps_call){ 8, 4, 0, 1 }), "--max-cloud-tokens"));
    struct caps_count three = none;
    caps_add(&l, &three, &(struct caps_call){ 8, 3, 0, 1 }, true);
    CHECK(three.tokens == 3 && three.cost == l.budget && refuse(&l, &three, 8, 1));
    l.tokens = UINT64_MAX;
    l.price.up = UINT64_MAX; /* an overflow counts as too much */
    l.budget = UINT64_MAX - 1;
    CHECK(refuse(&l, &none, SIZE_MAX, 1));
    caps_add(&l, &none, &(struct caps_call){ SIZE_MAX, 1, 0, 1 }, true);
    CHECK(none.cost == UINT64_MAX && refuse(&l, &none, 1, 1));
    caps_begin(&c, NULL);
    CHECK(!refuse(&c.limits, &c.count, SIZE_MAX, SIZE_MAX));
    caps_end(&c);
}

/* In any order of asking, no limit is passed, and a call is refused only if it would pass one. A
 * copy counts the same. */
static void test_property(void)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint64_t r = rand_u64(seed, 0);
        struct caps_limits l = {
            r % 20, r / 20 % 4000, r / 80000 % 3000, { 1 + r % 3, r % 2, 1 + r % 5 }
        };
        struct caps c;
        uint32_t ids[128];
        caps_begin(&c, &l);
        for (size_t i = 0; i < 128; i++)
            ids[i] = (uint32_t)(rand_u64(seed, 1000 + i) % 2);
        uint64_t tokens = 0, upload = 0, cost = 0, warm = 0;
        for (uint64_t step = 1; step < 200; step++) {
            r = rand_u64(seed, step);
            size_t n = 1 + r % 128, bytes = 20 + 5 * n;
            bool answered = r >> 32 & 1;
            if (r >> 40 & 1) {
                caps_text(&c, ids, n);
                warm = c.count.warm;
                CHECK(warm <= n && warm <= 128);
            }
            const struct caps_call call = { n, 1 + rand_u64(seed, step) % 4, 0, bytes };
            uint64_t same = warm < n ? warm : n;
            uint64_t price = same * l.price.cached + (n - same) * l.price.up;
            bool may = tokens + call.tokens <= l.tokens && upload + bytes <= l.upload &&
                       cost + price + call.tokens * l.price.down <= l.budget;
            struct caps_count ahead = c.count;
            CHECK(may == !caps_refuse(&l, &c.count, &call));
            if (!may)
                continue;
            CHECK(quota_take(&c.quota, call.tokens));
            caps_commit(&c, ids, &call, answered);
            caps_add(&l, &ahead, &call, answered);
            tokens += call.tokens;
            upload += bytes;
            cost += price + (answered ? call.tokens * l.price.down : 0);
            warm = n;
            CHECK(c.count.tokens == tokens && c.count.upload == upload && c.count.cost == cost);
            CHECK(memcmp(&ahead, &c.count, sizeof(ahead)) == 0);
            CHECK(tokens <= l.tokens && upload <= l.upload && cost <= l.budget);
        }
        caps_end(&c);
    }
}

static void test_prices(void)
{
    struct caps_price p;
    CHECK(caps_price(&p, "1.5,0.75,6"));
    CHECK(p.up == 1500000 && p.cached == 750000 && p.down == 6000000);
    static const char *const flags[] = { "1,2",   "1,2,3,4", "1,2,x", "1,-1,1",
                                         "1 1 1", "",        "1,,3",  "1,2,3," };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        CHECK(!caps_price(&p, flags[i]));
}

/* Another one goes on with the counts and with what the server has read. */
static void test_resume(void)
{
    const uint32_t ids[] = { 1, 2, 3 };
    const struct caps_limits l = { 2, UINT64_MAX, UINT64_MAX, { 1, 1, 1 } };
    struct caps a, b;
    caps_begin(&a, &l);
    caps_begin(&b, &l);
    caps_resume(&b, &a); /* nothing has been asked yet */
    commit(&a, ids, 3, 1, true);
    caps_resume(&b, &a);
    caps_text(&b, ids, 3);
    CHECK(b.count.warm == 3 && b.count.tokens == 1 && b.count.cost == 4);
    caps_resume(&b, &a); /* its counts are those of all, too */
    CHECK(b.quota.taken == 1);
    commit(&b, ids, 3, 1, true);
    CHECK(refuse(&b.limits, &b.count, 3, 1) && !refuse(&a.limits, &a.count, 3, 1));
    caps_end(&a);
    caps_end(&b);
}

/* Without memory for the last prefix, the next text counts as new, which costs more and never
 * less. */
static void test_memory(void)
{
    const uint32_t ids[] = { 1, 2, 3 };
    struct caps c;
    caps_begin(&c, NULL);
    torture_begin(1);
    commit(&c, ids, 3, 1, true);
    CHECK(torture_end() && c.count.warm == 3 && c.count.tokens == 1);
    caps_text(&c, ids, 3);
    CHECK(c.count.warm == 0);
    caps_end(&c);
}

int main(void)
{
    test_decimal();
    test_by_hand();
    test_budget();
    test_resume();
    test_property();
    test_prices();
    test_memory();
    return 0;
}
