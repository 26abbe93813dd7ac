/* t_memo.c - tests keys against known answers, and the memo against a plain list, the oldest answer
 * making room. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "net/answers/prefix_key.h"
#include "net/answers/memo.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

static void test_key(void)
{
    /* Vectors from vectors_sip128 of the reference implementation, key 00 01 .. 0f: no bytes, and
     * the four bytes 00 01 02 03, least byte first. */
    const struct prefix_key k = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };
    const uint32_t id = 0x03020100, long_one[] = { 0x03020100, 0x07060504, 0x0b0a0908 };
    struct prefix_key none = prefix_key_of(&k, NULL, 0), one = prefix_key_of(&k, &id, 1),
                      three = prefix_key_of(&k, long_one, 3), back;
    char text[PREFIX_KEY_TEXT];
    CHECK(none.lo == UINT64_C(0xe6a825ba047f81a3) && none.hi == UINT64_C(0x930255c71472f66d));
    CHECK(one.lo == UINT64_C(0xaf8f9c2dc16481f8) && one.hi == UINT64_C(0x7955cd7b7c6e0f7d));
    CHECK(three.lo == UINT64_C(0x58f35e9066b226d6) && three.hi == UINT64_C(0x25c13285f64d6382));
    prefix_key_text(text, &none);
    CHECK(strcmp(text, "930255c71472f66de6a825ba047f81a3") == 0);
    CHECK(prefix_key_parse(&back, text, 32) && prefix_key_same(&back, &none) &&
          !prefix_key_same(&back, &one));
    CHECK(!prefix_key_parse(&back, text, 31) &&
          !prefix_key_parse(&back, "930255c71472f66dE6a825ba047f81a3", 32));

    /* Another model, tokenizer or length gives another key. */
    struct prefix_key a = prefix_key_fingerprint("qwen2.5-7b", 1),
                      b = prefix_key_fingerprint("qwen2.5-7b", 2),
                      c = prefix_key_fingerprint("qwen2.5-72b", 1),
                      d = prefix_key_fingerprint("", 1), e = prefix_key_fingerprint("12345678", 1);
    const struct prefix_key *all[] = { &a, &b, &c, &d, &e };
    const uint32_t zeros[130] = { 0 };
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < i; j++) {
            struct prefix_key x = prefix_key_of(all[i], zeros, 3),
                              y = prefix_key_of(all[j], zeros, 3);
            CHECK(!prefix_key_same(all[i], all[j]) && !prefix_key_same(&x, &y));
        }
    struct prefix_key seen[130];
    for (size_t n = 0; n < 130; n++) {
        seen[n] = prefix_key_of(&a, zeros, n);
        for (size_t m = 0; m < n; m++)
            CHECK(!prefix_key_same(&seen[n], &seen[m]));
    }
}

/* The model of the memo: a list from the oldest to the newest answer. */
struct list {
    struct prefix_key key[64];
    uint32_t id[64];
    size_t n;
};

/* Do what memo_put does. */
static void list_put(struct list *l, size_t max, const struct prefix_key *k, uint32_t id)
{
    for (size_t i = 0; i < l->n; i++)
        if (prefix_key_same(&l->key[i], k)) {
            l->id[i] = id;
            return;
        }
    if (l->n == max) {
        l->n--;
        memmove(l->key, l->key + 1, l->n * sizeof(*l->key));
        memmove(l->id, l->id + 1, l->n * sizeof(*l->id));
    }
    l->key[l->n] = *k;
    l->id[l->n++] = id;
}

/* Return keys that collide in their low bits, so that chains are long and cross the end of the
 * table. */
static struct prefix_key key_of(uint64_t r)
{
    return (struct prefix_key){ r % 7 ? r % 97 * 64 + 63 : r % 97, r % 97 };
}

/* Compare random operations on both. */
static void test_memo(size_t max)
{
    struct memo *m;
    struct err err;
    struct list l = { .n = 0 };
    CHECK(memo_open(&m, max, &err) == OK);
    for (uint64_t step = 0; step < 4000; step++) {
        struct prefix_key k = key_of(rand_u64(max, step));
        memo_put(m, &k, (uint32_t)step);
        list_put(&l, max, &k, (uint32_t)step);
        CHECK(memo_size(m) == l.n);
        size_t found = 0;
        for (uint64_t r = 0; r < 7 * 97; r++) {
            struct prefix_key x = key_of(r);
            uint32_t id = 0;
            bool there = memo_get(m, &x, &id), listed = false;
            for (size_t i = 0; i < l.n; i++)
                if (prefix_key_same(&l.key[i], &x)) {
                    listed = true;
                    CHECK(id == l.id[i]);
                }
            CHECK(there == listed);
            found += there;
        }
        CHECK(found >= l.n);
    }
    memo_close(m);
}

/* A memo that was cleared, full or not, finds nothing and works as a new one. */
static void test_clear(void)
{
    struct memo *m;
    struct err err;
    CHECK(memo_open(&m, 3, &err) == OK);
    for (uint32_t full = 2; full < 6; full++) {
        uint32_t id;
        for (uint32_t i = 0; i < full; i++)
            memo_put(m, &(struct prefix_key){ .lo = i, .hi = full }, i);
        CHECK(memo_get(m, &(struct prefix_key){ .lo = full - 1, .hi = full }, &id));
        memo_clear(m);
        CHECK(memo_size(m) == 0);
        for (uint32_t i = 0; i < full; i++)
            CHECK(!memo_get(m, &(struct prefix_key){ .lo = i, .hi = full }, &id));
    }
    memo_close(m);
}

int main(void)
{
    struct memo *m;
    struct err err;
    test_key();
    test_memo(1);
    test_memo(3);
    test_memo(64);
    test_clear();
    CHECK(memo_open(&m, 0, &err) == ERR_ARG && !m);
    CHECK(memo_open(&m, SIZE_MAX, &err) == ERR_ARG && !m);
    long n = 0;
    int reached;
    do {
        torture_begin(++n);
        int rc = memo_open(&m, 10, &err);
        CHECK(rc == (m ? OK : ERR_NOMEM));
        memo_close(m);
        reached = torture_end();
        CHECK(torture_live() == 0 && (!reached || rc == ERR_NOMEM));
    } while (reached);
    CHECK(n > 3);
    return 0;
}
