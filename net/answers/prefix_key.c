#include "net/answers/prefix_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/os.h"

struct sip {
    uint64_t v[4];
};

static uint64_t prefix_key_rotl(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

/* Run n of SipHash's rounds. */
static void prefix_key_rounds(struct sip *s, int n)
{
    uint64_t *v = s->v;
    while (n--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = prefix_key_rotl(v[1], 13) ^ v[0];
        v[3] = prefix_key_rotl(v[3], 16) ^ v[2];
        v[0] = prefix_key_rotl(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = prefix_key_rotl(v[1], 17) ^ v[2];
        v[3] = prefix_key_rotl(v[3], 21) ^ v[0];
        v[2] = prefix_key_rotl(v[2], 32);
    }
}

/* Start a hash under the key k; the 0xee marks 128 bits of output. */
static void prefix_key_begin(struct sip *s, const struct prefix_key *k)
{
    s->v[0] = k->lo ^ UINT64_C(0x736f6d6570736575); /* "somepseudorandomlygeneratedbytes" */
    s->v[1] = k->hi ^ UINT64_C(0x646f72616e646f6d) ^ 0xee;
    s->v[2] = k->lo ^ UINT64_C(0x6c7967656e657261);
    s->v[3] = k->hi ^ UINT64_C(0x7465646279746573);
}

/* Hash 8 bytes. */
static void prefix_key_word(struct sip *s, uint64_t m)
{
    s->v[3] ^= m;
    prefix_key_rounds(s, 2);
    s->v[0] ^= m;
}

/* Finish the hash. rest holds the bytes after the last whole word, bytes is the total length. */
static struct prefix_key prefix_key_end(struct sip *s, uint64_t rest, size_t bytes)
{
    struct prefix_key out;
    prefix_key_word(s, (uint64_t)(bytes & 0xff) << 56 | rest);
    s->v[2] ^= 0xee;
    prefix_key_rounds(s, 4);
    out.lo = s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
    s->v[1] ^= 0xdd;
    prefix_key_rounds(s, 4);
    out.hi = s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
    return out;
}

struct prefix_key prefix_key_fingerprint(const char *model, uint64_t tokenizer)
{
    const struct prefix_key k = { tokenizer, UINT64_C(0x6d697a7a6c653031) }; /* "mizzle01" */
    struct sip s;
    size_t n = strlen(model);
    uint64_t m = 0;
    prefix_key_begin(&s, &k);
    for (size_t i = 0; i < n; i++) {
        m |= (uint64_t)(unsigned char)model[i] << (i % 8 * 8);
        if (i % 8 == 7) {
            prefix_key_word(&s, m);
            m = 0;
        }
    }
    return prefix_key_end(&s, m, n);
}

struct prefix_key prefix_key_of(const struct prefix_key *print, const uint32_t *ids, size_t n)
{
    struct sip s;
    prefix_key_begin(&s, print);
    for (size_t i = 0; i + 1 < n; i += 2)
        prefix_key_word(&s, ids[i] | (uint64_t)ids[i + 1] << 32);
    return prefix_key_end(&s, n % 2 ? ids[n - 1] : 0, 4 * (n & 63)); /* low 8 bits are used */
}

struct prefix_key prefix_key_seed(void)
{
    struct prefix_key seed = { os_now_ns(), (uint64_t)getpid() };
    seed.lo ^= (uint64_t)(uintptr_t)&seed << 32;
    return seed;
}

uint64_t prefix_key_mix(const struct prefix_key *seed, const struct prefix_key *k)
{
    struct sip s;
    prefix_key_begin(&s, seed);
    prefix_key_word(&s, k->lo);
    prefix_key_word(&s, k->hi);
    return prefix_key_end(&s, 0, sizeof(*k)).lo;
}

bool prefix_key_same(const struct prefix_key *a, const struct prefix_key *b)
{
    return a->lo == b->lo && a->hi == b->hi;
}

void prefix_key_text(char out[PREFIX_KEY_TEXT], const struct prefix_key *k)
{
    snprintf(out, PREFIX_KEY_TEXT, "%016" PRIx64 "%016" PRIx64, k->hi, k->lo);
}

bool prefix_key_parse(struct prefix_key *out, const char *text, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char hi[17] = "", lo[17] = "";
    if (n != 32)
        return false;
    memcpy(hi, text, 16);
    memcpy(lo, text + 16, 16);
    *out = (struct prefix_key){ .lo = strtoull(lo, NULL, 16), .hi = strtoull(hi, NULL, 16) };
    return strspn(hi, digits) == 16 && strspn(lo, digits) == 16;
}
