/* t_answer_table.c - tests keys against known answers, and the table against a plain list, the
 * oldest answer making room. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "net/answers/answer_table.h"
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

/* The model of the table: a list from the oldest to the newest answer. */
struct list {
    struct prefix_key key[96];
    uint32_t id[96];
    size_t n;
};

/* Do what answer_table_put does. */
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

/* Put an answer into the table; its message goes with it. */
static void put(struct answer_table *t, const struct prefix_key *k, uint32_t id)
{
    char *message = malloc(8);
    CHECK(message);
    snprintf(message, 8, "%u", (unsigned)id);
    CHECK(answer_table_put(t, &(struct answer){ .key = *k, .id = id, .message = message }));
}

/* Compare random operations on both. reserve: with all memory taken at once. */
static void test_table(size_t max, bool reserve)
{
    struct answer_table t;
    struct list l = { .n = 0 };
    answer_table_init(&t, max);
    CHECK(!reserve || answer_table_reserve(&t));
    for (uint64_t step = 0; step < 4000; step++) {
        struct prefix_key k = key_of(rand_u64(max, step));
        put(&t, &k, (uint32_t)step);
        list_put(&l, max, &k, (uint32_t)step);
        CHECK(t.n == l.n);
        for (size_t i = 0; i < l.n; i++) {
            const struct answer *a = answer_table_at(&t, i);
            CHECK(prefix_key_same(&a->key, &l.key[i]) && a->id == l.id[i]);
            CHECK(answer_table_find(&t, &l.key[i]) == a && strtoul(a->message, NULL, 10) == a->id);
        }
        size_t found = 0;
        for (uint32_t i = 0; i < 97; i++)
            found += answer_table_find(&t, &(struct prefix_key){ i, i }) != NULL;
        for (uint32_t i = 0; i < 97; i++)
            found += answer_table_find(&t, &(struct prefix_key){ i * 64 + 63, i }) != NULL;
        CHECK(found == l.n);
        if (step % 1000 == 999) { /* an emptied table works as a new one */
            answer_table_clear(&t);
            l.n = 0;
        }
    }
    answer_table_free(&t);
    CHECK(!answer_table_find(&t, &(struct prefix_key){ 1, 1 }));
}

/* Every allocation fails once; what was put before is still found. */
static void test_memory(void)
{
    int reached;
    long n = 0;
    do {
        struct answer_table t;
        answer_table_init(&t, 1000);
        torture_begin(++n);
        uint32_t i = 0;
        while (i < 1000 && answer_table_put(&t, &(struct answer){ .key = { i, i }, .id = i }))
            i++;
        for (uint32_t j = 0; j < i; j++) {
            const struct answer *a = answer_table_find(&t, &(struct prefix_key){ j, j });
            CHECK(a && a->id == j);
        }
        answer_table_free(&t);
        reached = torture_end();
        CHECK(torture_live() == 0 && reached == (i < 1000));
    } while (reached);
    CHECK(n > 8);
}

int main(void)
{
    struct answer_table t;
    test_key();
    test_table(1, false);
    test_table(3, true);
    test_table(64, true);
    test_table(90, false);
    test_memory();
    answer_table_init(&t, SIZE_MAX);
    CHECK(!answer_table_reserve(&t));
    return 0;
}
