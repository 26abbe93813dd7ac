/* prefix_key.h - hashes a prefix of token ids to the 128-bit key under which its answer is kept.
 *
 * SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012; the 128-bit variant of the
 * reference), keyed by a fingerprint of model name and tokenizer: an answer of another model or
 * tokenizer has another key and is never found. With 2^32 answers kept, two prefixes share a key
 * with a probability of 2^-65. Values are the same on every machine. */
#ifndef NET_ANSWERS_PREFIX_KEY_H
#define NET_ANSWERS_PREFIX_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prefix_key {
    uint64_t lo, hi;
};

enum { PREFIX_KEY_TEXT = 33 }; /* 32 hexadecimal digits and the end */

/* Return the fingerprint. model is the name at the server, or the server's URL if it has none. */
struct prefix_key prefix_key_fingerprint(const char *model, uint64_t tokenizer);
/* Return the key of ids[n] under a fingerprint. n may be 0. */
struct prefix_key prefix_key_of(const struct prefix_key *print, const uint32_t *ids, size_t n);

/* Return a seed for prefix_key_mix that the author of a file cannot know. */
struct prefix_key prefix_key_seed(void);
/* Hash a key for a hash table. With a secret seed, the keys in a file cannot be chosen to
 * collide. */
uint64_t prefix_key_mix(const struct prefix_key *seed, const struct prefix_key *k);

bool prefix_key_same(const struct prefix_key *a, const struct prefix_key *b);
/* Write the key as 32 hexadecimal digits, the high half first. */
void prefix_key_text(char out[PREFIX_KEY_TEXT], const struct prefix_key *k);
/* Read text[n] as prefix_key_text writes it. False: it is anything else. */
bool prefix_key_parse(struct prefix_key *out, const char *text, size_t n);

#endif
